-- Reads keys, and writes nothing. For each key: n.
-- Returns { now, whole, part, ban, ... }: when each key will be idle, not before now.
local seen = { now }
for i, key in ipairs(KEYS) do
  local state = see(key, argument(i, 1, 1))
  if not state then
    return unreadable(key)
  end
  local whole, part = later(state.whole, state.part, now, 0)
  for _, number in ipairs({ whole, part, state.ban }) do
    seen[#seen + 1] = number
  end
end
return seen
