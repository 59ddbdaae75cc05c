-- Takes permits of one bucket. Returns its new value, or if it is denied 0, n, part, whole, the end
-- of the ban, and now.
if is_denied then
  return struct.pack('<BI4I4ddd', 0, n, part, whole, ban, now)
end
value = struct.pack('<BI4I4dd', 1, n, next_part, next, now)
if next > whole or next_part > part then
  redis.call('SET', key, value, 'PX', string.format('%d', (next - now) / 1000 + 1001))
end
return value
