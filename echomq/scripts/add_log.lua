-- add_log: append a line to a job's log, keeping the last lines only if asked.
-- KEYS  1 row  2 logs
-- ARGV  1 line  2 keep, or '' for all
-- Reply number of lines kept, -1 no such row.
-- Keeps: no log without a row.
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
local count = redis.call('RPUSH', KEYS[2], ARGV[1])
local keep = tonumber(ARGV[2])
if keep then
  redis.call('LTRIM', KEYS[2], -keep, -1)
  if keep < count then return keep end
end
return count
