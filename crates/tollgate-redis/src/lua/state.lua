-- The value of a key: "1:<whole>:<part>/<n>", and ":<ban>" after it while the key is banned.
--   1      the version of this format
--   whole  the microsecond at which the limit is idle again: all its permits are there
--   part   the part of a microsecond after that, in units of 1/n
--   n      the permits of the reduced rate that wrote the value
--   ban    the microsecond at which the ban ends
-- A key that does not exist is idle. A state is { whole, part, n, ban }, with ban = 0 if there is none.

local states = {}

-- Returns the state of a key with its part in units of 1/n, or nil if the value can't be read. A key
-- that is named twice has one state, in which the second sees what the first has changed.
local function see(key, n)
  local state = states[key]
  if state then
    state.whole, state.part = rescale(state.whole, state.part, state.n, n)
    state.n = n
    return state
  end
  local value = redis.pcall('GET', key)
  if not value then
    state = { whole = 0, part = 0, n = n, ban = 0 }
  else
    if type(value) ~= 'string' then
      return nil
    end
    local whole, part, old, rest = string.match(value, '^1:(%d+):(%d+)/(%d+)(.*)$')
    local ban = rest == '' and '0' or string.match(rest or '', '^:(%d+)$')
    if not (whole and ban) then
      return nil
    end
    whole, part, old, ban = tonumber(whole), tonumber(part), tonumber(old), tonumber(ban)
    if whole >= 4 * SPAN or part >= old or old > MAX_N or ban > 2 * SPAN then
      return nil
    end
    whole, part = rescale(whole, part, old, n)
    if ban <= now then
      ban = 0
    end
    state = { whole = whole, part = part, n = n, ban = ban }
  end
  states[key] = state
  return state
end

local function unreadable(key)
  return redis.error_reply('BADSTATE the value of key ' .. key .. ' is not a tollgate state of format 1')
end

-- Writes the state of a key that was seen. The key expires a second after the limit is idle and no ban is left: by then it
-- says the same as no key.
local function save(key)
  local state = states[key]
  local value = string.format('1:%.0f:%.0f/%.0f', state.whole, state.part, state.n)
  if state.ban > 0 then
    value = value .. string.format(':%.0f', state.ban)
  end
  local last = math.max(state.whole + 1, state.ban)
  local expiry = math.ceil((last - now) / 1000) + 1000
  redis.call('SET', key, value, 'PX', string.format('%.0f', math.max(expiry, 1000)))
end

-- Returns argument j of key i, of `width` for each key.
local function argument(i, width, j)
  return tonumber(ARGV[(i - 1) * width + j])
end
