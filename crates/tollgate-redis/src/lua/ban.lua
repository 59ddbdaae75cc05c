-- Bans keys. For each key: how long, in microseconds, n, and the reach (whole, part). After the ban
-- the key refills from empty. A ban can be made longer, but not shorter.
-- Returns { now, ban, ... }: when the ban of each key ends, or 0 if it is not banned.
local bans = { now }
for i, key in ipairs(KEYS) do
  local n = argument(i, 4, 2)
  local state = see(key, n)
  if not state then
    return unreadable(key)
  end
  local long = argument(i, 4, 1)
  if long > 0 then
    local whole, part = now + long + argument(i, 4, 3), argument(i, 4, 4)
    state.whole, state.part = later(whole, part, state.whole, state.part)
    state.ban = math.max(state.ban, now + long)
  end
  bans[#bans + 1] = state.ban
end
for i, key in ipairs(KEYS) do
  if argument(i, 4, 1) > 0 then
    save(key)
  end
end
return bans
