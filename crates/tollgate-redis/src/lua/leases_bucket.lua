-- Returns what permits cost: a span. Their cost is at most a full burst's, so nothing overflows.
local function cost_of(state, permits)
  local rest = math.fmod(state.d, state.n)
  local parts = permits * rest
  local part = math.fmod(parts, state.n)
  return permits * ((state.d - rest) / state.n) + (parts - part) / state.n, part
end

-- Returns when the bucket would be idle after this many permits more.
local function idle_after(state, permits)
  local cost, cost_part = cost_of(state, permits)
  local whole, part = state.whole + cost, state.part + cost_part
  if part >= state.n then
    whole, part = whole + 1, part - state.n
  end
  return whole, part
end

local function has_room(state, permits)
  local whole, part = idle_after(state, permits)
  return not is_later(whole, part, state.latest, state.reach_part)
end

function bucket.floor(state, at, out)
  local cost, part = cost_of(state, math.min(out, state.most))
  if is_later(at + cost, part, state.whole, state.part) then
    state.whole, state.part = at + cost, part
  end
end

-- Returns how many permits are there, at most `most`.
function bucket.room(state, most)
  if state.ban > 0 then
    return 0
  end
  most = math.min(most, state.most)
  -- A guess, because a quotient of doubles can be one too large or too small.
  local left = state.latest - state.whole + (state.reach_part - state.part) / state.n
  local room = math.max(math.min(math.floor(left / (state.d / state.n)), most), 0)
  while room > 0 and not has_room(state, room) do
    room = room - 1
  end
  while room < most and has_room(state, room + 1) do
    room = room + 1
  end
  return room
end

function bucket.draw(state, permits)
  state.whole, state.part = idle_after(state, permits)
end

function bucket.back(state, permits)
  local cost, part = cost_of(state, permits)
  state.whole, state.part = state.whole - cost, state.part - part
  if state.part < 0 then
    state.whole, state.part = state.whole - 1, state.part + state.n
  end
  if state.whole < now then
    state.whole, state.part = now, 0
  end
end

function bucket.write(state)
  save(state, state.whole, state.part, state.ban)
end

-- Takes permits beside the leases.
function bucket.spend(state, permits)
  bucket.draw(state, permits)
  bucket.write(state)
end

-- Returns how long it takes until there is one permit.
function bucket.wait(state)
  local whole, part = idle_after(state, 1)
  if part > state.reach_part then
    whole = whole + 1
  end
  return math.max(whole - state.latest, state.ban - now, 0)
end

-- Returns how long a permit takes to refill.
function bucket.refill(state)
  return math.max(math.floor(state.d / state.n), 1)
end
