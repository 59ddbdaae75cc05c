  -- Takes permits of several buckets, at least one of each, or of none. Returns what take.lua does.
  local ban = 0
  if -written > now then
    ban = -written
  end
  if -written > now or next > latest or (next == latest and next_part > reach_part) then
    reply[1] = 0
  end
  reply[i + 2] = pack('<ddd', part, whole, ban)
  values[i] = pack('<I4I4dd', n + 134217728, next_part, next, now)
  lives[i] = life
end
if reply[1] == 1 then
  for i, key in ipairs(KEYS) do
    call('PSETEX', key, lives[i], values[i])
  end
end
return reply
