-- lane_counts: how many jobs wait in each lane.
-- KEYS  1 base (only there to fix the cluster slot)
-- ARGV  1 base  2 ... groups
-- Reply integers in the order given.
-- Keeps: reads only.
local counts = {}
for i = 2, #ARGV do
  counts[i - 1] = redis.call('ZCARD', ARGV[1] .. 'g:' .. ARGV[i] .. ':pending')
end
return counts
