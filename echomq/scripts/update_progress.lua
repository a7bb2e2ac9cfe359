-- update_progress: note a job's progress and tell the listeners.
-- KEYS  1 row
-- ARGV  1 progress  2 id  3 base
-- Reply 1 done, -1 no such row.
-- Keeps: a missing job is not created and nothing is published for it.
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
redis.call('HSET', KEYS[1], 'progress', ARGV[1])
redis.call('PUBLISH', ARGV[3] .. 'events', cjson.encode({event = 'progress', job = ARGV[2], progress = ARGV[1]}))
return 1
