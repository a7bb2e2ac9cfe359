-- gweight: how many jobs of a group a weighted claim serves in one turn.
-- KEYS  1 gweight
-- ARGV  1 group  2 weight
-- Reply 1.
-- Keeps: the ring is not touched.
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
