-- enqueue_flow: a parent and its children, all in this queue; the children become pending at once.
-- KEYS  1 parent row  2 parent's :dependencies  3 pending  4 ... child rows
-- ARGV  1 parent id  2 parent payload  3 number of children  then child id, child payload, ...
-- Reply the number of children; EMQKIND before anything is written when any id is not a JOB.
-- Keeps: the parent is in no set until its last child is done. Rows that exist are overwritten.
-- The wake list's name is derived from pending's.
local call = redis.call
local kind = 'EMQKIND job id must be JOB-namespaced'
local count = tonumber(ARGV[3])
if string.sub(ARGV[1], 1, 3) ~= 'JOB' then return redis.error_reply(kind) end
for i = 1, count do
  if string.sub(ARGV[2 + 2 * i], 1, 3) ~= 'JOB' then return redis.error_reply(kind) end
end
for i = 1, count do
  local child = ARGV[2 + 2 * i]
  call('HSET', KEYS[3 + i], 'state', 'pending', 'attempts', '0', 'payload', ARGV[3 + 2 * i], 'parent', ARGV[1])
  call('ZADD', KEYS[3], 0, child)
end
call('HSET', KEYS[1], 'state', 'awaiting_children', 'attempts', '0', 'payload', ARGV[2])
call('SET', KEYS[2], ARGV[3])
local wake = string.sub(KEYS[3], 1, -8) .. 'wake'
call('LPUSH', wake, '1')
call('LTRIM', wake, 0, 63)
return count
