-- gresume: a paused group may be served again.
-- KEYS  1 paused  2 ring  3 glimit  4 gactive  5 wake
-- ARGV  1 base  2 group
-- Reply 1.
-- Keeps: the group joins the ring, with one wake token, if its lane has work below its ceiling.
local call = redis.call
local ring, group = KEYS[2], ARGV[2]
call('SREM', KEYS[1], group)
if call('ZCARD', ARGV[1] .. 'g:' .. group .. ':pending') == 0 then return 1 end
local ceiling = call('HGET', KEYS[3], group)
if ceiling and tonumber(call('HGET', KEYS[4], group) or 0) >= tonumber(ceiling) then return 1 end
if call('LPOS', ring, group) then return 1 end
call('RPUSH', ring, group)
call('LPUSH', KEYS[5], '1')
call('LTRIM', KEYS[5], 0, 63)
return 1
