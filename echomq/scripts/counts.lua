-- counts: the sizes of sets and the values of counters, at one instant.
-- KEYS  1 base  2 ... sets
-- ARGV  1 ... metric names
-- Reply integers: sets first, then metrics.
-- Keeps: reads only.
local call = redis.call
local counts = {}
for i = 2, #KEYS do counts[#counts + 1] = call('ZCARD', KEYS[i]) end
for _, name in ipairs(ARGV) do
  counts[#counts + 1] = tonumber(call('HGET', KEYS[1] .. 'metrics:' .. name, 'count') or 0)
end
return counts
