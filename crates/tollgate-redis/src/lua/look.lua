-- Reads keys, and writes nothing. For each key: n.
-- Returns { now, whole, part, ban, ... }: when each key will be idle, not before now, and when its
-- ban ends, or 0.
local reply = { now }
for i, key in ipairs(KEYS) do
  local whole, part, ban = read(key, tonumber(ARGV[i]))
  if not whole then
    return unreadable(key)
  end
  reply[3 * i - 1], reply[3 * i], reply[3 * i + 1] = whole, part, ban
end
return reply
