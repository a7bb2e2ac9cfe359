-- outlook: what a worker needs to know to choose its next step. Ours; the protocol has no such script.
-- KEYS  1 meta  2 pending  3 ring  4 schedule  5 active
-- Reply {now ms, 1 if paused, flat jobs waiting, groups on the ring, earliest run-at, earliest deadline};
-- -1 stands for "none".
-- Keeps: reads only; one call replaces a reap, a promote and two claims that would find nothing.
local call = redis.call
local function head(set)
  return tonumber(call('ZRANGE', set, 0, 0, 'WITHSCORES')[2] or -1)
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local paused = call('HEXISTS', KEYS[1], 'paused')
return {now, paused, call('ZCARD', KEYS[2]), call('LLEN', KEYS[3]), head(KEYS[4]), head(KEYS[5])}
