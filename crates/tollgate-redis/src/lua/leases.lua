-- The leases of a key: KEYS[2] is a hash of the nodes that have one. A node's field has 40 bytes:
--   out      the permits that the node holds, or has spent and not told yet
--   ends     the tick at which its lease ends: then they count as spent
--   number   the latest message of the node, and the answer to it:
--   kept     how many permits it kept
--   granted  how many it got
-- The field '!' has the sum of what is out, the tick from which on leases may have ended, the tick at
-- which the last of the nodes that wait for their turn is to ask, and the version of this format.
--
-- What is used is never less than what is out, so that permits that are not spent yet are not
-- refilled: each kind has a floor.
local function is_number(number, most)
  return number >= 0 and number <= most and number % 1 == 0
end

local function write_sum(out, look, turn)
  redis.call('HSET', KEYS[2], '!', struct.pack('<dddd', out, look, turn, 1))
end

local function foreign()
  return redis.error_reply('BADSTATE key ' .. KEYS[2] .. ' has no leases of format 1')
end

-- Returns out, ends, number, kept, granted; or nil.
local function read_lease(value)
  if #value ~= 40 then
    return nil
  end
  local out, ends, number, kept, granted = struct.unpack('<ddddd', value)
  if
    is_number(out, 2097151) and is_number(ends, 2 * SPAN) and is_number(number, 2 ^ 53)
    and is_number(kept, 2097151) and is_number(granted, 2097151)
  then
    return out, ends, number, kept, granted
  end
  return nil
end

-- Ends leases, and raises what is used to what was out. Returns what is out now, when to look for
-- ended leases again, and the last turn; or an error.
local function settle(state)
  local sum = redis.call('HGET', KEYS[2], '!')
  if not sum then
    if redis.call('EXISTS', KEYS[2]) == 1 then
      return foreign()
    end
    state.kind.floor(state, now, 0, true)
    return nil, 0, 0, 0
  end
  local out, look, turn, version = -1, 0, 0, 0
  if #sum == 32 then
    out, look, turn, version = struct.unpack('<dddd', sum)
  end
  if not (
    version == 1 and is_number(out, 2 ^ 53) and is_number(look, 2 * SPAN)
    and is_number(turn, 2 * SPAN)
  ) then
    return foreign()
  end
  if now >= look then
    local ended, first = {}, 2 * SPAN
    local all = redis.call('HGETALL', KEYS[2])
    for i = 1, #all, 2 do
      if all[i] ~= '!' then
        local held, ends = read_lease(all[i + 1])
        if not held then
          return foreign()
        end
        if ends <= now then
          ended[#ended + 1] = { node = all[i], out = held, ends = ends }
        elseif ends < first then
          first = ends
        end
      end
    end
    table.sort(ended, function(one, other)
      return one.ends < other.ends
    end)
    for _, lease in ipairs(ended) do
      state.kind.floor(state, lease.ends, out)
      out = math.max(out - lease.out, 0)
      redis.call('HDEL', KEYS[2], lease.node)
    end
    look = first
    if #ended > 0 then
      state.kind.write(state)
    end
    if redis.call('HLEN', KEYS[2]) > 1 or turn > now then
      write_sum(out, look, turn)
    else
      redis.call('DEL', KEYS[2])
    end
  end
  state.kind.floor(state, now, out, true)
  return nil, out, look, turn
end
