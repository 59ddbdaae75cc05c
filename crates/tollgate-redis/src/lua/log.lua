-- Sliding log: a list of the ticks of the permits, in order. At most `limit` of them are within a
-- period. A permit has one entry. While the key is banned, the last entry is 'b' and the end of the
-- ban.
--
-- The argument: 'L', the permits of the request, the limit and the period.
local log = {}

local function entry(key, index)
  return tonumber((redis.call('LINDEX', key, index)))
end

function log.see(key, arg)
  local _, n, limit, period = struct.unpack('<Bddd', arg)
  local length, last, ban, has_mark = redis.call('LLEN', key), 0, 0, false
  if length > 0 then
    local tail = redis.call('LINDEX', key, -1)
    local till = tonumber(string.match(tail, '^b(%d+)$') or '')
    if till then
      has_mark, length = true, length - 1
      if till > now then
        ban = till
      end
      tail = length > 0 and redis.call('LINDEX', key, -2) or '0'
    end
    last = tonumber(tail)
    if not (last and last < 4 * SPAN and ban < 4 * SPAN) then
      return redis.error_reply('BADSTATE key ' .. key .. ' is not a log')
    end
  end
  -- How many entries are at least a period old.
  local horizon, expired = now - period, 0
  if length > 0 and last <= horizon then
    expired = length
  elseif length > 0 and entry(key, 0) <= horizon then
    -- Entry `expired` - 1 is that old, and entry `young` is not.
    local young = length - 1
    expired = 1
    while expired < young do
      local middle = math.floor((expired + young) / 2)
      if entry(key, middle) <= horizon then
        expired = middle + 1
      else
        young = middle
      end
    end
  end
  local live = length - expired
  local fits, due = ban == 0 and live + n <= limit, 0
  if live + n > limit and n <= limit then
    due = entry(key, length + n - limit - 1) + period
  end
  return {
    kind = log, key = key, arg = arg, fits = fits, n = n, limit = limit, period = period,
    length = length, live = live, expired = expired, last = last, ban = ban, has_mark = has_mark,
    due = due,
  }
end

-- Returns how many permits are within a period, the tick of the last one, when the request will fit
-- (0 if it does), and the end of the ban, or 0.
function log.tell(state)
  return struct.pack('<dddd', state.live, state.last, state.due, state.ban)
end

-- Appends permits, at now or at the last permit if that is later. The key expires a second after the
-- last entry and the ban.
local function push(state, n)
  local key, at = state.key, now
  if state.last > now and state.length > 0 then
    at = state.last
  end
  if state.has_mark then
    redis.call('RPOP', key)
  end
  if state.expired > 0 then
    redis.call('LTRIM', key, state.expired, -1)
  end
  local text, batch = string.format('%.0f', at), {}
  for i = 1, n do
    batch[#batch + 1] = text
    if #batch == 1000 or i == n then
      redis.call('RPUSH', key, unpack(batch))
      batch = {}
    end
  end
  if state.ban > 0 then
    redis.call('RPUSH', key, string.format('b%.0f', state.ban))
  end
  if n > 0 then
    state.last, state.length = at, state.length + n
  end
  local last = math.max(state.last + state.period, state.ban)
  redis.call('PEXPIRE', key, string.format('%d', (last - now) / 1000 + 1001))
end

function log.take(state)
  if state.n > 0 then
    push(state, state.n)
  end
end

-- Gives permits back. The argument continues with the tick of the grant, or -1 for the last permits.
-- Those that are a period old are not given back, and a banned log gets nothing. Returns how many
-- were given back.
function log.give(state)
  local mark = struct.unpack('<d', state.arg, 26)
  local given = 0
  if state.ban == 0 and state.n > 0 and state.live > 0 then
    if state.has_mark then
      redis.call('RPOP', state.key)
    end
    if mark < 0 then
      given = math.min(state.n, state.live)
      redis.call('LTRIM', state.key, 0, -given - 1)
    elseif mark > now - state.period then
      local most = math.min(state.n, state.live)
      given = redis.call('LREM', state.key, -most, string.format('%.0f', mark))
    end
  end
  return struct.pack('<d', given)
end

-- Takes permits whether or not they fit, up to twice the limit in all. Returns how many, how many
-- are then within a period, and when no more than the limit will be, or 0 if that is now.
function log.charge(state)
  local charged = math.max(math.min(state.n, 2 * state.limit - state.live), 0)
  local live, clear = state.live + charged, 0
  if charged > 0 then
    push(state, charged)
  end
  if live > state.limit then
    local first = live - state.limit - 1
    if charged == 0 then
      first = first + state.expired
    end
    clear = entry(state.key, first) + state.period
  end
  return struct.pack('<ddd', charged, live, clear)
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
