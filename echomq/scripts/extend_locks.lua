-- extend_locks: move the deadlines of many leases held by one owner.
-- KEYS  1 active
-- ARGV  1 base  2 lease ms  3 id  4 token  5 id  6 token ...
-- Reply the ids that could not be extended, in the order given.
-- Keeps: each id is judged by its own token; one refusal does not stop the others.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = now + ARGV[2]
local failed = {}
for i = 3, #ARGV, 2 do
  local id = ARGV[i]
  if call('HGET', ARGV[1] .. 'job:' .. id, 'attempts') == ARGV[i + 1] then
    call('ZADD', KEYS[1], deadline, id)
  else
    failed[#failed + 1] = id
  end
end
return failed
