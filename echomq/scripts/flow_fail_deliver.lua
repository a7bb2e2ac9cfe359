-- flow_fail_deliver: a child that died in another queue fails its parent, or counts for it.
-- KEYS  1 parent's :dependencies  2 parent's :failed  3 parent's :unsuccessful  4 parent row
-- ARGV  1 child id  2 error  3 policy: fp fails the parent, anything else ignores  4 base of the parent's
--       queue  5 parent id
-- Reply 1.
-- Keeps: delivering the same child again changes nothing; a parent released here goes to flat pending,
-- with a wake token.
local call = redis.call
local base = ARGV[4]
if ARGV[3] == 'fp' then
  if call('HSETNX', KEYS[2], ARGV[1], ARGV[2]) == 1 then
    call('HSET', KEYS[4], 'state', 'dead')
    call('ZADD', base .. 'dead', 0, ARGV[5])
    call('ZREM', base .. 'pending', ARGV[5])
  end
elseif call('HSETNX', KEYS[3], ARGV[1], ARGV[2]) == 1 and call('DECR', KEYS[1]) <= 0 then
  call('ZADD', base .. 'pending', 0, ARGV[5])
  call('HSET', KEYS[4], 'state', 'pending')
  call('LPUSH', base .. 'wake', '1')
  call('LTRIM', base .. 'wake', 0, 63)
end
return 1
