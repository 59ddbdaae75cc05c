-- Exact arithmetic. Lua has only doubles, in which integers below 2^53 are exact, so every number
-- here is an integer below 2^53. A tick is `whole` microseconds and `part` / n of one more, with
-- 0 <= part < n <= 2^26.

-- 50 years of microseconds. A cost, a reach, a ban and `now` are at most this; a stored tick is at
-- most 4 of it, and a sum is at most 5 of it, which is below 2^53.
local SPAN = 1577880000000000
local MAX_N = 67108864

-- Outside of these 50 years the clock stands still: what is not refilled stays taken.
now = math.min(math.max(now, 0), SPAN)

local function add(whole, part, whole2, part2, n)
  whole, part = whole + whole2, part + part2
  if part >= n then
    return whole + 1, part - n
  end
  return whole, part
end

-- The first tick must not be earlier than the second.
local function subtract(whole, part, whole2, part2, n)
  whole, part = whole - whole2, part - part2
  if part < 0 then
    return whole - 1, part + n
  end
  return whole, part
end

local function is_later(whole, part, whole2, part2)
  return whole > whole2 or (whole == whole2 and part > part2)
end

local function earlier(whole, part, whole2, part2)
  if is_later(whole, part, whole2, part2) then
    return whole2, part2
  end
  return whole, part
end

-- Converts a part of `old` to the same part of `n`, rounded up, so that nothing is due too early.
-- Both are at most 2^26, so the product is below 2^52.
local function rescale(whole, part, old, n)
  local product = part * n
  local rest = math.fmod(product, old)
  part = (product - rest) / old
  if rest > 0 then
    part = part + 1
  end
  return add(whole, part, 0, 0, n)
end
