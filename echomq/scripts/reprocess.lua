-- reprocess: a dead job becomes pending again on the flat queue.
-- KEYS  1 row  2 dead  3 pending  [4 wake]
-- ARGV  1 id
-- Reply 1 done, -1 no such row; EMQSTATE when it is not in the morgue.
-- Keeps: attempts stays. The wake token goes out only when the wake list is given.
local call = redis.call
if call('EXISTS', KEYS[1]) == 0 then return -1 end
if call('ZREM', KEYS[2], ARGV[1]) ~= 1 then return redis.error_reply('EMQSTATE not dead') end
call('HDEL', KEYS[1], 'last_error')
call('HSET', KEYS[1], 'state', 'pending')
call('ZADD', KEYS[3], 0, ARGV[1])
if KEYS[4] then
  call('LPUSH', KEYS[4], '1')
  call('LTRIM', KEYS[4], 0, 63)
end
return 1
