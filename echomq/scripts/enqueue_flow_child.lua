-- enqueue_flow_child: a child whose parent may live in another queue becomes pending.
-- KEYS  1 child row  2 pending of the child's queue  [3 wake of the child's queue]
-- ARGV  1 id  2 payload  3 parent id  4 parent queue, or '' when it is the child's own
-- Reply 1; EMQKIND for an id that is not a JOB.
-- Keeps: row and membership appear together. A row that exists is overwritten.
local call = redis.call
if string.sub(ARGV[1], 1, 3) ~= 'JOB' then
  return redis.error_reply('EMQKIND job id must be JOB-namespaced')
end
call('HSET', KEYS[1], 'state', 'pending', 'attempts', '0', 'payload', ARGV[2], 'parent', ARGV[3])
if ARGV[4] ~= '' then call('HSET', KEYS[1], 'parent_queue', ARGV[4]) end
call('ZADD', KEYS[2], 0, ARGV[1])
if KEYS[3] then
  call('LPUSH', KEYS[3], '1')
  call('LTRIM', KEYS[3], 0, 63)
end
return 1
