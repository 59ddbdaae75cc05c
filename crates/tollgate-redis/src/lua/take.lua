-- Takes permits of all keys, or of none. Returns whether it did (1 or 0), now, and for each key what
-- was seen before. Without a grant it takes nothing.
local states, granted = {}, 1
for i, key in ipairs(KEYS) do
  local state = kinds[string.byte(ARGV[i])].see(key, ARGV[i])
  if state.err then
    return state
  end
  if not state.fits then
    granted = 0
  end
  states[i] = state
end
local reply = { granted, now }
for i, state in ipairs(states) do
  reply[i + 2] = state.kind.tell(state)
  if granted == 1 then
    state.kind.take(state)
  end
end
return reply
