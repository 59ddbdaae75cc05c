  -- Takes permits of several buckets, at least one of each, or of none. Returns their new values,
  -- one after the other.
  if ban > 0 or next > latest or (next == latest and next_part > reach_part) then
    is_denied = true
    break
  end
  values[i] = pack('<I4I4ddd', n + 268435456, next_part, next, now, d)
  lives[i] = life
end
if not is_denied then
  for i, key in ipairs(KEYS) do
    call('PSETEX', key, lives[i], values[i])
  end
  return table.concat(values)
end
