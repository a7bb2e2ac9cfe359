-- The world a script lives in, and the door through which it calls the server.
--
-- Called once per runtime with the host's functions and the other parts (``replies.lua``, ``calls.lua``,
-- ``builtins.lua``, the libraries); returns the functions the host calls. A script sees only
-- `env`: an empty table that reads from `globals` and refuses to be written. So do all library tables. The real
-- Lua has no read-only tables, hence these *views*, and the functions here that would otherwise see through them
-- (next, pairs, rawget, rawset, setmetatable, getmetatable, table.insert, table.foreach).
--
-- Functions of ours must look like C functions in what users see: error positions name the user's line, arguments
-- are refused with Lua's own words, and the frames of this chunk do not count. Two rules follow. Nothing here
-- raises from a tail call (its frame would be lost). A script's own tail calls of values that are not its own
-- functions are made ordinary calls by `emuredis.scripting.bytecode`, or the user's frame would be lost.
--
-- No Python object ever reaches a script: the host gives back strings, numbers, booleans, nil and tables, and
-- never raises; an error comes back as (nil, kind, message) and is raised here.

local host, parts = ...

local getinfo, sethook, newproxy = debug.getinfo, debug.sethook, newproxy
local error, type, select, next, tostring, pcall, xpcall = error, type, select, next, tostring, pcall, xpcall
local loadstring, setfenv, setmetatable, unpack, rawget = loadstring, setfenv, setmetatable, unpack, rawget
local running = coroutine.running
local find, sub, floor, dump = string.find, string.sub, math.floor, string.dump
local gcinfo, collect, huge = gcinfo, collectgarbage, math.huge

local OURS = "=emuredis"      -- the chunk name of our own Lua
local null = newproxy(false)  -- stands for the server's null pointer: a userdata without a metatable

local function c_string(s)
  local nul = find(s, "\0", 1, true)
  return nul and sub(s, 1, nul - 1) or s
end

-- A number for the host to take as a double: lupa hands whole ones over as integers, which have no minus zero.
local function signed(x)
  return x == 0 and 1 / x < 0 and "-0" or x
end

-- A number cut to an integer, as C does it.
local function whole(x)
  return x < 0 and -floor(-x) or floor(x)
end

-- -- errors -------------------------------------------------------------------------------------

-- "chunk:line: " of the function `level` calls above the caller (1 is the caller itself), or "".
local function where(level)
  local info = getinfo(level + 1, "Sl")
  if info and info.currentline > 0 and info.source ~= OURS then
    return info.short_src .. ":" .. info.currentline .. ": "
  end
  return ""
end

-- Raise `message` as a C function does: with the position of whoever called the calling function.
local function fail(message)
  error(where(3) .. message, 0)
end

-- Refuse argument `n` of the calling function, in the words of luaL_argerror.
local function bad_argument(n, why)
  local info = getinfo(2, "n")
  local name = info.name or "?"
  if info.namewhat == "method" then
    n = n - 1
    if n == 0 then
      error(where(3) .. "calling '" .. name .. "' on bad self (" .. why .. ")", 0)
    end
  end
  error(where(3) .. "bad argument #" .. n .. " to '" .. name .. "' (" .. why .. ")", 0)
end

-- The words for an argument of the wrong type; `...` are the arguments as given.
local function expected(n, what, ...)
  local got = n > select("#", ...) and "no value" or type((select(n, ...)))
  return what .. " expected, got " .. got
end

-- Whether scripts should take it for a C function.
local function is_native(fn)
  local info = getinfo(fn, "S")
  return info.what == "C" or info.source == OURS
end

local READONLY = "Attempt to modify a readonly table"

-- Raise `message` with the position of whoever called into our code, from however deep inside.
local function raise(message)
  local level = 2
  local info = getinfo(level, "Sl")
  while info and (info.source == OURS or info.what == "tail") do
    level = level + 1
    info = getinfo(level, "Sl")
  end
  if info and info.currentline > 0 then
    message = info.short_src .. ":" .. info.currentline .. ": " .. message
  end
  error(message, 0)
end

-- -- read-only views ----------------------------------------------------------------------------

local real = {}        -- view -> what it shows
local metatables = {}  -- view -> the view of its metatable, where it has one on the server

local function refuse_write()
  error(where(2) .. READONLY, 0)
end

local function view(of)
  local seen = setmetatable({}, { __index = of, __newindex = refuse_write })
  real[seen] = of
  return seen
end

local function missing_global(...)
  local n = select("#", ...)
  if n ~= 2 then
    fail("Wrong number of arguments to luaProtectedTableError")
  end
  local name = select(2, ...)
  if type(name) ~= "string" and type(name) ~= "number" then
    fail("Second argument to luaProtectedTableError must be a string or number")
  end
  name = tostring(name)
  local nul = find(name, "\0", 1, true)
  fail("Script attempted to access nonexistent global variable '" .. (nul and sub(name, 1, nul - 1) or name) .. "'")
