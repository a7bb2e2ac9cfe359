-- rate_ttl: how long until a queue at its rate limit may go on.
-- KEYS  1 limiter  2 meta
-- ARGV  1 limit, or 0 for the queue's own (meta max)
-- Reply milliseconds, 0 when it may go on now.
-- Keeps: reads only; the limiter is filled by its owner.
local call = redis.call
local limit = tonumber(ARGV[1])
if limit == 0 then limit = tonumber(call('HGET', KEYS[2], 'max') or 0) end
if limit > 0 and limit <= tonumber(call('GET', KEYS[1]) or 0) then
  local ttl = call('PTTL', KEYS[1])
  if ttl > 0 then return ttl end
end
return 0
