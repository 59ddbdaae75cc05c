-- Slots that are out are held.
function slots.floor(state, _, out)
  state.out = out
end

local tell = slots.tell

function slots.tell(state)
  local live = state.live
  state.live = math.min(live + (state.out or 0), 2 * state.limit)
  local told = tell(state)
  state.live = live
  return told
end

function slots.room(state, most)
  if state.ban > 0 then
    return 0
  end
  return math.max(math.min(state.limit - state.live - state.out, most), 0)
end

function slots.draw(state, permits)
  state.out = state.out + permits
end

-- Holders take slots beside the leases.
function slots.spend(state)
  slots.take(state)
end

-- Slots that a ban takes are not free before the node knows: until it asks again.
slots.stays = true

-- What is not out any more is free.
function slots.back() end

-- What is out is in the leases alone.
function slots.write() end

-- When a slot is given back is not known.
function slots.wait()
  return 0
end

-- A turn each millisecond.
function slots.refill()
  return 1000
end
