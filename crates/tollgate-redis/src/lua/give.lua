-- Gives permits back. For each key: their cost (whole, part), n, and the mark (whole, part) of the
-- grant. What time has refilled already is not given back twice, and a banned key gets nothing
-- back. A key that is named twice is seen the second time as the first has left it.
-- Returns { now, whole, part, ... }: how much was given back to each key.
local reply, problem = { now }, any_unreadable()
if problem then
  return problem
end
for i, key in ipairs(KEYS) do
  local a = 5 * i - 5
  local n = tonumber(ARGV[a + 3])
  local whole, part, ban = read(key, n)
  local given, given_part = 0, 0
  if ban == 0 then
    local top, top_part = earlier(whole, part, tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5]))
    if is_later(top, top_part, now, 0) then
      given, given_part = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
      given, given_part = earlier(given, given_part, top - now, top_part)
    end
  end
  if given > 0 or given_part > 0 then
    whole, part = subtract(whole, part, given, given_part, n)
    save(key, whole, part, n, ban)
  end
  reply[2 * i], reply[2 * i + 1] = given, given_part
end
return reply
