-- Sliding log: a list of the ticks of the permits, in order. At most `limit` of them are within a
-- period. A permit has one entry. While the key is banned, the last entry is 'b' and the end of the
-- ban.
--
-- A permit counts at `at`: now, or at the last permit if that is later.
--
-- The argument: 'L', the permits of the request, the limit and the period.
local log = {}

local function entry(key, index)
  return tonumber(redis.call('LINDEX', key, index))
end

function log.see(key, arg)
  local _, n, limit, period = struct.unpack('<Bddd', arg)
  local length, last, ban, has_mark = redis.call('LLEN', key), 0, 0, false
  if length > 0 then
    local tail = redis.call('LINDEX', key, -1)
    local till = string.match(tail, '^b(%d+)$')
    if till then
      has_mark, length, ban = true, length - 1, tonumber(till)
      tail = length > 0 and redis.call('LINDEX', key, -2) or '0'
    end
    last = string.match(tail, '^%d+$') and tonumber(tail)
    if not (last and last <= SPAN and ban <= 2 * SPAN) then
      return redis.error_reply('BADSTATE key ' .. key .. ' is not a log')
    end
    if ban <= now then
      ban = 0
    end
  end
  local at = math.max(now, last)
  local horizon = at - period
  -- How many entries are at least a period old. In most requests none is, or all are.
  local expired, young, probe = 0, length, 0
  if last <= horizon then
    expired = length
  end
  while expired < young do
    if entry(key, probe) <= horizon then
      expired = probe + 1
    else
      young = probe
    end
    probe = math.floor((expired + young) / 2)
  end
  local live, due = length - expired, 0
  if live + n > limit and n <= limit then
    due = entry(key, length + n - limit - 1) + period
  end
  return {
    kind = log, key = key, arg = arg, fits = ban == 0 and live + n <= limit, n = n, limit = limit,
    period = period, live = live, expired = expired, last = last, at = at, horizon = horizon,
    ban = ban, has_mark = has_mark, due = due,
  }
end

-- Returns how many permits are within a period, the tick of the last one, when the request will fit
-- (0 if it does), and the end of the ban, or 0.
function log.tell(state)
  return struct.pack('<dddd', state.live, state.last, state.due, state.ban)
end

-- Appends permits, and removes those that are a period old. The key expires a second after no
-- permit counts and the ban is over.
local function push(state, n)
  local key, last = state.key, state.last
  if state.has_mark then
    redis.call('RPOP', key)
  end
  if state.expired > 0 then
    redis.call('LTRIM', key, state.expired, -1)
  end
  if n > 0 then
    last = state.at
    local text, batch = string.format('%.0f', last), {}
    for i = 1, math.min(n, 1000) do
      batch[i] = text
    end
    for left = n, 1, -1000 do
      redis.call('RPUSH', key, unpack(batch, 1, math.min(left, 1000)))
    end
  end
  if state.ban > 0 then
    redis.call('RPUSH', key, string.format('b%.0f', state.ban))
  end
  last = math.max(last + state.period, state.ban)
  redis.call('PEXPIRE', key, string.format('%d', (last - now) / 1000 + 1001))
end

function log.take(state)
  if state.n > 0 then
    push(state, state.n)
  end
end

-- Gives permits back. The argument continues with the tick of the grant, or -1 for any permits. Of
-- these the oldest are given back: then no interval has more of those that were kept. Permits that
-- are a period old are not given back, and a banned log gets nothing. Returns how many were given
-- back.
function log.give(state)
  local mark, given = struct.unpack('<d', state.arg, 26), math.min(state.n, state.live)
  if state.ban > 0 or given == 0 then
    given = 0
  elseif mark < 0 then
    redis.call('LTRIM', state.key, state.expired + given, -1)
  elseif mark > state.horizon then
    given = redis.call('LREM', state.key, -given, string.format('%.0f', mark))
  else
    given = 0
  end
  return struct.pack('<d', given)
end

-- Takes permits whether or not they fit, up to twice the limit in all. Returns how many, their tick,
-- how many are then within a period, and when no more than the limit will be, or 0 if that is now.
function log.charge(state)
  local charged = math.max(math.min(state.n, 2 * state.limit - state.live), 0)
  local live, first, clear = state.live + charged, state.expired, 0
  if charged > 0 then
    push(state, charged)
    first = 0
  end
  if live > state.limit then
    clear = entry(state.key, first + live - state.limit - 1) + state.period
  end
  return struct.pack('<dddd', charged, state.at, live, clear)
end

-- Bans the key. The argument continues with how long. A ban can be made longer, but not shorter.
-- Returns when the ban ends, or 0.
function log.ban(state)
  local long = struct.unpack('<d', state.arg, 26)
  if long > 0 then
    state.ban = math.max(state.ban, now + long)
    push(state, 0)
  end
  return struct.pack('<d', state.ban)
end
