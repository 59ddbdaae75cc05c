-- Token bucket, GCRA and leaky bucket: one line, the tick at which the bucket is idle again.
local function is_later(whole, part, whole2, part2)
  return whole > whole2 or (whole == whole2 and part > part2)
end

-- Returns the earlier of two ticks.
local function earlier(whole, part, whole2, part2)
  if is_later(whole, part, whole2, part2) then
    return whole2, part2
  end
  return whole, part
end

-- Writes the bucket of a state, idle at `next`. A ban ends before that.
local function save(state, next, part, ban)
  local written = now
  if ban > 0 then
    written = -ban
  end
  local value = pack('<I4I4ddd', state.n + 268435456, part, next, written, state.d)
  call('PSETEX', state.key, life_of(next), value)
end

local bucket = {}

-- Returns part, whole, and the end of the ban, or 0.
function bucket.tell(state)
  return pack('<ddd', state.part, state.whole, state.ban)
end

-- Takes what see found to fit. A request of no permits changes nothing.
function bucket.take(state)
  if state.cost > 0 or state.cost_part > 0 then
    save(state, state.next, state.next_part, 0)
  end
end

-- Takes the cost if it is due within a wait, with which the argument continues. It is due at the
-- first microsecond at which it is within the reach, and counts from no earlier tick. Returns 1 or
-- 0, and what tell returns.
function bucket.reserve(state)
  local due, granted = now, 0
  if is_later(state.next, state.next_part, state.latest, state.reach_part) then
    due = state.next - state.latest + now
    if state.next_part > state.reach_part then
      due = due + 1
    end
  end
  if state.ban == 0 and due <= now + parse('<d', state.arg, 50) then
    granted = 1
    if state.whole < due then
      state.next, state.next_part = due + state.cost, state.cost_part
    end
    bucket.take(state)
  end
  return pack('<d', granted) .. bucket.tell(state)
end

-- Gives the cost back. What time has refilled is not given back twice, and a banned bucket gets
-- nothing. The argument continues with the mark of the grant (whole, part): when the bucket was to
-- be idle after it; 1 for a reservation, which gets nothing back while others wait behind it; and
-- the rate of the grant (n, d) if it is faster than this one, or zeros. Then the mark is as if the
-- rate changed now. Returns how much was given back, as a span (whole, part).
function bucket.give(state)
  local mark, mark_part, is_reserved, mark_n, mark_d = parse('<ddddd', state.arg, 50)
  if mark_n > 0 and mark >= now then
    mark, mark_part = used_of(mark - now, mark_part, mark_n, mark_d, state.n, state.d)
    mark = mark + now
  end
  local whole, part = state.whole, state.part
  local given, given_part = 0, 0
  local is_last = whole == mark and part == mark_part
  local waits = is_later(whole, part, state.latest, state.reach_part)
    or is_later(mark, mark_part, state.latest, state.reach_part)
  local may = state.ban == 0 and (is_reserved == 0 or is_last or not waits)
  local top, top_part = earlier(whole, part, mark, mark_part)
  if may and is_later(top, top_part, now, 0) then
    given, given_part = earlier(state.cost, state.cost_part, top - now, top_part)
  end
  if given > 0 or given_part > 0 then
    whole, part = whole - given, part - given_part
    if part < 0 then
      whole, part = whole - 1, part + state.n
    end
    save(state, whole, part, 0)
  end
  return pack('<dd', given, given_part)
end

-- Takes the cost whether or not it fits, up to 50 years ahead. Returns when the bucket would have
-- been idle, and when it will be (whole, part, whole, part).
function bucket.charge(state)
  local next, next_part = earlier(state.next, state.next_part, now + SPAN, 0)
  if is_later(next, next_part, state.whole, state.part) then
    save(state, next, next_part, state.ban)
  else
    next, next_part = state.whole, state.part
  end
  return pack('<dddd', state.whole, state.part, next, next_part)
end

-- Bans the bucket. The argument continues with how long. After the ban it refills from empty. A ban
-- can be made longer, but not shorter. Returns when the ban ends, or 0.
function bucket.ban(state)
  local long = parse('<d', state.arg, 50)
  local ban = state.ban
  if long > 0 then
    local whole, part = state.latest + long, state.reach_part
    if is_later(state.whole, state.part, whole, part) then
      whole, part = state.whole, state.part
    end
    ban = math.max(ban, now + long)
    save(state, whole, part, ban)
  end
  return pack('<d', ban)
end
