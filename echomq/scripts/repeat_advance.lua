-- repeat_advance: the next run of a name.
-- KEYS  1 repeat  2 the name's record
-- ARGV  1 name  2 next run, in ms
-- Reply 1 advanced, 0 its record is missing (the name is dropped).
-- Keeps: no membership without a record.
local call = redis.call
if call('EXISTS', KEYS[2]) == 0 then
  call('ZREM', KEYS[1], ARGV[1])
  return 0
end
call('ZADD', KEYS[1], ARGV[2], ARGV[1])
return 1
