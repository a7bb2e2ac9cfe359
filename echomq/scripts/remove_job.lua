-- remove_job: delete a job that nobody holds.
-- KEYS  1 row  2 pending  3 active  4 schedule  5 dead  6 deduplication key
-- ARGV  1 id  2 deduplication id, or ''
-- Reply 1 removed, -1 no such row; EMQLOCK while a lock marker exists.
-- Keeps: the deduplication key goes only if it names this job. Lanes are not touched.
local call = redis.call
local row, id = KEYS[1], ARGV[1]
if call('EXISTS', row) == 0 then return -1 end
if call('EXISTS', row .. ':lock') == 1 or call('HEXISTS', row, 'lock') == 1 then
  return redis.error_reply('EMQLOCK job is locked')
end
for i = 2, 5 do call('ZREM', KEYS[i], id) end
if ARGV[2] ~= '' and call('GET', KEYS[6]) == id then call('DEL', KEYS[6]) end
call('DEL', row, row .. ':logs')
return 1
