-- glimit: the most jobs of a group that may be in flight.
-- KEYS  1 glimit  2 gactive  3 ring  4 paused  5 wake
-- ARGV  1 base  2 group  3 ceiling
-- Reply 1.
-- Keeps: a group at its new ceiling leaves the ring; one below it joins, with one wake token, if it is not
-- paused and its lane has work. Leases already given stay.
local call = redis.call
local ring, group = KEYS[3], ARGV[2]
call('HSET', KEYS[1], group, ARGV[3])
if tonumber(call('HGET', KEYS[2], group) or 0) >= tonumber(ARGV[3]) then
  call('LREM', ring, 0, group)
  return 1
end
if call('SISMEMBER', KEYS[4], group) == 1 then return 1 end
if call('ZCARD', ARGV[1] .. 'g:' .. group .. ':pending') == 0 then return 1 end
if call('LPOS', ring, group) then return 1 end
call('RPUSH', ring, group)
call('LPUSH', KEYS[5], '1')
call('LTRIM', KEYS[5], 0, 63)
return 1