end

local globals = setmetatable({}, { __index = missing_global })
local env = view(globals)
metatables[env] = view({ __index = missing_global })

-- -- running scripts ----------------------------------------------------------------------------

-- The frame the server would blame: that of the raising function, or of its caller when it is a C function. Our
-- own functions, with the C functions they called and the frames they gave up by tail calls, count as one C function.
local function blamed()
  local level, last = 3, nil
  local info = getinfo(level, "S")
  while info and (info.what == "C" or info.source == OURS or (info.what == "tail" and last == level - 1)) do
    if info.what ~= "C" then
      last = level
    end
    level = level + 1
    info = getinfo(level, "S")
  end
  if last then
    return getinfo(last + 1, "Sl")
  end
  info = getinfo(3, "Sl")
  if info and info.what == "C" then
    info = getinfo(4, "Sl")
  end
  return info
end

-- The host raised something after all, such as a signal's exception: it is told so. The message to end the script with.
local function crashed(problem)
  host.crashed(problem)
  return "ERR the command failed in the emulator"
end

local function error_handler(err)
  local info = blamed()
  if type(err) == "userdata" and err ~= null then  -- the host's: interrupted in the midst of a call
    err = { err = crashed(err) }
  elseif type(err) ~= "table" then
    err = { err = "ERR " .. globals.tostring(err) }
  elseif real[err] then  -- there the handler fails, writing to it
    return { err = "ERR err_handler_def:10: " .. READONLY, source = "@err_handler_def", line = 10 }
  end
  if info and info.source ~= OURS then
    err["source"] = info.source
    err["line"] = info.currentline
  end
  return err
end

local killed, kill_message = false, nil
local deaf = false  -- the host could not be asked
local raised = 0  -- how often it was told so, for scripts may catch it
local mark = huge  -- kilobytes of memory that a script may use
local NO_MEMORY = "ERR not enough Lua memory"  -- emuredis.scripting.guard has the same words
local KILLED = "ERR Script killed by user"  -- this one may be caught, as on the server
local stopped = false  -- the collector was stopped by the script

-- Whether the script uses more memory than it may, garbage not counted. A collection is to free a tenth at least, or
-- one would follow upon the other.
local function crowded()
  if gcinfo() <= mark then
    return false
  end
  collect()
  return gcinfo() > mark * 0.9
end

-- Asks the host, which may let other clients in meanwhile, whether the script is to go on. A hook: a script's own
-- handlers are not run for what it raises, since within them no hook would be called, and they might never end.
local every = 100000  -- instructions between two ticks

-- Lines, while somebody watches: `watched` is the chunk whose lines count, `seen` notes them, `stepping` asks the host
-- before each, `mask` is what the hook is for ("" when nobody watches).
local watched, seen, stepping, mask = nil, nil, false, ""
local thread_at_line, all_seen = nil, {}
local arm

local function tick(event, line)
  if event == "line" and not killed then
    if getinfo(2, "S").source ~= watched then
      return
    end
    seen[line] = true
    if stepping then
      thread_at_line = running()
      local message = host.at_line(line)
      if message then
        killed, kill_message = true, message
        sethook(tick, "l")
        error({ err = message }, 0)
      end
    end
    return
  end
  if not killed then
    if gcinfo() > mark and crowded() then
      kill_message = NO_MEMORY
    else
      local told, message = pcall(host.tick)
      if told then
        kill_message = message
        if deaf then
          deaf = false
          arm()
        end
      elseif type(message) == "userdata" then
        kill_message = crashed(message)
      elseif not deaf then  -- no stack left to ask with: ask again soon, when there may be
        deaf = true
        sethook(tick, "", 100)
      end
    end
  end
  if kill_message then
    killed = true
    sethook(tick, "l")  -- from now on at every line, so that no pcall gets away with it
    if getinfo(2, "S").source ~= OURS then
      raised = raised + 1
      error({ err = kill_message }, 0)
    end
  end
end

-- Set the hook, for a new coroutine or for the thread that is running.
function arm(thread)
  if thread then
    sethook(thread, tick, mask, every)
  else
    sethook(tick, mask, every)
  end
end
arm()

-- The count of instructions begins anew; from now on with `count` between two ticks.
local function pace(count)
  every = count
  arm()
end

-- Where the debug library keeps hooks, by thread, for ever: with the main thread's only, so far.
local hooks, main
for _, candidate in next, debug.getregistry() do
  if type(candidate) == "table" then
    for thread, hook in next, candidate do
      if hook == tick then
        hooks, main = candidate, thread
      end
    end
  end
