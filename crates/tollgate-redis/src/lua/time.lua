-- now: microseconds since 2026-01-01 00:00 UTC, on the server's clock. The two parts of TIME are
-- joined by arithmetic; as text they would lose leading zeros.
local time = redis.call('TIME')
local now = (time[1] - 1767225600) * 1000000 + time[2]
