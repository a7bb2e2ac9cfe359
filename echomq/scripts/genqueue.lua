-- genqueue: a new job becomes pending in its group's lane.
-- KEYS  1 row  2 lane  3 ring  4 paused  5 glimit  6 gactive  7 wake
-- ARGV  1 id  2 payload  3 group
-- Reply 1 enqueued, 0 the row exists already; EMQKIND for an id that is not a JOB.
-- Keeps: nothing is written unless the job is new; the lane joins the ring, with one wake token, when it
-- can be served and is not on it yet.
local call = redis.call
if string.sub(ARGV[1], 1, 3) ~= 'JOB' then
  return redis.error_reply('EMQKIND job id must be JOB-namespaced')
end

local row, ring, group = KEYS[1], KEYS[3], ARGV[3]
if call('EXISTS', row) == 1 then return 0 end
call('HSET', row, 'state', 'pending', 'attempts', '0', 'payload', ARGV[2], 'group', group)
call('ZADD', KEYS[2], 0, ARGV[1])
if call('SISMEMBER', KEYS[4], group) == 1 then return 1 end
local ceiling = call('HGET', KEYS[5], group)
if ceiling and tonumber(call('HGET', KEYS[6], group) or 0) >= tonumber(ceiling) then return 1 end
if call('LPOS', ring, group) then return 1 end
call('RPUSH', ring, group)
call('LPUSH', KEYS[7], '1')
call('LTRIM', KEYS[7], 0, 63)
return 1
