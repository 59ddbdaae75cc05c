-- Lua has only doubles, in which integers below 2^53 are exact. Every number in these scripts is an
-- integer below 2^53.

local call, pack, parse = redis.call, struct.pack, struct.unpack

-- 50 years of microseconds. Outside of these 50 years the clock stands still: what is not refilled
-- stays taken.
local SPAN = 1577880000000000
if now > SPAN then
  now = SPAN
elseif now < 0 then
  now = 0
end
