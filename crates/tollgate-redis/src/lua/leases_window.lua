-- Permits that were out at a moment of a window, or are out now, may be spent in it.
function window.floor(state, at, out, is_now)
  local begins = state.ends - state.period
  if is_now or at > begins then
    state.count = math.max(state.count, out)
  elseif state.slides == 1 and at > begins - state.period then
    state.before = math.max(state.before, out)
  end
end

-- Returns how many permits are there, at most `most`.
function window.room(state, most)
  if state.ban > 0 then
    return 0
  end
  local room = math.max(math.min(state.limit - state.count, most), 0)
  if state.before > 0 and room > 0 then
    -- A guess, because a quotient of doubles can be one too large or too small.
    local left = math.min(state.ends - now, state.period)
    local high, low = multiply(state.before, left)
    local function fits(permits)
      local most_high, most_low = multiply(state.limit - state.count - permits, state.period)
      return high < most_high or (high == most_high and low <= most_low)
    end
    local weight = math.floor(state.before * (left / state.period))
    room = math.max(math.min(room, state.limit - state.count - weight + 1), 0)
    while room > 0 and not fits(room) do
      room = room - 1
    end
  end
  return room
end

function window.draw(state, permits)
  state.count = state.count + permits
end

function window.back(state, permits)
  state.count = math.max(state.count - permits, 0)
end

function window.write(state)
  save(state)
end

-- Takes permits beside the leases.
function window.spend(state, permits)
  window.draw(state, permits)
  window.write(state)
end

-- Returns how long it takes until there may be one permit: at most until the window ends.
function window.wait(state)
  if window.room(state, 1) > 0 then
    return 0
  end
  local left = math.max(state.ends - now, 0)
  if state.slides == 1 and state.before > 0 and state.count < state.limit then
    -- A permit of the window before stops to count each period / before.
    left = math.min(left, math.floor(state.period / state.before) + 1)
  end
  return math.max(left, state.ban - now)
end

-- Returns how long a permit takes to refill, on average.
function window.refill(state)
  return math.max(math.floor(state.period / state.limit), 1)
end
