-- Forgets keys, and ends their bans. Returns how many of them were known. If a key can't be read,
-- none is forgotten.
for i, key in ipairs(KEYS) do
  local state = kinds[string.byte(ARGV[i])].see(key, ARGV[i])
  if state.err then
    return state
  end
end
return redis.call('DEL', unpack(KEYS))
