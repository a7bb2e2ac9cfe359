-- repeat_cancel: a name fires no more.
-- KEYS  1 repeat  2 the name's record
-- ARGV  1 name
-- Reply 1 cancelled, 0 it was not registered.
-- Keeps: record and membership go together.
local n = redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return n
