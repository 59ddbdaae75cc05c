-- Gives permits back. For each key: their cost (whole, part), n, and the mark (whole, part) of the
-- grant. What time has refilled already is not given back twice, and a banned key gets nothing back.
-- Returns { now, whole, part, ... }: how much was given back to each key.
local given, changed = { now }, {}
for i, key in ipairs(KEYS) do
  local n = argument(i, 5, 3)
  local state = see(key, n)
  if not state then
    return unreadable(key)
  end
  local whole, part = 0, 0
  local top, top_part = earlier(state.whole, state.part, argument(i, 5, 4), argument(i, 5, 5))
  if state.ban == 0 and is_later(top, top_part, now, 0) then
    whole, part = earlier(argument(i, 5, 1), argument(i, 5, 2), top - now, top_part)
    state.whole, state.part = subtract(state.whole, state.part, whole, part, n)
    changed[key] = changed[key] or whole > 0 or part > 0
  end
  given[#given + 1] = whole
  given[#given + 1] = part
end
for i, key in ipairs(KEYS) do
  if changed[key] then
    save(key)
  end
end
return given
