-- Windows: fixed, or sliding by the counts of two. A window is told by the tick at which it ends.
--
-- The argument: 'W', the permits of the request, the limit, the period, how much the origin of
-- ticks is after the beginning of a window (or -1 if the first permit begins it), and 1 if it
-- slides.
--
-- The value has 33 bytes. A key that does not exist has no counts.
--   2        the version of this format
--   count    the permits of the window, below 2^52
--   before   the permits of the window before it, below 2^52; 0 if it does not slide
--   ends     the tick at which the window ends
--   written  when the value was written; or, below 0, minus the end of a ban
local LIMB = 67108864 -- 2^26
local MOST = 4503599627370495 -- 2^52 - 1

-- Multiplies two numbers below 2^52. Returns high and low: the product is high * 2^52 + low.
local function multiply(a, b)
  local a0, b0 = math.fmod(a, LIMB), math.fmod(b, LIMB)
  local a1, b1 = (a - a0) / LIMB, (b - b0) / LIMB
  local low = a0 * b0
  local low0 = math.fmod(low, LIMB)
  local middle = a0 * b1 + a1 * b0 + (low - low0) / LIMB
  local middle0 = math.fmod(middle, LIMB)
  return a1 * b1 + (middle - middle0) / LIMB, middle0 * LIMB + low0
end

-- Returns the end of the window that a tick is in. If the first permit begins it, it begins now.
local function end_of(tick, period, shift)
  if shift < 0 then
    return tick + period
  end
  return tick - math.fmod(tick + shift, period) + period
end

-- Moves counts on to the window that a tick is in. They stay in a later window, as the clock may
-- have gone back. Returns count, before and ends.
local function move_on(tick, count, before, ends, period, shift, slides)
  if tick >= ends then
    local next = end_of(tick, period, shift)
    before = 0
    if slides == 1 and next - ends <= period then
      before = count
    end
    return 0, before, next
  end
  if count == 0 and shift < 0 then
    -- All permits were given back, so that the next one begins a window.
    ends = math.max(ends, end_of(tick, period, shift))
  end
  return count, before * slides, ends
end

-- Written so that a number that is not one is no count.
local function is_count(number)
  return number >= 0 and number <= MOST and number % 1 == 0
end

local window = {}

function window.see(key, arg)
  local _, n, limit, period, shift, slides = struct.unpack('<Bddddd', arg)
  local count, before, ends, ban = 0, 0, 0, 0
  local value = redis.call('GET', key)
  if value then
    local version, written
    if #value == 33 then
      version, count, before, ends, written = struct.unpack('<Bdddd', value)
    end
    -- It was written, and a ban of it ends, before the window ends.
    if
      not (version == 2 and is_count(count) and is_count(before) and ends < 4 * SPAN
        and ends % 1 == 0 and written % 1 == 0 and written <= ends and -written <= ends)
    then
      return redis.error_reply('BADSTATE key ' .. key .. ' is not a window of format 2')
    end
    if -written > now then
      ban = -written
    end
  end
  count, before, ends = move_on(now, count, before, ends, period, shift, slides)
  local fits = ban == 0 and count + n <= limit
  if fits and before > 0 then
    -- before * left / period + count + n <= limit, without a quotient.
    local high, low = multiply(before, math.min(ends - now, period))
    local most, most_low = multiply(limit - count - n, period)
    fits = high < most or (high == most and low <= most_low)
  end
  return {
    kind = window, key = key, arg = arg, fits = fits, n = n, limit = limit, period = period,
    shift = shift, slides = slides, count = count, before = before, ends = ends, ban = ban,
  }
end

-- Returns the counts, the end of the window, and the end of the ban, or 0.
function window.tell(state)
  return struct.pack('<dddd', state.count, state.before, state.ends, state.ban)
end

-- Writes a window. The key expires a second after the last tick at which a permit of it counts.
local function save(state)
  local written, last = now, now
  if state.ban > 0 then
    written = -state.ban
  end
  if state.slides == 1 and state.count > 0 then
    last = end_of(state.ends, state.period, state.shift)
  elseif state.count + state.before > 0 then
    last = state.ends
  end
  local value = struct.pack('<Bdddd', 2, state.count, state.before, state.ends, written)
  redis.call('SET', state.key, value, 'PX', string.format('%d', (last - now) / 1000 + 1001))
end

function window.take(state)
  if state.n > 0 then
    state.count = state.count + state.n
    save(state)
  end
end

-- Gives permits back. The argument continues with the end of the window of the grant, or -1 for any
-- permits of this window. Those of earlier windows are not given back, and a banned window gets
-- nothing. Returns how many were given back.
function window.give(state)
  local mark = struct.unpack('<d', state.arg, 42)
  local given = 0
  if state.ban == 0 and (mark < 0 or mark == state.ends) then
    given = math.min(state.n, state.count)
  end
  if given > 0 then
    state.count = state.count - given
    save(state)
  end
  return struct.pack('<d', given)
end

-- Takes permits whether or not they fit. Returns how many, and what the window then is.
function window.charge(state)
  local charged = math.min(state.n, MOST - state.count)
  if charged > 0 then
    state.count = state.count + charged
    save(state)
  end
  return struct.pack('<d', charged) .. window.tell(state)
end

-- Bans the key. The argument continues with how long. The window in which the ban ends grants
-- nothing. A ban can be made longer, but not shorter. Returns when the ban ends, or 0.
function window.ban(state)
  local long = struct.unpack('<d', state.arg, 42)
  if long > 0 then
    local stop = now + long
    state.count, state.before, state.ends = move_on(
      stop, state.count, state.before, state.ends, state.period, state.shift, state.slides
    )
    state.count = math.max(state.count, state.limit)
    state.ban = math.max(state.ban, stop)
    save(state)
  end
  return struct.pack('<d', state.ban)
end
