-- repeat_register: a name that fires every so often.
-- KEYS  1 repeat  2 the name's record
-- ARGV  1 name  2 every ms  3 template  4 first run, in ms
-- Reply 1 registered, 0 the name exists already (nothing is changed).
-- Keeps: record and membership appear together. The times are the client's.
local call = redis.call
if call('EXISTS', KEYS[2]) == 1 then return 0 end
call('HSET', KEYS[2], 'every_ms', ARGV[2], 'template', ARGV[3])
call('ZADD', KEYS[1], ARGV[4], ARGV[1])
return 1
