-- Sliding log: a list of a mark and the ticks of the permits, in order. At most `limit` of them are
-- within a period. A permit has one entry. The mark is '!' and the end of the ban, or 0. A list that
-- does not begin with it is of another program.
--
-- A permit counts at `at`: now, or at the last permit if that is later.
--
-- The argument: 'L', the permits of the request, the limit and the period.
local log = {}

-- Returns the tick that a text says, if it is at most `most`.
local function tick_of(text, most)
  local tick = string.match(text, '^%d+$') and tonumber(text)
  return tick and tick <= most and tick
end

-- Returns the tick of the permit with this index, or of the last one for -1. It is false or nil for
-- what is none, which another program wrote.
local function entry(key, index, most)
  if index >= 0 then
    index = index + 1
  end
  return tick_of(redis.call('LINDEX', key, index), most)
end

local function mark(ban)
  return string.format('!%.0f', ban)
end

local function refuse(key)
  return redis.error_reply('BADSTATE key ' .. key .. ' is not a log')
end

function log.see(key, arg)
  local _, n, limit, period = struct.unpack('<Bddd', arg)
  local length, last, marked = redis.call('LLEN', key) - 1, 0, 0
  local is_known = length >= 0
  if is_known then
    local head = redis.call('LINDEX', key, 0)
    marked = string.sub(head, 1, 1) == '!' and tick_of(string.sub(head, 2), 2 * SPAN)
    if length > 0 then
      last = entry(key, -1, SPAN)
    end
    if not (marked and last) then
      return refuse(key)
    end
  end
  length = math.max(length, 0)
  local ban = marked > now and marked or 0
  local at = math.max(now, last)
  local horizon = at - period
  -- How many entries are at least a period old. In most requests none is, or all are.
  local expired, young, probe = 0, length, 0
  if last <= horizon then
    expired = length
  end
  while expired < young do
    local tick = entry(key, probe, last)
    if not tick then
      return refuse(key)
    elseif tick <= horizon then
      expired = probe + 1
    else
      young = probe
    end
    probe = math.floor((expired + young) / 2)
  end
  local live, due = length - expired, 0
  if live + n > limit and n <= limit then
    local tick = entry(key, length + n - limit - 1, last)
    if not tick then
      return refuse(key)
    end
    due = tick + period
  end
  return {
    kind = log, key = key, arg = arg, fits = ban == 0 and live + n <= limit, n = n, limit = limit,
    period = period, live = live, expired = expired, last = last, at = at, horizon = horizon,
    ban = ban, marked = marked, is_known = is_known, due = due,
  }
end

-- Returns how many permits are within a period, the tick of the last one, when the request will fit
-- (0 if it does), and the end of the ban, or 0.
function log.tell(state)
  return struct.pack('<dddd', state.live, state.last, state.due, state.ban)
end

-- The key expires a second after no permit counts and the ban is over.
local function expire(state)
  local last = entry(state.key, -1, SPAN)
  last = math.max(last and last + state.period or 0, state.ban, now)
  redis.call('PEXPIRE', state.key, string.format('%d', (last - now) / 1000 + 1001))
end

-- Removes the oldest permits, and writes the mark if it is another one.
local function trim(state, n)
  if n > 0 then
    -- The last of them is kept, and the mark takes its place.
    redis.call('LTRIM', state.key, n, -1)
  end
  if n > 0 or state.ban ~= state.marked then
    redis.call('LSET', state.key, 0, mark(state.ban))
  end
end

-- Appends permits, and removes those that are a period old.
local function push(state, n)
  local key = state.key
  if state.is_known then
    trim(state, state.expired)
  else
    redis.call('RPUSH', key, mark(state.ban))
  end
  if n > 0 then
    local text, batch = string.format('%.0f', state.at), {}
    for i = 1, math.min(n, 1000) do
      batch[i] = text
    end
    for left = n, 1, -1000 do
      redis.call('RPUSH', key, unpack(batch, 1, math.min(left, 1000)))
    end
  end
  expire(state)
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
  local at, given, oldest = struct.unpack('<d', state.arg, 26), math.min(state.n, state.live), 0
  if state.ban > 0 or given == 0 then
    given = 0
  elseif at < 0 then
    oldest = given
  elseif at > state.horizon then
    given = redis.call('LREM', state.key, -given, string.format('%.0f', at))
  else
    given = 0
  end
  if given > 0 then
    trim(state, state.expired + oldest)
    expire(state)
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
    local index = first + live - state.limit - 1
    clear = (entry(state.key, index, state.at) or state.at) + state.period
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
