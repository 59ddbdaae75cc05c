  -- Tells the buckets of a denied request, as take.lua does.
  reply[i + 2] = pack('<ddd', part, whole, ban)
end
return reply
