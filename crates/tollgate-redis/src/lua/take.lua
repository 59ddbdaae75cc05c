-- Takes permits of all keys, or of none.
-- For each key: the cost (whole, part), n, and the reach (whole, part), the cost of a full burst.
-- Returns { 1, now, whole, part, 0, ... } with the ticks at which each key will be idle, or
-- { 0, now, whole, part, ban, ... } with those before the request, and writes nothing.
local granted, next_ticks, ticks = true, { 1, now }, { 0, now }
for i, key in ipairs(KEYS) do
  local n = argument(i, 5, 3)
  local state = see(key, n)
  if not state then
    return unreadable(key)
  end
  local whole, part = later(state.whole, state.part, now, 0)
  local next_whole, next_part = add(whole, part, argument(i, 5, 1), argument(i, 5, 2), n)
  local last_whole, last_part = now + argument(i, 5, 4), argument(i, 5, 5)
  if state.ban > 0 or is_later(next_whole, next_part, last_whole, last_part) then
    granted = false
  end
  state.whole, state.part = next_whole, next_part
  for _, number in ipairs({ whole, part, state.ban }) do
    ticks[#ticks + 1] = number
  end
  for _, number in ipairs({ next_whole, next_part, 0 }) do
    next_ticks[#next_ticks + 1] = number
  end
end
if not granted then
  return ticks
end
for i, key in ipairs(KEYS) do
  -- A request of no permits changes nothing.
  if argument(i, 5, 1) > 0 or argument(i, 5, 2) > 0 then
    save(key)
  end
end
return next_ticks
