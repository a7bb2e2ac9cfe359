-- flow_deliver: a child that completed in another queue counts for its parent.
-- KEYS  1 parent's :dependencies  2 parent's :processed  3 parent row
-- ARGV  1 child id  2 result  3 parent id  4 base of the parent's queue
-- Reply 1.
-- Keeps: delivering the same child again changes nothing; the last one releases the parent to flat
-- pending, with a wake token.
local call = redis.call
if call('HSETNX', KEYS[2], ARGV[1], ARGV[2]) == 1 and call('DECR', KEYS[1]) <= 0 then
  call('ZADD', ARGV[4] .. 'pending', 0, ARGV[3])
  call('HSET', KEYS[3], 'state', 'pending')
  call('LPUSH', ARGV[4] .. 'wake', '1')
  call('LTRIM', ARGV[4] .. 'wake', 0, 63)
end
return 1
