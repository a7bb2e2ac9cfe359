-- schedule: a new job is parked until its run-at.
-- KEYS  1 row  2 schedule
-- ARGV  1 id  2 payload  3 mode: in = ms from the server's now, anything else = ms as given  4 ms
-- Reply 1 scheduled, 0 the row exists already; EMQKIND for an id that is not a JOB.
-- Keeps: nothing is written unless the job is new. Nobody is woken: nothing can be served yet.
local call = redis.call
if string.sub(ARGV[1], 1, 3) ~= 'JOB' then
  return redis.error_reply('EMQKIND job id must be JOB-namespaced')
end

local row = KEYS[1]
if call('EXISTS', row) == 1 then return 0 end
local at = ARGV[4]
if ARGV[3] == 'in' then
  local time = call('TIME')
  at = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(at)
end
call('HSET', row, 'state', 'scheduled', 'attempts', '0', 'payload', ARGV[2])
call('ZADD', KEYS[2], at, ARGV[1])
return 1
