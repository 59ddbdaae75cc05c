-- Returns how long what is used of a rate takes to refill at another one: a span. n permits come
-- every d microseconds, and so `old` every old_d. It is rounded up, so that nothing is due too
-- early, and at most SPAN.
--
-- A part of the old rate is 1 / old_d of a permit, and so d / old_d parts. In here, a span has a
-- third number: `rest`, of which old_d are a part. So sums are exact.
local function used_of(span, span_part, old, old_d, n, d)
  local function add(whole, part, rest, whole2, part2, rest2)
    whole, part, rest = whole + whole2, part + part2, rest + rest2
    if rest >= old_d then
      part, rest = part + 1, rest - old_d
    end
    if part >= n then
      whole, part = whole + 1, part - n
    end
    if whole >= SPAN then
      return SPAN, 0, 0
    end
    return whole, part, rest
  end
  local function times(count, whole, part, rest)
    local all, all_part, all_rest = 0, 0, 0
    while count > 0 do
      local bit = math.fmod(count, 2)
      if bit > 0 then
        all, all_part, all_rest = add(all, all_part, all_rest, whole, part, rest)
      end
      whole, part, rest = add(whole, part, rest, whole, part, rest)
      count = (count - bit) / 2
    end
    return all, all_part, all_rest
  end
  local rest = math.fmod(d, old_d)
  local parts = (d - rest) / old_d
  local part = math.fmod(parts, n)
  local whole = (parts - part) / n
  local used, used_part, used_rest = times(span, times(old, whole, part, rest))
  used, used_part, used_rest =
    add(used, used_part, used_rest, times(span_part, whole, part, rest))
  if used_rest > 0 then
    used, used_part = add(used, used_part, 0, 0, 1, 0)
  end
  return used, used_part
end
