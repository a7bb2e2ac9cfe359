-- greassign: a job waiting in one lane moves to another.
-- KEYS  1 row  2 destination lane  3 ring  4 paused  5 glimit  6 gactive  7 wake
-- ARGV  1 id  2 destination group  3 base
-- Reply 1 moved, 0 it is there already, -1 no such grouped row, -2 it is not waiting in its lane.
-- Keeps: lane and row's group change together; an emptied source leaves the ring.
local call = redis.call
local row, ring, group, base = KEYS[1], KEYS[3], ARGV[2], ARGV[3]
local source = call('HGET', row, 'group')
if not source then return -1 end
if source == group then return 0 end
local source_lane = base .. 'g:' .. source .. ':pending'
if call('ZREM', source_lane, ARGV[1]) == 0 then return -2 end
call('ZADD', KEYS[2], 0, ARGV[1])
call('HSET', row, 'group', group)
local ceiling = call('HGET', KEYS[5], group)
if call('SISMEMBER', KEYS[4], group) == 0
    and not (ceiling and tonumber(call('HGET', KEYS[6], group) or 0) >= tonumber(ceiling))
    and not call('LPOS', ring, group) then
  call('RPUSH', ring, group)
  call('LPUSH', KEYS[7], '1')
  call('LTRIM', KEYS[7], 0, 63)
end
if call('ZCARD', source_lane) == 0 then call('LREM', ring, 0, source) end
return 1
