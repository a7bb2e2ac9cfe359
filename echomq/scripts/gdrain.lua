-- gdrain: delete every job that waits in one lane.
-- KEYS  1 base (only there to fix the cluster slot)  2 lane  3 ring
-- ARGV  1 group
-- Reply how many were deleted.
-- Keeps: leases, counters, ceilings and other lanes stay.
local call = redis.call
local ids = call('ZRANGE', KEYS[2], 0, -1)
for _, id in ipairs(ids) do
  local row = KEYS[1] .. 'job:' .. id
  call('DEL', row, row .. ':logs')
end
call('DEL', KEYS[2])
call('LREM', KEYS[3], 0, ARGV[1])
return #ids
