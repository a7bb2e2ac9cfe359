-- queue_pause: workers stop claiming from this queue (they read the flag before each claim).
-- KEYS  1 meta
-- Reply 1.
-- Keeps: jobs stay where they are.
redis.call('HSET', KEYS[1], 'paused', '1')
return 1