end

-- A coroutine has a hook of its own. Many short ones would never come to a tick, so making them counts too.
local made = 0
local dirty = false  -- there is something to restore before the next script
local function watch_thread(thread)
  if killed then
    sethook(thread, tick, "l")
    return
  end
  arm(thread)
  made, dirty = made + 1, true
  if made % 100 == 0 then
    tick()
  end
end

-- To be called where the killed script may go on in another coroutine than the one in which it was ended. On the
-- server it may do so up to the next tick there; it might make coroutines for ever, so here it may once.
local function still_killed()
  if killed and raised > 1 then
    sethook(tick, "l")
  end
  return killed
end

-- The line of the script from which our code was called.
local function user_line()
  local level = 2
  local info = getinfo(level, "Sl")
  while info and (info.source == OURS or info.what == "C" or info.what == "tail") do
    level = level + 1
    info = getinfo(level, "Sl")
  end
  return info and info.currentline or 0
end

local kit_shown

local function event(name, ...)
  thread_at_line = running()
  local shown = { ... }
  for i = 1, select("#", ...) do
    shown[i] = kit_shown((select(i, ...)))
  end
  local answer, kind, message = host.event(name, unpack(shown, 1, select("#", ...)))
  if kind ~= nil then
    killed, kill_message = true, message
    sethook(tick, "l")
    error({ err = message }, 0)
  end
  return answer
end

-- A freshly loaded chunk as a function of the sandbox.
local function enclosed(fn, name)
  local patched = host.patch(dump(fn))
  if patched then
    fn = loadstring(patched, name)
  end
  return setfenv(fn, env)
end

local BYTECODE = "\27"  -- refused, as the text that it is not

-- A function of the sandbox, or nil and what is wrong with the source.
local function compile(source, name)
  if sub(source, 1, 1) == BYTECODE then
    source = " " .. BYTECODE
  end
  local fn, message = loadstring(source, name)
  if not fn then
    return nil, message
  end
  return enclosed(fn, name)
end

-- End the running script with `message`, whatever it catches.
local function kill(message)
  killed, kill_message = true, message
  sethook(tick, "l")
end

-- No hook can be called where the C stack is full, so a script that goes on there for ever has to be ended by count.
local overflows, OVERFLOWS_MOST = 0, 10000
local function overflowed()
  overflows, dirty = overflows + 1, true
  if overflows > OVERFLOWS_MOST then
    kill("ERR emuredis ended the script: it overflowed the C stack " .. OVERFLOWS_MOST .. " times")
  end
end

-- To be called with every error that a script catches: some of them it may not outlive.
local function noticed(err)
  if killed then
    still_killed()
  elseif err == "not enough memory" then
    kill(NO_MEMORY)
  elseif type(err) == "string"
    and (find(err, "C stack overflow", 1, true) or err == "error in error handling") then
    overflowed()
  end
end

-- End the script that wants more memory than there is.
local function out_of_memory()
  kill(NO_MEMORY)
  error({ err = NO_MEMORY }, 0)
end

-- What a script caught, if it is nothing that scripts may hold: then the script ends.
local function refuse_foreign(err)
  if type(err) == "userdata" and err ~= null then
    kill(crashed(err))
    error({ err = kill_message }, 0)
  end
end

-- -- putting it together ------------------------------------------------------------------------

-- What the other parts and the libraries get.
local kit = {
  host = host, null = null, real = real, view = view, metatables = metatables, globals = globals, whole = whole,
  signed = signed,
  raise = raise, fail = fail, where = where, bad_argument = bad_argument, expected = expected, rawget = rawget,
  is_native = is_native, c_string = c_string, compile = compile, enclosed = enclosed, kill = kill,
  watch = watch_thread, killed = still_killed,
  refuse_foreign = refuse_foreign, noticed = noticed, crowded = crowded, out_of_memory = out_of_memory,
  room = function() return mark * 1024 end,
  stopping = function() stopped, dirty = true, true end,
  while_loading = {},  -- the globals of a library that is being loaded
  env = env, user_line = user_line, event = event, ours = OURS, bytecode = BYTECODE, readonly = READONLY,
}
local replies, calls = parts.replies(kit), parts.calls(kit)
local reply_table, failure, set_resp = replies.table, replies.failure, calls.set_resp

globals._G = env
globals.redis = view(calls.server)
globals.server = globals.redis
parts.builtins(kit)
for _, name in next, { "cjson", "bit", "struct", "cmsgpack" } do
  globals[name] = view(parts[name](kit))
end

