-- Takes permits of a key that has leases, whether or not they fit. KEYS: the limit's key, and that
-- of its leases. ARGV: a request for the permits; and the permits of a full burst, or of a window, or
-- the slots. Returns what change.lua returns.
local see = kinds[string.byte(ARGV[1])].see
local state = see(KEYS[1], ARGV[1])
if state.err then
  return state
end
state.most = struct.unpack('<d', ARGV[2])
local failed = settle(state)
if failed then
  return failed
end
-- What is out counts before the permits do: otherwise it would count them as its own.
state.kind.write(state)
state = see(KEYS[1], ARGV[1])
return { now, state.kind.charge(state) }
