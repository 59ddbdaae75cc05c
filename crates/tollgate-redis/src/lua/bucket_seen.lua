local is_denied = ban > 0 or next > latest or (next == latest and next_part > reach_part)
return {
  kind = bucket, key = key, arg = arg, fits = not is_denied, whole = whole, part = part, n = n,
  d = d, ban = ban, next = next, next_part = next_part, latest = latest, reach_part = reach_part,
  cost = cost, cost_part = cost_part,
}
end
