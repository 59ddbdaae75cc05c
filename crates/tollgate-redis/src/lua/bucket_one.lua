-- Takes permits of one bucket, at least one. Returns its new value, or if it is denied n, part,
-- whole, the end of the ban or 0, and now.
if ban > 0 or next > latest or (next == latest and next_part > reach_part) then
  return pack('<I4I4ddd', n, part, whole, ban, now)
end
value = pack('<I4I4ddd', n + 268435456, next_part, next, now, d)
call('PSETEX', key, life, value)
return value
