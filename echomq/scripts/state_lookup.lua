-- state_lookup: where a job is.
-- KEYS  1 pending  2 active  3 schedule  4 dead  5 row
-- ARGV  1 id
-- Reply pending, active, scheduled, dead, awaiting_children, unknown (a row in no set: a job that waits in
-- a lane reads so) or absent.
-- Keeps: reads only; the set decides, not the row's own state.
local call = redis.call
for i, word in ipairs({'pending', 'active', 'scheduled', 'dead'}) do
  if call('ZSCORE', KEYS[i], ARGV[1]) then return word end
end
if call('HGET', KEYS[5], 'state') == 'awaiting_children' then return 'awaiting_children' end
if call('EXISTS', KEYS[5]) == 1 then return 'unknown' end
return 'absent'
