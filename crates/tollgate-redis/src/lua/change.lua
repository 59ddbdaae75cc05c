-- Changes all keys. Returns now, and for each key what the verb returns. If a key can't be read,
-- none is changed.
local states, reply = {}, { now }
for i, key in ipairs(KEYS) do
  local state = kinds[string.byte(ARGV[i])].see(key, ARGV[i])
  if state.err then
    return state
  end
  states[i] = state
end
for i, state in ipairs(states) do
  reply[i + 1] = state.kind[verb](state)
end
return reply
