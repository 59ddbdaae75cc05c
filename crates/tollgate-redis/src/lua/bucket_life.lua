-- The life of a key in milliseconds, to `next` and a second more: by then it says the same as no
-- key. The text of a number takes long, so short lives are rounded up to one that is known.
local long, life = next - now, '2001'
if long > 1000000 then
  if long <= 8000000 then
    life = '9001'
  elseif long <= 64000000 then
    life = '65001'
  else
    life = string.format('%d', long / 1000 + 1001)
  end
end
