-- Bans keys. For each key: how long, in microseconds, n, and the reach (whole, part). After the ban
-- the key refills from empty. A ban can be made longer, but not shorter.
-- Returns { now, ban, ... }: when the ban of each key ends, or 0 if it is not banned.
local reply, problem = { now }, any_unreadable()
if problem then
  return problem
end
for i, key in ipairs(KEYS) do
  local a = 4 * i - 4
  local long, n = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local whole, part, ban = read(key, n)
  if long > 0 then
    local empty, empty_part = now + long + tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
    if is_later(empty, empty_part, whole, part) then
      whole, part = empty, empty_part
    end
    ban = math.max(ban, now + long)
    save(key, whole, part, n, ban)
  end
  reply[i + 1] = ban
end
return reply
