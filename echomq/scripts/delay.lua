-- delay: the holder of the token parks its job for later without using an attempt up.
-- KEYS  1 row  2 active  3 schedule
-- ARGV  1 id  2 token  3 mode: in = ms from the server's now, anything else = ms as given  4 ms
-- Reply 1 scheduled; EMQKIND; EMQSTALE when the row is gone or the token is not its attempts.
-- Keeps: attempts and payload stay. The group's count in flight is not lowered (as the protocol has it).
local call = redis.call
if string.sub(ARGV[1], 1, 3) ~= 'JOB' then
  return redis.error_reply('EMQKIND job id must be JOB-namespaced')
end

local row = KEYS[1]
local attempts = call('HGET', row, 'attempts')
if not attempts then return redis.error_reply('EMQSTALE job gone') end
if attempts ~= ARGV[2] then return redis.error_reply('EMQSTALE delay token mismatch') end
call('ZREM', KEYS[2], ARGV[1])
call('HSET', row, 'state', 'scheduled')
local at = ARGV[4]
if ARGV[3] == 'in' then
  local time = call('TIME')
  at = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(at)
end
call('ZADD', KEYS[3], at, ARGV[1])
return 1
