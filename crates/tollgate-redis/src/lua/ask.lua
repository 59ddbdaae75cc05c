-- Answers a node's message about its lease. KEYS: the limit's key, and that of its leases. ARGV: a
-- request for no permits; and the message: 8 bytes that name the node, and
--   number   grows with each message
--   keeps    the permits that the node keeps
--   returns  those that it gives back, and had before
--   wants    how many more it wants
--   life     how long its lease is, in microseconds
--   most     the permits of a full burst, or of a window, or the slots
-- Returns the number of the answered message, how many permits the node may keep, how many it got,
-- how long it takes until there is one more if it got fewer than it wants, until it is the node's
-- turn to ask again if nothing was left or others wait, and until a ban ends.
-- A second more than the longest life, because other nodes may have longer leases.
local LONGEST_MS = '61000'
-- No turn is later than a second after there is a permit: nodes ask by then anyway.
local LONGEST_TURNS = 1000000
local node = string.sub(ARGV[2], 1, 8)
local number, keeps, returns, wants, life, most = struct.unpack('<dddddd', ARGV[2], 9)
local state = kinds[string.byte(ARGV[1])].see(KEYS[1], ARGV[1])
if state.err then
  return state
end
state.most = most
local failed, out, look, turn = settle(state)
if failed then
  return failed
end

local mine = 0
local function answer(kept, granted)
  local wait = 0
  if granted < wants then
    wait = state.kind.wait(state)
  end
  local ban = math.max(state.ban - now, 0)
  return struct.pack('<dddddd', number, kept, granted, wait, mine, ban)
end

local has, kept, granted, latest = 0, 0, 0, -1
local lease = redis.call('HGET', KEYS[2], node)
if lease then
  local _
  has, _, latest, kept, granted = read_lease(lease)
  if not has then
    return foreign()
  end
end
if number <= latest then
  -- A message that comes again is answered as before; an older one is not answered.
  if number < latest then
    number = latest
  end
  return answer(kept, granted)
end
-- What the server does not know of was spent when the lease ended. A ban takes all.
local held = math.min(keeps, has)
kept = held
if state.ban > 0 then
  kept = 0
  if not state.kind.stays then
    held = 0
  end
end
returns = math.min(returns, has - held)
if state.ban == 0 then
  state.kind.back(state, returns)
end
out = math.max(out - has + held, 0)
state.kind.floor(state, now, out, true)
-- An equal share for this node, and for each one that waits for its turn, or for one that may ask.
local refill = state.kind.refill(state)
local between = refill + math.floor(refill / 2)
local shares = 1 + math.max(math.ceil((turn - now) / between), 1)
local room = state.kind.room(state, shares * wants)
granted = math.min(wants, math.ceil(room / shares))
state.kind.draw(state, granted)
out = out + granted
if granted < wants and (granted == room or turn > now) then
  -- Nothing is left, or others wait. A turn comes in the time in which one and a half permits are
  -- refilled, so that most turns find one.
  local due = now + state.kind.wait(state)
  turn = math.min(math.max(turn, due) + between, due + LONGEST_TURNS, 2 * SPAN)
  mine = turn - now
end
if held + granted > 0 then
  local ends = now + life
  look = look > now and math.min(look, ends) or ends
  redis.call('HSET', KEYS[2], node,
    struct.pack('<ddddd', held + granted, ends, number, kept, granted))
else
  redis.call('HDEL', KEYS[2], node)
  look = math.max(look, now)
end
if out > 0 or turn > now then
  write_sum(out, look, turn)
  redis.call('PEXPIRE', KEYS[2], LONGEST_MS)
else
  redis.call('DEL', KEYS[2])
end
state.kind.write(state)
return answer(kept, granted)
