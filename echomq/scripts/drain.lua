-- drain: delete every job that waits on the flat queue, and the scheduled ones if asked.
-- KEYS  1 base  2 pending  [3 schedule]
-- Reply how many were deleted.
-- Keeps: leased and dead jobs, lanes and the repeat registry stay.
local call = redis.call
local total = 0
for i = 2, #KEYS do
  local ids = call('ZRANGE', KEYS[i], 0, -1)
  for _, id in ipairs(ids) do
    local row = KEYS[1] .. 'job:' .. id
    call('DEL', row, row .. ':logs')
  end
  call('DEL', KEYS[i])
  total = total + #ids
end
return total
