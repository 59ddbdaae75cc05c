-- Reads the bucket `key`, and adds the cost of `arg`. This text is a part of several scripts, so
-- that those that run most often need no functions.
--
-- A rate is n permits every d microseconds, reduced. A tick is `whole` microseconds and part / n of
-- one more, with 0 <= part < n <= 2^26. So a permit costs d parts.
--
-- The argument: 'B', n, d, and two spans, first their whole and then their part: the cost of the
-- request, and the reach, which is the cost of a full burst. If n is 1 there are no parts.
--
-- The value has 32 bytes. A key that does not exist is idle.
--   n        the permits of the rate that wrote the value, and 2^28: format 2
--   part     the part of the tick
--   whole    the tick at which the bucket is idle again: all its permits are there
--   written  when the value was written; or, below 0, minus the end of a ban
--   d        the microseconds of the rate that wrote the value
-- Format 1 has 2^27 in place of 2^28, and no d.
local n, d, cost, reach = parse('<dddd', arg, 2)
local cost_part, reach_part = 0, 0
if n > 1 then
  cost_part, reach_part = parse('<dd', arg, 34)
end
local whole, part, ban = now, 0, 0
local value = call('GET', key)
if value then
  local old, old_part, idle, written, old_d = 0, 0, 0, 0, d
  if #value == 32 then
    old, old_part, idle, written, old_d = parse('<I4I4ddd', value)
    old = old - 268435456
  elseif #value == 24 then
    old, old_part, idle, written = parse('<I4I4dd', value)
    old = old - 134217728
  end
  -- Written so that a number that is not one fails. 3 * SPAN is the latest tick that is stored. It
  -- was written, and a ban of it ends, before it is idle.
  if
    not (old_part < old and old <= 67108864 and idle <= 4733640000000000 and written <= idle
      and -written <= idle and idle % 1 == 0 and written % 1 == 0
      and (old_d == d or old_d >= 1 and old_d <= SPAN and old_d % 1 == 0))
  then
    return redis.error_reply('BADSTATE key ' .. key .. ' is not a bucket of format 1 or 2')
  end
  if -written > now then
    ban = -written
  end
  if idle >= now then
    whole, part = idle, old_part
    if old ~= n or old_d ~= d then
      if #value == 32 and written >= 0 then
        -- What was used stays used.
