-- Takes permits of one key beside its leases, or none. KEYS: the limit's key, and that of its
-- leases. ARGV: a request for no permits, or for slots one for all of them; and how many it is for,
-- and the permits of a full burst or of a window, or the slots. Returns what take.lua returns.
local state = kinds[string.byte(ARGV[1])].see(KEYS[1], ARGV[1])
if state.err then
  return state
end
local permits
permits, state.most = struct.unpack('<dd', ARGV[2])
if permits == 0 then
  -- It takes nothing, so no lease matters.
  return { state.fits and 1 or 0, now, state.kind.tell(state) }
end
local failed = settle(state)
if failed then
  return failed
end
local granted = 0
local reply = state.kind.tell(state)
if state.kind.room(state, permits) == permits then
  granted = 1
  state.kind.spend(state, permits)
end
return { granted, now, reply }
