-- Takes permits of keys whether or not they are there, into debt up to 50 years from now. A key that
-- is named twice is seen the second time as the first has left it.
-- For each key: the cost (whole, part) and n.
-- Returns { now, whole, part, next_whole, next_part, ... }: when each key would have been idle, not
-- before now, and when it will be.
local reply, problem = { now }, any_unreadable()
if problem then
  return problem
end
for i, key in ipairs(KEYS) do
  local a = 3 * i - 3
  local n = tonumber(ARGV[a + 3])
  local whole, part, ban = read(key, n)
  local next, next_part = add(whole, part, tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), n)
  next, next_part = earlier(next, next_part, now + SPAN, 0)
  if is_later(next, next_part, whole, part) then
    save(key, next, next_part, n, ban)
  else
    next, next_part = whole, part
  end
  reply[4 * i - 2], reply[4 * i - 1], reply[4 * i], reply[4 * i + 1] = whole, part, next, next_part
end
return reply
