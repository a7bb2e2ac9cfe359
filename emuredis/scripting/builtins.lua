-- Lua's own functions and libraries, as scripts see them: those that would look through a view, show a position that is
-- ours or leave the sandbox are written anew, the others are the interpreter's.

local getinfo, getmetatable_raw = debug.getinfo, debug.getmetatable
local error, type, select, next, tostring, pcall, load = error, type, select, next, tostring, pcall, load
local xpcall, collectgarbage = xpcall, collectgarbage
local tonumber, rawget, rawset = tonumber, rawget, rawset
local setmetatable, getmetatable = setmetatable, getmetatable
local sub, rep, floor, insert, foreach, dump = string.sub, string.rep, math.floor, table.insert, table.foreach, string.dump
local create, resume = coroutine.create, coroutine.resume
local clock = os.clock
local lua = _G

return function(kit)
  local globals, view, real, metatables, null = kit.globals, kit.view, kit.real, kit.metatables, kit.null
  local bad_argument, expected, fail, where = kit.bad_argument, kit.expected, kit.fail, kit.where
  local is_native, whole, compile, enclosed = kit.is_native, kit.whole, kit.compile, kit.enclosed
  local refuse_foreign, noticed, drawn = kit.refuse_foreign, kit.noticed, kit.host.drawn
  local out_of_memory, room = kit.out_of_memory, kit.room
  local watch, killed, stopping = kit.watch, kit.killed, kit.stopping
  local OURS, BYTECODE, READONLY = kit.ours, kit.bytecode, kit.readonly

  -- -- Lua's own functions, as scripts see them ------------------------------------------------------

  function globals.next(...)
    local t, k = ...
    if type(t) ~= "table" then
      bad_argument(1, expected(1, "table", ...))
    end
    local key, value = next(real[t] or t, k)
    return key, value
  end

  function globals.pairs(...)
    local t = ...
    if type(t) ~= "table" then
      bad_argument(1, expected(1, "table", ...))
    end
    if real[t] then
      return globals.next, t, nil
    end
    return next, t, nil
  end

  function globals.rawget(...)
    local t, k = ...
    if type(t) ~= "table" then
      bad_argument(1, expected(1, "table", ...))
    elseif select("#", ...) < 2 then
      bad_argument(2, "value expected")
    end
    return (rawget(real[t] or t, k))
  end

  function globals.rawset(...)
    local t, k, v = ...
    if type(t) ~= "table" then
      bad_argument(1, expected(1, "table", ...))
    elseif select("#", ...) < 3 then
      bad_argument(select("#", ...) + 1, "value expected")
    elseif real[t] then
      error(READONLY, 0)
    end
    local same = rawset(t, k, v)
    return same
  end

  function globals.setmetatable(...)
    local t, meta = ...
    if type(t) ~= "table" then
      bad_argument(1, expected(1, "table", ...))
    elseif type(meta) ~= "table" and (meta ~= nil or select("#", ...) < 2) then
      bad_argument(2, "nil or table expected")
    elseif real[t] then
      error(READONLY, 0)
    end
    local before = getmetatable_raw(t)
    if before and rawget(before, "__metatable") ~= nil then
      fail("cannot change a protected metatable")
    end
    return (setmetatable(t, meta))
  end

  local string_meta

  function globals.getmetatable(...)
    local v = ...
    if v == nil and select("#", ...) == 0 then
      bad_argument(1, "value expected")
    end
    if type(v) == "string" then
      return string_meta
    elseif real[v] then
      return metatables[v]
    end
    return (getmetatable(v))
  end

  function globals.tostring(...)
    local v = ...
    if v == nil and select("#", ...) == 0 then
      bad_argument(1, "value expected")
    elseif v == null then
      return "userdata: (nil)"
    end
    return (tostring(v))
  end

  -- The position `level` calls above the function that calls this one, our own frames counting as blamed() has it.
  local function position(level)
    local at = 3
    local info = getinfo(at, "Sl")
    while info and level > 1 do
      local above = getinfo(at + 1, "Sl")
      while above and (above.source == OURS or (above.what == "tail" and info.source == OURS)) do
        at, info = at + 1, above
        above = getinfo(at + 1, "Sl")
      end
      at, info, level = at + 1, above, level - 1
    end
    if info and info.currentline > 0 and info.source ~= OURS then
      return info.short_src .. ":" .. info.currentline .. ": "
    end
    return ""
  end

  function globals.error(...)
    local message, level = ...
    if level == nil then
      level = 1
    elseif tonumber(level) == nil or type(level) == "boolean" then
      bad_argument(2, expected(2, "number", ...))
    end
    level = floor(tonumber(level))
    if level > 0 and (type(message) == "string" or type(message) == "number") then
      message = position(level) .. message
    end
    error(message, 0)
  end

  -- The server turns a caught error table into its message.
  local function caught(ok, ...)
    if ok then
      return true, ...
    end
    local err = ...
    noticed(err)
    if type(err) == "table" then
      local message = err.err
      if type(message) == "string" or type(message) == "number" then
        return false, message
      end
      return false, err, message
    end
    refuse_foreign(err)
    return false, ...
  end

  function globals.pcall(...)
    if select("#", ...) == 0 then
      return false, "attempt to call a boolean value"  -- what the server says of its own placeholder
    end
    return caught(pcall(...))
  end

  -- A handler runs without hooks when it was a hook that raised: one that never ends could not be ended.
  local function heeded(ok, ...)
    if not ok then
      noticed((...))
    end
    return ok, ...
  end

  function globals.xpcall(...)
    local fn, handler = ...
    if select("#", ...) < 2 then
      bad_argument(2, "value expected")
    end
    if type(handler) ~= "function" then
      return heeded(xpcall(fn, handler))
    end
    return heeded(xpcall(fn, function(err)
      if killed() then
        return err
      end
      noticed(err)
      local answer = handler(err)
      return answer
    end))
  end

  local OPTIONS = { stop = 1, restart = 1, collect = 1, count = 1, step = 1, setpause = 1, setstepmul = 1 }

  function globals.collectgarbage(...)
    local option, number = ...
    if option == nil then
      option = "collect"
    elseif type(option) ~= "string" and type(option) ~= "number" then
      bad_argument(1, expected(1, "string", ...))
    elseif not OPTIONS[option] then
      bad_argument(1, "invalid option '" .. kit.c_string(tostring(option)) .. "'")
    end
    if number ~= nil and type(number) ~= "number" and (type(number) ~= "string" or tonumber(number) == nil) then
      bad_argument(2, expected(2, "number", ...))
    end
    if option == "stop" then
      stopping()
    end
    return (collectgarbage(option, number))
  end

  function globals.loadstring(...)
    local source, name = ...
    if type(source) ~= "string" and type(source) ~= "number" then
      bad_argument(1, expected(1, "string", ...))
    elseif name ~= nil and type(name) ~= "string" and type(name) ~= "number" then
      bad_argument(2, expected(2, "string", ...))
    end
    source = tostring(source)
    local fn, message = compile(source, name == nil and source or tostring(name))
    if fn then
      return fn
    end
    return nil, message
  end

  function globals.load(...)
    local reader, name = ...
    if type(reader) ~= "function" then
      bad_argument(1, expected(1, "function", ...))
    elseif name ~= nil and type(name) ~= "string" and type(name) ~= "number" then
      bad_argument(2, expected(2, "string", ...))
    end
    name = name == nil and "=(load)" or tostring(name)
    local first = true
    local fn, message = load(function()
      local piece = reader()
      if first and type(piece) == "string" and sub(piece, 1, 1) == BYTECODE then
        piece = " " .. BYTECODE
      end
      first = false
      return piece
    end, name)
    if not fn then
      return nil, message
    end
    fn = enclosed(fn, name)
    return fn
  end

  for _, name in next, { "assert", "gcinfo", "ipairs", "rawequal", "select", "tonumber", "type", "unpack", "_VERSION" } do
    globals[name] = lua[name]
  end

  -- -- Lua's own libraries --------------------------------------------------------------------------

  local function copied(library, ...)
    local out = {}
    for _, name in next, { ... } do
      out[name] = library[name]
    end
    return out
  end

  local strings = copied(string, "byte", "char", "find", "format", "gfind", "gmatch", "gsub", "len", "lower", "match",
    "reverse", "sub", "upper")

  -- Lua's own takes seconds to find that there is no memory for so much.
  function strings.rep(...)
    local text, n = ...
    if type(text) ~= "string" and type(text) ~= "number" then
      bad_argument(1, expected(1, "string", ...))
    elseif type(n) ~= "number" and (type(n) ~= "string" or tonumber(n) == nil) then
      bad_argument(2, expected(2, "number", ...))
    end
    if #tostring(text) * tonumber(n) > room() then
      out_of_memory()
    end
    local answer = rep(text, n)
    return answer
  end

  function strings.dump(...)
    local fn = ...
    if type(fn) ~= "function" then
      bad_argument(1, expected(1, "function", ...))
    end
    if is_native(fn) then
      fail("unable to dump given function")
    end
    return (dump(fn))
  end

  local tables = copied(table, "concat", "foreachi", "getn", "maxn", "remove", "setn", "sort")

  function tables.insert(...)
    local t, at, value = ...
    local n = select("#", ...)
    if type(t) ~= "table" then
      bad_argument(1, expected(1, "table", ...))
    elseif n == 2 then
      if real[t] then
        error(READONLY, 0)
      end
      insert(t, at)
    elseif n == 3 then
      if type(at) ~= "number" and (type(at) ~= "string" or tonumber(at) == nil) then
        bad_argument(2, expected(2, "number", ...))
      elseif real[t] then
        error(READONLY, 0)
      end
      insert(t, at, value)
    else
      fail("wrong number of arguments to 'insert'")
    end
  end

  function tables.foreach(...)
    local t, fn = ...
    if type(t) ~= "table" then
      bad_argument(1, expected(1, "table", ...))
    elseif type(fn) ~= "function" then
      bad_argument(2, expected(2, "function", ...))
    end
    local answer = foreach(real[t] or t, fn)
    return answer
  end

  local maths = copied(math, "abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "deg", "exp", "floor",
    "fmod", "frexp", "huge", "ldexp", "log", "log10", "max", "min", "mod", "modf", "pi", "pow", "rad", "sin",
    "sinh", "sqrt", "tan", "tanh")

  function maths.random(...)
    local n, from, to = select("#", ...), ...
    local r = drawn()  -- by the host, for scripts and functions share one generator
    if n == 0 then
      return r
    end
    for i = 1, n > 2 and 0 or n do
      if tonumber((select(i, ...))) == nil or type((select(i, ...))) == "boolean" then
        bad_argument(i, expected(i, "number", ...))
      end
    end
    if n == 1 then
      from = whole(tonumber(from))
      if from < 1 then
        bad_argument(1, "interval is empty")
      end
      return floor(r * from) + 1
    elseif n == 2 then
      from, to = whole(tonumber(from)), whole(tonumber(to))
      if from > to then
        bad_argument(2, "interval is empty")
      end
      return floor(r * (to - from + 1)) + from
    end
    fail("wrong number of arguments")
  end

  function maths.randomseed(...)
    local seed = tonumber((...))
    if seed == nil then
      bad_argument(1, expected(1, "number", ...))
    end
    kit.host.seed(whole(seed) % 4294967296)
  end

  local coroutines = copied(coroutine, "running", "status", "yield")

  function coroutines.create(...)
    local fn = ...
    if type(fn) ~= "function" or is_native(fn) then
      bad_argument(1, "Lua function expected")
    end
    local thread = create(fn)
    watch(thread)
    return thread
  end

  function coroutines.resume(...)
    if type((...)) ~= "thread" then
      bad_argument(1, "coroutine expected")
    end
    return heeded(resume(...))
  end

  local function wrapped(ok, ...)
    if ok then
      return ...
    end
    noticed((...))
    local err = ...
    if type(err) == "string" or type(err) == "number" then
      err = where(3) .. err
    end
    error(err, 0)
  end

  function coroutines.wrap(...)
    local fn = ...
    if type(fn) ~= "function" or is_native(fn) then
      bad_argument(1, "Lua function expected")
    end
    local thread = create(fn)
    watch(thread)
    return function(...)
      return wrapped(resume(thread, ...))
    end
  end

  getmetatable_raw("").__index = strings

  globals.string = view(strings)
  globals.table = view(tables)
  globals.math = view(maths)
  globals.os = view({ clock = clock })
  globals.coroutine = view(coroutines)
  string_meta = view({ __index = globals.string })
end
