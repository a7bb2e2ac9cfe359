-- is_maxed: whether a queue has as many jobs in flight as it may.
-- KEYS  1 meta  2 active
-- Reply 0 below the ceiling or no ceiling; EMQRATE at it.
-- Keeps: reads only; nothing enforces the answer.
local ceiling = tonumber(redis.call('HGET', KEYS[1], 'concurrency') or 0)
if ceiling > 0 and redis.call('ZCARD', KEYS[2]) >= ceiling then
  return redis.error_reply('EMQRATE at concurrency ceiling')
end
return 0
