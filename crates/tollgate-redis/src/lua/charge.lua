-- Takes permits of keys whether or not they are there, into debt up to 50 years from now.
-- For each key: the cost (whole, part) and n.
-- Returns { now, whole, part, next_whole, next_part, ... }: when each key would have been idle, and
-- when it will be.
local charged, changed = { now }, {}
for i, key in ipairs(KEYS) do
  local n = argument(i, 3, 3)
  local state = see(key, n)
  if not state then
    return unreadable(key)
  end
  local whole, part = later(state.whole, state.part, now, 0)
  local next_whole, next_part = add(whole, part, argument(i, 3, 1), argument(i, 3, 2), n)
  next_whole, next_part = earlier(next_whole, next_part, now + SPAN, 0)
  next_whole, next_part = later(next_whole, next_part, whole, part)
  if is_later(next_whole, next_part, whole, part) then
    state.whole, state.part = next_whole, next_part
    changed[key] = true
  end
  for _, number in ipairs({ whole, part, next_whole, next_part }) do
    charged[#charged + 1] = number
  end
end
for i, key in ipairs(KEYS) do
  if changed[key] then
    save(key)
  end
end
return charged
