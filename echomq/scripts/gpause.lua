-- gpause: a group is served no more until it is resumed.
-- KEYS  1 paused  2 ring
-- ARGV  1 group
-- Reply 1.
-- Keeps: a paused group is not on the ring; its jobs and leases stay.
redis.call('SADD', KEYS[1], ARGV[1])
redis.call('LREM', KEYS[2], 0, ARGV[1])
return 1
