-- Forgets keys, and ends their bans. Returns how many of them were known.
return redis.call('DEL', unpack(KEYS))
