-- gbclaim: the ring turns one step and all of that group's jobs that its ceiling allows become active.
-- KEYS  1 ring  2 active
-- ARGV  1 base  2 lease ms
-- Reply list of {id, payload, attempts, group}, oldest first; empty when nothing can be served.
-- Keeps: one deadline for all; never more in flight than the ceiling; a group leaves the ring when its lane
-- is empty or its ceiling is reached.
local call = redis.call
local ring, base = KEYS[1], ARGV[1]
local group = call('LMOVE', ring, ring, 'LEFT', 'RIGHT')
if not group then return {} end
local lane = base .. 'g:' .. group .. ':pending'
local size = call('ZCARD', lane)
if size == 0 then
  call('LREM', ring, 0, group)
  return {}
end
local ceiling = call('HGET', base .. 'glimit', group)
if ceiling then
  ceiling = tonumber(ceiling)
  size = math.min(size, ceiling - tonumber(call('HGET', base .. 'gactive', group) or 0))
end
if size <= 0 then
  call('LREM', ring, 0, group)
  return {}
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = now + ARGV[2]
local batch = {}
for i = 1, size do
  local id = call('ZPOPMIN', lane)[1]
  local row = base .. 'job:' .. id
  local attempts = call('HINCRBY', row, 'attempts', 1)
  call('HSET', row, 'state', 'active')
  call('ZADD', KEYS[2], deadline, id)
  batch[i] = {id, call('HGET', row, 'payload'), attempts, group}
end
local act = call('HINCRBY', base .. 'gactive', group, #batch)
if (ceiling and act >= ceiling) or call('ZCARD', lane) == 0 then
  call('LREM', ring, 0, group)
end
return batch
