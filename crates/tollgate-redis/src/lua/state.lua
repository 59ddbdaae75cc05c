-- The value of a key: "1:<whole>:<part>/<n>", and ":<ban>" after it while the key is banned.
--   1      the version of this format
--   whole  the microsecond at which the limit is idle again: all its permits are there
--   part   the part of a microsecond after that, in units of 1/n
--   n      the permits of the reduced rate that wrote the value
--   ban    the microsecond at which the ban ends
-- A key that does not exist is idle.

-- Returns when a key will be idle, not before now, with its part in units of 1/n, and when its ban
-- ends, or 0 if it is not banned. Returns nil if the value can't be read.
local function read(key, n)
  local value = redis.pcall('GET', key)
  if not value then
    return now, 0, 0
  end
  if type(value) ~= 'string' then
    return nil
  end
  local whole, part, old, rest = string.match(value, '^1:(%d+):(%d+)/(%d+)(.*)$')
  if not whole then
    return nil
  end
  whole, part, old = tonumber(whole), tonumber(part), tonumber(old)
  local ban = 0
  if rest ~= '' then
    ban = tonumber(string.match(rest, '^:(%d+)$') or SPAN * 4)
  end
  if whole >= 4 * SPAN or part >= old or old > MAX_N or ban > whole then
    return nil
  end
  if ban <= now then
    ban = 0
  end
  if whole < now then
    return now, 0, ban
  end
  if old ~= n then
    whole, part = rescale(whole, part, old, n)
  end
  return whole, part, ban
end

local function unreadable(key)
  return redis.error_reply('BADSTATE key ' .. key .. ' is not a tollgate state of format 1')
end

-- Returns the error for the first key whose value can't be read, or nil. A script that writes key by
-- key asks before the first.
local function any_unreadable()
  for _, key in ipairs(KEYS) do
    if not read(key, 1) then
      return unreadable(key)
    end
  end
end

-- Writes a state. The key expires a second after the limit is idle: by then it says the same as no
-- key. A ban ends before that.
local function save(key, whole, part, n, ban)
  local expiry = math.ceil((whole + 1 - now) / 1000) + 1000
  local value
  if ban > 0 then
    value = string.format('1:%.0f:%.0f/%.0f:%.0f', whole, part, n, ban)
  else
    value = string.format('1:%.0f:%.0f/%.0f', whole, part, n)
  end
  redis.call('SET', key, value, 'PX', string.format('%.0f', expiry))
end
