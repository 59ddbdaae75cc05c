        -- From now on it refills at the new rate, so a denied call writes this too.
        whole, part = used_of(idle - now, old_part, old, old_d, n, d)
        whole = whole + now
        value = pack('<I4I4ddd', n + 268435456, part, whole, now, d)
        call('PSETEX', key, string.format('%d', (whole - now) / 1000 + 1001), value)
      else
        -- Keep the time: a ban's, or of format 1. Convert the part, rounded up, so that nothing is
        -- due too early. Both are at most 2^26, so the product is below 2^53.
        local product = part * n
        local rest = math.fmod(product, old)
        part = (product - rest) / old
        if rest > 0 then
          part = part + 1
        end
        if part >= n then
          whole, part = whole + 1, part - n
        end
      end
    end
  end
end
local next, next_part = whole + cost, part + cost_part
if next_part >= n then
  next, next_part = next + 1, next_part - n
end
-- The request is granted if the bucket would be idle by this tick, and it is not banned.
local latest = now + reach
