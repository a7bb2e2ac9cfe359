-- claim: the oldest flat pending job becomes active under a lease.
-- KEYS  1 pending  2 active
-- ARGV  1 row prefix  2 lease ms
-- Reply {id, payload, attempts}, or an empty array when nothing waits.
-- Keeps: the id moves in one step; attempts, raised here, is the fencing token of this holder.
local call = redis.call
local id = call('ZPOPMIN', KEYS[1])[1]
if not id then return {} end
local row = ARGV[1] .. id
local attempts = call('HINCRBY', row, 'attempts', 1)
call('HSET', row, 'state', 'active')
local time = call('TIME')
call('ZADD', KEYS[2], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2], id)
return {id, call('HGET', row, 'payload'), attempts}
