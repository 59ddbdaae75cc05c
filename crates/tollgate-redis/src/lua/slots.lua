-- Concurrency: a sorted set of holders, each with the tick at which its lease ends. A holder that
-- crashes gives its slot back then. While the key is banned, '!' has the end of the ban.
--
-- The argument: 'C', the permits of the request, the limit, the lease, the number of the first
-- holder, and 8 bytes that the numbers of this client begin with.
local slots = {}

function slots.see(key, arg)
  local _, n, limit, lease, first = struct.unpack('<Bdddd', arg)
  local live = redis.call('ZCOUNT', key, string.format('(%.0f', now), '+inf')
  local ban = tonumber(redis.call('ZSCORE', key, '!') or 0)
  if ban > now then
    live = live - 1
  else
    ban = 0
  end
  return {
    kind = slots, key = key, arg = arg, fits = ban == 0 and live + n <= limit, n = n, limit = limit,
    lease = lease, first = first, base = string.sub(arg, 34, 41), live = live, ban = ban,
  }
end

-- Returns how many slots are held, the number of the first holder, and the end of the ban, or 0.
function slots.tell(state)
  return struct.pack('<ddd', state.live, state.first, state.ban)
end

local function holder(state, i)
  return state.base .. string.format('%.0f', state.first + i)
end

-- The key expires a second after the last lease.
local function expire(key)
  local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]
  if last then
    redis.call('PEXPIRE', key, string.format('%d', math.max(last - now, 0) / 1000 + 1001))
  end
end

local function add(state, n)
  redis.call('ZREMRANGEBYSCORE', state.key, '-inf', string.format('%.0f', now))
  local ends = string.format('%.0f', now + state.lease)
  for i = 0, n - 1 do
    redis.call('ZADD', state.key, ends, holder(state, i))
  end
  expire(state.key)
end

function slots.take(state)
  if state.n > 0 then
    add(state, state.n)
  end
end

-- Frees the slots of the holders, or none for a refund, for which the argument continues with -1.
-- Returns how many were still held.
function slots.give(state)
  local mark, given = struct.unpack('<d', state.arg, 42), 0
  if mark >= 0 then
    for i = 0, state.n - 1 do
      local ends = tonumber(redis.call('ZSCORE', state.key, holder(state, i)) or 0)
      if ends > now then
        given = given + redis.call('ZREM', state.key, holder(state, i))
      end
    end
  end
  return struct.pack('<d', given)
end

-- Begins the leases of the holders again. Returns how many were still held.
function slots.renew(state)
  local held, ends = 0, string.format('%.0f', now + state.lease)
  for i = 0, state.n - 1 do
    local name = holder(state, i)
    if tonumber(redis.call('ZSCORE', state.key, name) or 0) > now then
      redis.call('ZADD', state.key, ends, name)
      held = held + 1
    end
  end
  expire(state.key)
  return struct.pack('<d', held)
end

-- Takes slots whether or not they are free, up to twice the limit in all. Returns how many, and how
-- many are then held.
function slots.charge(state)
  local charged = math.max(math.min(state.n, 2 * state.limit - state.live), 0)
  if charged > 0 then
    add(state, charged)
  end
  return struct.pack('<dd', charged, state.live + charged)
end

-- Bans the key. The argument continues with how long. A ban can be made longer, but not shorter.
-- Returns when the ban ends, or 0.
function slots.ban(state)
  local long = struct.unpack('<d', state.arg, 42)
  if long > 0 then
    state.ban = math.max(state.ban, now + long)
    redis.call('ZADD', state.key, string.format('%.0f', state.ban), '!')
    expire(state.key)
  end
  return struct.pack('<d', state.ban)
end
