-- Concurrency: a sorted set of holders, each with the tick at which its lease ends. A holder that
-- crashes gives its slot back then. While the key is banned, '!' has the end of the ban.
--
-- The argument: 'C', the permits of the request, the limit, the lease, the number of the first
-- holder, and 8 bytes that the names of this client's holders begin with.
local slots = {}

-- Returns a tick as a score. Without a format, Lua would write 14 digits.
local function score(tick)
  return string.format('%.0f', tick)
end

function slots.see(key, arg)
  local _, n, limit, lease, first = struct.unpack('<Bdddd', arg)
  local live = redis.call('ZCOUNT', key, '(' .. score(now), '+inf')
  local ban, last = 0, 0
  if live > 0 then
    ban = tonumber(redis.call('ZSCORE', key, '!') or 0)
    last = tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2])
    if not (last <= 2 * SPAN) then
      return redis.error_reply('BADSTATE key ' .. key .. ' has no slots')
    end
    if ban > now then
      live = live - 1
    else
      ban = 0
    end
  end
  return {
    kind = slots, key = key, arg = arg, fits = ban == 0 and live + n <= limit, n = n, limit = limit,
    lease = lease, first = first, base = string.sub(arg, 34, 41), live = live, last = last,
    ban = ban,
  }
end

-- Returns how many slots are held, when the last lease or the ban ends (0 if there is none), the
-- number of the first holder, and the end of the ban, or 0.
function slots.tell(state)
  return struct.pack('<dddd', state.live, state.last, state.first, state.ban)
end

local function holder(state, i)
  return state.base .. score(state.first + i)
end

-- Writes when something ends. The key expires a second after the last of its ends.
local function set(state, name, ends)
  redis.call('ZADD', state.key, score(ends), name)
  state.last = math.max(state.last, ends)
end

local function expire(state)
  redis.call('PEXPIRE', state.key, string.format('%d', (state.last - now) / 1000 + 1001))
end

local function add(state, n)
  redis.call('ZREMRANGEBYSCORE', state.key, '-inf', score(now))
  for i = 0, n - 1 do
    set(state, holder(state, i), now + state.lease)
  end
  expire(state)
end

function slots.take(state)
  if state.n > 0 then
    add(state, state.n)
  end
end

local function is_held(state, i)
  return tonumber(redis.call('ZSCORE', state.key, holder(state, i)) or 0) > now
end

-- Frees the slots of the holders. Returns how many were still held.
function slots.give(state)
  local given = 0
  for i = 0, state.n - 1 do
    if is_held(state, i) then
      given = given + redis.call('ZREM', state.key, holder(state, i))
    end
  end
  return struct.pack('<d', given)
end

-- Begins the leases of the holders again. Returns how many were still held.
function slots.renew(state)
  local held = 0
  for i = 0, state.n - 1 do
    if is_held(state, i) then
      set(state, holder(state, i), now + state.lease)
      held = held + 1
    end
  end
  if held > 0 then
    expire(state)
  end
  return struct.pack('<d', held)
end

-- Takes slots whether or not they are free, up to twice the limit in all. Returns how many, how many
-- are then held, and when the last lease or the ban ends, or 0.
function slots.charge(state)
  local charged = math.max(math.min(state.n, 2 * state.limit - state.live), 0)
  if charged > 0 then
    add(state, charged)
  end
  return struct.pack('<ddd', charged, state.live + charged, state.last)
end

-- Bans the key. The argument continues with how long. A ban can be made longer, but not shorter.
-- Returns when the ban ends, or 0.
function slots.ban(state)
  local long = struct.unpack('<d', state.arg, 42)
  if long > 0 then
    state.ban = math.max(state.ban, now + long)
    set(state, '!', state.ban)
    expire(state)
  end
  return struct.pack('<d', state.ban)
end
