-- gclaim: the ring turns one step and the head of that group's lane becomes active.
-- KEYS  1 ring  2 active
-- ARGV  1 base  2 lease ms
-- Reply {id, payload, attempts, group}, or an empty array.
-- Keeps: a group leaves the ring when its lane is empty or its ceiling is reached.
local call = redis.call
local ring, base = KEYS[1], ARGV[1]
local group = call('LMOVE', ring, ring, 'LEFT', 'RIGHT')
if not group then return {} end
local lane = base .. 'g:' .. group .. ':pending'
local id = call('ZPOPMIN', lane)[1]
if not id then
  call('LREM', ring, 0, group)
  return {}
end
local row = base .. 'job:' .. id
local attempts = call('HINCRBY', row, 'attempts', 1)
call('HSET', row, 'state', 'active')
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('ZADD', KEYS[2], now + ARGV[2], id)
local act = call('HINCRBY', base .. 'gactive', group, 1)
local ceiling = call('HGET', base .. 'glimit', group)
if (ceiling and act >= tonumber(ceiling)) or call('ZCARD', lane) == 0 then
  call('LREM', ring, 0, group)
end
return {id, call('HGET', row, 'payload'), attempts, group}
