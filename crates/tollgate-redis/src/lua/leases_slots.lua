-- Slots that are out are held.
function slots.floor(state, _, out)
  state.out = out
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
