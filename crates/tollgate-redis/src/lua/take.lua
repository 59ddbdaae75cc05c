-- Takes permits of all keys, or of none.
-- For each key: the cost (whole, part), n, and the reach (whole, part), the cost of a full burst.
-- Returns { granted, now, whole, part, ban, ... }: 1 or 0, and for each key when it would have been
-- idle without this request, not before now, and when its ban ends. Without a grant it writes
-- nothing.
local reply = { 1, now, 0, 0, 0 }
for i, key in ipairs(KEYS) do
  local a = 5 * i - 5
  local n = tonumber(ARGV[a + 3])
  local whole, part, ban = read(key, n)
  if not whole then
    return unreadable(key)
  end
  reply[3 * i], reply[3 * i + 1], reply[3 * i + 2] = whole, part, ban
  whole, part = add(whole, part, tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), n)
  if ban > 0 or is_later(whole, part, now + tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5])) then
    reply[1] = 0
  end
end
if reply[1] == 0 then
  return reply
end
for i, key in ipairs(KEYS) do
  local a = 5 * i - 5
  local cost, cost_part, n = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
  -- A request of no permits changes nothing.
  if cost > 0 or cost_part > 0 then
    local whole, part = add(reply[3 * i], reply[3 * i + 1], cost, cost_part, n)
    save(key, whole, part, n, 0)
  end
end
return reply
