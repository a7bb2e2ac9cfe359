-- hold_parent: a flow parent is written and held until its children are done.
-- KEYS  1 parent row  2 parent's :dependencies
-- ARGV  1 parent id  2 payload  3 number of children
-- Reply 1; EMQKIND for an id that is not a JOB.
-- Keeps: the parent is in no set. A row that exists is overwritten.
local call = redis.call
if string.sub(ARGV[1], 1, 3) ~= 'JOB' then
  return redis.error_reply('EMQKIND job id must be JOB-namespaced')
end
call('HSET', KEYS[1], 'state', 'awaiting_children', 'attempts', '0', 'payload', ARGV[2])
call('SET', KEYS[2], ARGV[3])
return 1
