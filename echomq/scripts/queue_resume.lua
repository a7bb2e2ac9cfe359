-- queue_resume: workers may claim from this queue again.
-- KEYS  1 meta
-- Reply 1.
-- Keeps: the other fields of meta.
redis.call('HDEL', KEYS[1], 'paused')
return 1
