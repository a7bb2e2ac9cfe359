-- sweep_stalled: jobs whose lease has run out are counted as stalled, then recovered or buried.
-- KEYS  1 active  2 pending  3 dead
-- ARGV  1 base  2 stalls that kill a job  3 how many to look at
-- Reply {recovered ids, dead ids}.
-- Keeps: attempts stays; a grouped job gives its place in flight back; flat arrivals push one wake token.
local call = redis.call
local active, base = KEYS[1], ARGV[1]

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
local recovered, dead, flat = {}, {}, false
for _, id in ipairs(call('ZRANGEBYSCORE', active, '-inf', now, 'LIMIT', 0, ARGV[3])) do
  local row = base .. 'job:' .. id
  call('ZREM', active, id)
  local group = call('HGET', row, 'group')
  local stalls = call('HINCRBY', row, 'stalled', 1)
  if group and call('HINCRBY', base .. 'gactive', group, -1) <= 0 then
    call('HDEL', base .. 'gactive', group)
  end
  if stalls >= tonumber(ARGV[2]) then
    call('HSET', row, 'state', 'dead')
    call('HSET', row, 'last_error', 'stalled')
    call('ZADD', KEYS[3], 0, id)
    call('HINCRBY', base .. 'metrics:failed', 'count', 1)
    dead[#dead + 1] = id
  else
    if group then
      call('ZADD', base .. 'g:' .. group .. ':pending', 0, id)
      ring(group, tonumber(call('HGET', base .. 'gactive', group) or 0))
    else
      call('ZADD', KEYS[2], 0, id)
      flat = true
    end
    call('HSET', row, 'state', 'pending')
    recovered[#recovered + 1] = id
  end
end
if flat then
  call('LPUSH', base .. 'wake', '1')
  call('LTRIM', base .. 'wake', 0, 63)
end
return {recovered, dead}
