-- retry: the holder of the token gives its job back: scheduled again, or dead at its last attempt.
-- KEYS  1 active  2 schedule  3 dead  4 row
--       parent in this queue:  5 parent's :failed  6 :unsuccessful  7 :dependencies  8 parent row
--       parent elsewhere:      5 this queue's flow outbox
-- ARGV  1 id  2 token  3 delay ms  4 max attempts  5 error  6 base
--       [7 sq:fp | sq:id  8 parent id]   or   [7 xq:fp | xq:id  8 parent queue  9 parent id]
-- Reply 'scheduled' or 'dead'; EMQSTALE when the row is gone or the token is not its attempts.
-- Keeps: attempts stays, so the next claim has a greater token; a dead child fails its parent (fp) or
-- counts as done for it (id), and then the last one releases the parent, with a wake token.
local call = redis.call
local active, row = KEYS[1], KEYS[4]
local id, base, why = ARGV[1], ARGV[6], ARGV[5]
local attempts = call('HGET', row, 'attempts')
if not attempts then return redis.error_reply('EMQSTALE job gone') end
if attempts ~= ARGV[2] then return redis.error_reply('EMQSTALE retry token mismatch') end

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

call('HSET', row, 'last_error', why)
if tonumber(attempts) < tonumber(ARGV[4]) then
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  call('HSET', row, 'state', 'scheduled')
  call('ZADD', KEYS[2], now + ARGV[3], id)
  return 'scheduled'
end

call('HSET', row, 'state', 'dead')
call('ZADD', KEYS[3], 0, id)
call('HINCRBY', base .. 'metrics:failed', 'count', 1)
local relation = ARGV[7]
if relation == 'sq:fp' then
  call('HSET', KEYS[5], id, why)
  call('HSET', KEYS[8], 'state', 'dead')
  call('ZADD', base .. 'dead', 0, ARGV[8])
  call('ZREM', base .. 'pending', ARGV[8])
elseif relation == 'sq:id' then
  call('HSET', KEYS[6], id, why)
  if call('DECR', KEYS[7]) <= 0 then
    call('ZADD', base .. 'pending', 0, ARGV[8])
    call('HSET', KEYS[8], 'state', 'pending')
    call('LPUSH', base .. 'wake', '1')
    call('LTRIM', base .. 'wake', 0, 63)
  end
elseif relation == 'xq:fp' or relation == 'xq:id' then
  local policy = string.sub(relation, 4)
  call('RPUSH', KEYS[5], '\0fail\0' .. ARGV[8] .. '\0' .. ARGV[9] .. '\0' .. id .. '\0' .. policy .. '\0' .. why)
end
return 'dead'
