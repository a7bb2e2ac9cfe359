-- bclaim: the oldest flat pending jobs become active under one shared deadline.
-- KEYS  1 pending  2 active
-- ARGV  1 row prefix  2 lease ms  3 size
-- Reply list of {id, payload, attempts}, oldest first; empty when nothing waits.
-- Keeps: every id moves in one step; each job has its own fencing token.
local call = redis.call
local size = math.min(tonumber(ARGV[3]), call('ZCARD', KEYS[1]))
if size <= 0 then return {} end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = now + ARGV[2]
local batch = {}
for i = 1, size do
  local id = call('ZPOPMIN', KEYS[1])[1]
  if not id then break end
  local row = ARGV[1] .. id
  local attempts = call('HINCRBY', row, 'attempts', 1)
  call('HSET', row, 'state', 'active')
  call('ZADD', KEYS[2], deadline, id)
  batch[i] = {id, call('HGET', row, 'payload'), attempts}
end
return batch
