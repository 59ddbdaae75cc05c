-- Concurrency: a sorted set of holders, each with the tick at which its lease ends. A holder that
-- crashes gives its slot back then. The first member is the mark '!'. Its score is minus the end of
-- the ban, or 0. A set without it is of another program.
--
-- The argument: 'C', the permits of the request, the limit, the lease, the number of the first
-- holder, and 8 bytes that the names of this client's holders begin with.
local slots = {}

-- Returns a tick as a score. Without a format, Lua would write 14 digits.
local function score(tick)
  return string.format('%.0f', tick)
end

-- Returns the highest score.
local function highest_of(key)
  return tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2])
end

-- Written so that a number that is not one is no tick.
local function is_tick(number)
  return number >= 0 and number <= 2 * SPAN and number % 1 == 0
end

function slots.see(key, arg)
  local _, n, limit, lease, first = struct.unpack('<Bdddd', arg)
  local live, last, ban = 0, 0, 0
  local mark = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if mark[1] then
    local lowest, highest = tonumber(mark[2]), highest_of(key)
    if not (mark[1] == '!' and is_tick(-lowest) and is_tick(math.max(highest, 0))) then
      return redis.error_reply('BADSTATE key ' .. key .. ' has no slots')
    end
    live = redis.call('ZCOUNT', key, '(' .. score(now), '+inf')
    if live > 0 then
      last = highest
    end
    if -lowest > now then
      ban = -lowest
    end
  end
  return {
    kind = slots, key = key, arg = arg, fits = ban == 0 and live + n <= limit, n = n, limit = limit,
    lease = lease, first = first, base = string.sub(arg, 34, 41), live = live, last = last,
    ban = ban,
  }
end

-- Returns how many slots are held, when the last lease ends (0 if there is none), the number of the
-- first holder, and the end of the ban, or 0.
function slots.tell(state)
  return struct.pack('<dddd', state.live, state.last, state.first, state.ban)
end

local function holder(state, i)
  return state.base .. score(state.first + i)
end

-- The key expires a second after the last lease and the ban have ended.
local function expire(state)
  local last = math.max(highest_of(state.key), state.ban, now)
  redis.call('PEXPIRE', state.key, string.format('%d', (last - now) / 1000 + 1001))
end

-- Removes the holders whose leases have ended.
local function clean(state)
  redis.call('ZREMRANGEBYSCORE', state.key, '(0', score(now))
end

-- Writes the mark, and begins the leases of these holders.
local function save(state, names)
  local batch, ends = { score(0 - state.ban), '!' }, score(now + state.lease)
  for _, name in ipairs(names) do
    batch[#batch + 1], batch[#batch + 2] = ends, name
    if #batch >= 1000 then
      redis.call('ZADD', state.key, unpack(batch))
      batch = {}
    end
  end
  if #batch > 0 then
    redis.call('ZADD', state.key, unpack(batch))
  end
  expire(state)
end

local function add(state, n)
  local names = {}
  for i = 0, n - 1 do
    names[i + 1] = holder(state, i)
  end
  clean(state)
  save(state, names)
end

function slots.take(state)
  if state.n > 0 then
    add(state, state.n)
  end
end

-- Frees the slots of the holders. Returns how many were still held.
function slots.give(state)
  local given, batch = 0, {}
  if state.n > 0 and state.live > 0 then
    clean(state)
    for i = 1, state.n do
      batch[#batch + 1] = holder(state, i - 1)
      if #batch >= 1000 or i == state.n then
        given = given + redis.call('ZREM', state.key, unpack(batch))
        batch = {}
      end
    end
  end
  if given > 0 then
    expire(state)
  end
  return struct.pack('<d', given)
end

-- Begins the leases of the holders again. Returns how many were still held.
function slots.renew(state)
  local held = {}
  for i = 0, state.n - 1 do
    local name = holder(state, i)
    if tonumber(redis.call('ZSCORE', state.key, name) or 0) > now then
      held[#held + 1] = name
    end
  end
  if #held > 0 then
    save(state, held)
  end
  return struct.pack('<d', #held)
end

-- Takes slots whether or not they are free, up to twice the limit in all. Returns how many, how many
-- are then held, and when the last lease or the ban ends, or 0.
function slots.charge(state)
  local charged = math.max(math.min(state.n, 2 * state.limit - state.live), 0)
  local last = math.max(state.last, state.ban)
  if charged > 0 then
    add(state, charged)
    last = math.max(last, now + state.lease)
  end
  return struct.pack('<ddd', charged, state.live + charged, last)
end

-- Bans the key. The argument continues with how long. A ban can be made longer, but not shorter.
-- Returns when the ban ends, or 0.
function slots.ban(state)
  local long = struct.unpack('<d', state.arg, 42)
  if long > 0 then
    state.ban = math.max(state.ban, now + long)
    save(state, {})
  end
  return struct.pack('<d', state.ban)
end
