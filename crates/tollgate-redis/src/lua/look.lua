-- Reads keys. Returns now, and for each key what was seen.
local reply = { now }
for i, key in ipairs(KEYS) do
  local state = kinds[string.byte(ARGV[i])].see(key, ARGV[i])
  if state.err then
    return state
  end
  reply[i + 1] = state.kind.tell(state)
end
return reply
