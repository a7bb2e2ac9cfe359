-- promote: scheduled jobs that are due become pending, flat or in their lane.
-- KEYS  1 schedule  2 pending
-- ARGV  1 base  2 batch
-- Reply how many were moved.
-- Keeps: earliest first, at most a batch; each id moves in one step; flat arrivals push one wake token.
local call = redis.call
local schedule, pending, base = KEYS[1], KEYS[2], ARGV[1]

-- Ring guard: a group that can be served and is not on the ring joins it, with one wake token.
local function ring(group, act)
  if call('SISMEMBER', base .. 'paused', group) == 1 then return end
  local ceiling = call('HGET', base .. 'glimit', group)
  if ceiling and act >= tonumber(ceiling) then return end
  if call('LPOS', base .. 'ring', group) then return end
  call('RPUSH', base .. 'ring', group)
  call('LPUSH', base .. 'wake', '1')
  call('LTRIM', base .. 'wake', 0, 63)
end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = call('ZRANGEBYSCORE', schedule, '-inf', now, 'LIMIT', 0, ARGV[2])
local flat = false
for _, id in ipairs(due) do
  local row = base .. 'job:' .. id
  call('ZREM', schedule, id)
  local group = call('HGET', row, 'group')
  if group then
    call('ZADD', base .. 'g:' .. group .. ':pending', 0, id)
    ring(group, tonumber(call('HGET', base .. 'gactive', group) or 0))
  else
    call('ZADD', pending, 0, id)
    flat = true
  end
  call('HSET', row, 'state', 'pending')
end
if flat then
  call('LPUSH', base .. 'wake', '1')
  call('LTRIM', base .. 'wake', 0, 63)
end
return #due