-- The next script starts with everything as it should be, whatever this one was ended by.
local function restore()
  if killed then
    killed, kill_message, raised = false, nil, 0
    arm()
    set_resp(2)
  end
  if stopped then
    stopped = false
    collect("restart")
  end
  if made > 0 then
    for thread in next, hooks do
      if thread ~= main then
        hooks[thread] = nil
      end
    end
  end
  made, overflows, dirty = 0, 0, false
end

-- To be called before a script runs: the last one may have been ended where nothing of ours could be run any more.
local function fresh()
  if killed or dirty then
    restore()
  end
end

-- Whatever ended the script is over: what it was ended with, if it was. The host learns of what it raised itself.
local function settle(ok, value)
  local message = killed and kill_message or nil
  fresh()
  if not ok and type(value) == "userdata" and value ~= null then
    crashed(value)
  end
  return message
end

-- Let go of all that the last script used.
local function recover()
  if not host.has_libraries then
    globals.KEYS, globals.ARGV = {}, {}
  end
  replies.forget()
  calls.forget()
  collect()
end

local function finished(ok, value)
  if gcinfo() > mark then
    recover()  -- the host gives the next script its arguments where lack of memory is fatal
  end
  local ended = settle(ok, value)
  if ended and ok and sub(ended, 1, #KILLED) ~= KILLED then  -- it caught the error and was done within the line
    return 1, ended
  end
  if not ok then
    if value == "not enough memory" then  -- Lua's own; a script's error has become a table
      return 1, NO_MEMORY
    end
    local told, kind, message = pcall(failure, value)
    if told then
      return kind, message
    end
    return 1, "ERR unknown error"  -- its metatable raised an error of its own
  end
  local kind = type(value)
  if kind == "string" or kind == "number" or kind == "boolean" then
    return value
  elseif kind == "table" then
    return reply_table(value)
  end
  return nil
end

-- The first `numkeys` of the values as one table, the others as another.
local function split(numkeys, ...)
  if numkeys == 1 then
    local key = ...
    return { key }, { select(2, ...) }
  elseif numkeys == 0 then
    return {}, { ... }
  elseif numkeys == 2 then
    local key, other = ...
    return { key, other }, { select(3, ...) }
  end
  local all = { ... }
  return { unpack(all, 1, numkeys) }, { select(numkeys + 1, ...) }
end

local function run(fn, numkeys, ...)
  if killed or dirty then
    restore()
  end
  globals.KEYS, globals.ARGV = split(numkeys, ...)
  return finished(xpcall(fn, error_handler))
end

local function run_tables(fn, keys, args)
  restore()
  globals.KEYS, globals.ARGV = keys, args
  return finished(xpcall(fn, error_handler))
end

local function pass_mark(n)
  seen[-n] = true
end

local inspector = parts.inspect(kit)
kit_shown = inspector.shown

-- Ask the inspector about the script that has stopped, see ``inspect.lua``. A list. `main`: as the server does, which
-- looks at the main thread even if a coroutine has stopped.
local function inspect(what, name, main)
  if what == "eval" then
    return inspector.eval(name)
  elseif what == "coroutine" then
    return { thread_at_line and 1 }
  elseif main and thread_at_line and what == "locals" then
    return {}  -- of coroutine.resume, which is a C function
  end
  return inspector[what](not main and thread_at_line or nil, name)
end

-- Begin or end watching; `how` is "cover", "step" or nil: only calls are watched.
local function watch(on, sha, chunk, how)
  calls.observe(on)
  watched, stepping = chunk, how == "step"
  mask = on and how and "l" or ""
  if how then
    all_seen[sha] = all_seen[sha] or {}
    seen = all_seen[sha]
    globals.__cov = pass_mark
    kit.while_loading.__cov = pass_mark
  else
    globals.__cov = nil
    kit.while_loading.__cov = nil
  end
  arm()
end

-- The lines of a script that were seen.
local function lines_seen(sha)
  local lines = {}
  for line in next, all_seen[sha] or {} do
    lines[#lines + 1] = line
  end
  return unpack(lines)
end

local function set_mark(bytes)
  mark = bytes / 1024
  calls.set_mark(mark)
end

local box = { compile = compile, run = run, run_tables = run_tables, scalars = calls.scalars, arrays = calls.arrays,
              set_resp = set_resp, take = calls.take, more = replies.more,
              watch = watch, seen = lines_seen, inspect = inspect,
              mark = set_mark, recover = recover, collect = function() collect() end, pace = pace }
if host.has_libraries then
  kit.env, kit.server, kit.missing_global, kit.error_handler = env, calls.server, missing_global, error_handler
  kit.finished, kit.split, kit.settle, kit.fresh = finished, split, settle, fresh
  for name, fn in next, parts.library(kit) do
    box[name] = fn
  end
else
  globals.KEYS, globals.ARGV = {}, {}
  globals.__redis__err__handler = error_handler
  globals.__server__err__handler = error_handler
end
return box
