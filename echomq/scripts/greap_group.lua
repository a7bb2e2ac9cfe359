-- greap_group: jobs of one group whose lease has run out go back to its lane.
-- KEYS  1 active  2 base
-- ARGV  1 group  2 how many lapsed leases to look at
-- Reply how many were recovered.
-- Keeps: leases of other groups stay, even lapsed ones; attempts stays.
local call = redis.call
local active, base, wanted = KEYS[1], KEYS[2], ARGV[1]

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
local recovered = 0
for _, id in ipairs(call('ZRANGEBYSCORE', active, '-inf', now, 'LIMIT', 0, ARGV[2])) do
  local row = base .. 'job:' .. id
  if call('HGET', row, 'group') == wanted then
    call('ZREM', active, id)
    local act = call('HINCRBY', base .. 'gactive', wanted, -1)
    if act <= 0 then call('HDEL', base .. 'gactive', wanted) end
    call('ZADD', base .. 'g:' .. wanted .. ':pending', 0, id)
    ring(wanted, act)
    call('HSET', row, 'state', 'pending')
    recovered = recovered + 1
  end
end
return recovered
