-- complete: the holder of the token ends its job; the row is deleted and counted.
-- KEYS  1 active  2 row
--       child of a parent in this queue:  3 parent's :dependencies  4 parent's :processed  5 parent row
--       child of a parent elsewhere:      3 this queue's flow outbox
-- ARGV  1 id  2 token  3 base  [4 parent id  5 result  [6 'xq'  7 parent queue]]
-- Reply 1 done, 0 no such row; EMQSTALE when the token is not the row's attempts.
-- Keeps: a group's count in flight falls with the lease; a child counts for its parent once, and only
-- if it was still active; the last child releases the parent to flat pending, with a wake token.
local call = redis.call
local active, row = KEYS[1], KEYS[2]
local id, base = ARGV[1], ARGV[3]
local attempts = call('HGET', row, 'attempts')
if not attempts then return 0 end
if attempts ~= ARGV[2] then return redis.error_reply('EMQSTALE complete token mismatch') end

-- Ring guard: a group that can be served and is not on the ring joins it, with one wake token.
local function ring(group, act)
  if call('SISMEMBER', base .. 'paused', group) == 1 then return end
  local ceiling = call('HGET', base .. 'glimit', group)
  if ceiling and act >= tonumber(ceiling) then return end
  if call('LPOS', base .. 'ring', group) then return end
  call('RPUSH', base .. 'ring', group)
  call('LPUSH', base .. 'wake', '1')
  call('LTRIM', base .. 'wake', 0, 63)
end

-- The job leaves wherever it is; a grouped one gives its place in flight back to its group.
local group = call('HGET', row, 'group')
local was_active = call('ZREM', active, id) == 1
if group then
  local lane = base .. 'g:' .. group .. ':pending'
  if was_active then
    local act = call('HINCRBY', base .. 'gactive', group, -1)
    if act <= 0 then call('HDEL', base .. 'gactive', group) end
    if call('ZCARD', lane) > 0 then ring(group, act) end
  else
    call('ZREM', lane, id)
    if call('ZCARD', lane) == 0 then call('LREM', base .. 'ring', 0, group) end
  end
elseif not was_active then
  call('ZREM', base .. 'pending', id)
end

if was_active and ARGV[6] == 'xq' then
  call('RPUSH', KEYS[3], ARGV[7] .. '\0' .. ARGV[4] .. '\0' .. id .. '\0' .. ARGV[5])
elseif was_active and KEYS[3] then
  local left = call('DECR', KEYS[3])
  call('HSET', KEYS[4], id, ARGV[5])
  if left <= 0 then
    call('ZADD', base .. 'pending', 0, ARGV[4])
    call('HSET', KEYS[5], 'state', 'pending')
    call('LPUSH', base .. 'wake', '1')
    call('LTRIM', base .. 'wake', 0, 63)
  end
end
call('DEL', row)
call('HINCRBY', base .. 'metrics:completed', 'count', 1)
return 1
