-- Reads the bucket `key`, and adds the cost of `arg`. This text is a part of several scripts, so
-- that those that run most often need no functions.
--
-- A tick is `whole` microseconds and part / n of one more, with 0 <= part < n <= 2^26.
--
-- The argument: 'B', n, and two spans, first their whole and then their part: the cost of the
-- request, and the reach, which is the cost of a full burst. If n is 1 there are no parts.
--
-- The value has 24 bytes. A key that does not exist is idle.
--   n        the permits of the reduced rate that wrote the value, and 2^27: format 1
--   part     the part of the tick
--   whole    the tick at which the bucket is idle again: all its permits are there
--   written  when the value was written; or, below 0, minus the end of a ban
local n, cost, reach = parse('<ddd', arg, 2)
local cost_part, reach_part = 0, 0
if n > 1 then
  cost_part, reach_part = parse('<dd', arg, 26)
end
local whole, part, ban = now, 0, 0
local value = call('GET', key)
if value then
  local old, old_part, idle, written = 0, 0, 0, 0
  if #value == 24 then
    old, old_part, idle, written = parse('<I4I4dd', value)
    old = old - 134217728
  end
  -- Written so that a number that is not one fails. 3 * SPAN is the latest tick that is stored. It
  -- was written, and a ban of it ends, before it is idle.
  if
    not (old_part < old and old <= 67108864 and idle <= 4733640000000000 and written <= idle
      and -written <= idle and idle % 1 == 0 and written % 1 == 0)
  then
    return redis.error_reply('BADSTATE key ' .. key .. ' is not a bucket of format 1')
  end
  if -written > now then
    ban = -written
  end
  if idle >= now then
    whole, part = idle, old_part
    if old ~= n then
      -- Convert the part, rounded up, so that nothing is due too early. Both are at most 2^26, so
      -- the product is below 2^53.
      local product = part * n
      local rest = math.fmod(product, old)
      part = (product - rest) / old
      if rest > 0 then
        part = part + 1
      end
      if part >= n then
        whole, part = whole + 1, part - n
      end
    end
  end
end
local next, next_part = whole + cost, part + cost_part
if next_part >= n then
  next, next_part = next + 1, next_part - n
end
-- The request is granted if the bucket would be idle by this tick, and it is not banned.
local latest = now + reach
