-- obliterate: delete a paused queue, a budget of jobs at a time.
-- KEYS  1 meta  2 base
-- ARGV  1 'force' or ''  2 budget
-- Reply 0 all gone, 1 call again; EMQSTATE when the queue runs, or has leases and is not forced.
-- Keeps: meta goes last, so the queue stays paused until there is nothing left to serve.
local call = redis.call
local base, budget = KEYS[2], tonumber(ARGV[2])
if not call('HGET', KEYS[1], 'paused') then return redis.error_reply('EMQSTATE not paused') end

-- Delete the rows of up to a budget of a set's members, and the members with them.
local function sweep(set)
  local ids = call('ZRANGE', set, 0, budget - 1)
  for _, id in ipairs(ids) do
    local row = base .. 'job:' .. id
    call('DEL', row, row .. ':logs', row .. ':lock')
    call('ZREM', set, id)
  end
  budget = budget - #ids
end

if ARGV[1] ~= 'force' and call('ZCARD', base .. 'active') > 0 then
  return redis.error_reply('EMQSTATE active jobs present')
end
for _, set in ipairs({'active', 'pending', 'schedule', 'dead'}) do
  sweep(base .. set)
  if budget <= 0 then return 1 end
end

local groups = call('LRANGE', base .. 'ring', 0, -1)
for _, group in ipairs(call('SMEMBERS', base .. 'paused')) do groups[#groups + 1] = group end
for _, group in ipairs(groups) do
  local lane = base .. 'g:' .. group .. ':pending'
  sweep(lane)
  if budget <= 0 or call('ZCARD', lane) > 0 then return 1 end
end

for _, name in ipairs(call('ZRANGE', base .. 'repeat', 0, -1)) do call('DEL', base .. 'repeat:' .. name) end
call('DEL', base .. 'metrics:completed', base .. 'metrics:completed:data', base .. 'metrics:failed',
  base .. 'metrics:failed:data', base .. 'gactive', base .. 'glimit', base .. 'ring', base .. 'wake',
  base .. 'paused', base .. 'repeat', base .. 'limiter', KEYS[1])
return 0
