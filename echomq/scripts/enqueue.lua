-- enqueue: a new job becomes pending on the flat queue.
-- KEYS  1 row  2 pending  [3 wake]
-- ARGV  1 id  2 payload
-- Reply 1 enqueued, 0 the row exists already; EMQKIND for an id that is not a JOB.
-- Keeps: nothing is written unless the job is new; row and membership appear together.
-- The wake token goes out only when the wake list is given.
local call = redis.call
if string.sub(ARGV[1], 1, 3) ~= 'JOB' then
  return redis.error_reply('EMQKIND job id must be JOB-namespaced')
end

local row = KEYS[1]
if call('EXISTS', row) == 1 then return 0 end
call('HSET', row, 'state', 'pending', 'attempts', '0', 'payload', ARGV[2])
call('ZADD', KEYS[2], 0, ARGV[1])
if KEYS[3] then
  call('LPUSH', KEYS[3], '1')
  call('LTRIM', KEYS[3], 0, 63)
end
return 1
