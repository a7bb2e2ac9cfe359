-- extend_lock: the holder of the token moves its lease's deadline.
-- KEYS  1 active  2 row
-- ARGV  1 id  2 token  3 lease ms
-- Reply 1 done, -1 no such row; EMQSTALE when the token is not the row's attempts.
-- Keeps: attempts stays. An id that was not active is added (as the protocol has it).
local call = redis.call
local attempts = call('HGET', KEYS[2], 'attempts')
if not attempts then return -1 end
if attempts ~= ARGV[2] then return redis.error_reply('EMQSTALE extend token mismatch') end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
return 1
