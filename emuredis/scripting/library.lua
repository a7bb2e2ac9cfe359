-- What the functions' interpreter has instead of scripts: libraries, loaded once, and calls of what they registered.
--
-- While a library is loading, its globals are `server` (and `redis`) with little more than register_function; when
-- one of its functions runs, they are those of a script, without KEYS and ARGV, which it gets as arguments. The same
-- environment serves both: what it reads from is exchanged.

local error, type, select, next, tostring, pcall, xpcall = error, type, select, next, tostring, pcall, xpcall
local setmetatable, getmetatable = setmetatable, getmetatable
local lower = string.lower

return function(kit)
  local c_string, view, metatables, globals = kit.c_string, kit.view, kit.metatables, kit.globals
  local compile, is_native, error_handler = kit.compile, kit.is_native, kit.error_handler
  local finished, split, settle, fresh = kit.finished, kit.split, kit.settle, kit.fresh
  local server, environment = kit.server, getmetatable(kit.env)

  local FLAGS = {  -- emuredis.scripting.functions has the same bits
    ["no-writes"] = 1, ["allow-oom"] = 2, ["allow-stale"] = 4, ["no-cluster"] = 8, ["allow-cross-slot-keys"] = 16,
  }

  local loading     -- what the library that is being loaded has registered; nil at other times
  local registered  -- the same of the library loaded last

  -- -- register_function --------------------------------------------------------------------------

  local function refuse(message)
    error({ err = "ERR " .. message }, 0)
  end

  local function is_text(x)
    return type(x) == "string" or type(x) == "number"
  end

  local function text_of(x, what)
    if not is_text(x) then
      refuse(what .. " argument given to server.register_function must be a string")
    end
    return tostring(x)
  end

  local function flags_of(t)
    if type(t) ~= "table" then
      refuse("flags argument to server.register_function must be a table representing function flags")
    end
    local given, at = {}, 1
    while t[at] ~= nil do
      local flag = is_text(t[at]) and lower(c_string(tostring(t[at])))
      if not flag or not FLAGS[flag] then
        refuse("unknown flag given")
      end
      given[flag], at = true, at + 1
    end
    local bits = 0
    for flag in next, given do
      bits = bits + FLAGS[flag]
    end
    return bits
  end

  -- The fields are looked at in the table's own order, so that of several mistakes the server's is told.
  local function named(t)
    if type(t) ~= "table" then
      refuse("calling server.register_function with a single argument is only applicable to Lua table (representing "
        .. "named arguments).")
    end
    local made = { flags = 0 }
    for key, value in next, kit.real[t] or t do
      if not is_text(key) then
        refuse("named argument key given to server.register_function is not a string")
      end
      key = lower(c_string(tostring(key)))
      if key == "function_name" then
        made.name = text_of(value, key)
      elseif key == "description" then
        made.description = c_string(text_of(value, key))
      elseif key == "callback" then
        if type(value) ~= "function" then
          refuse("callback argument given to server.register_function must be a function")
        end
        made.callback = value
      elseif key == "flags" then
        made.flags = flags_of(value)
      else
        refuse("unknown argument given to server.register_function")
      end
    end
    if not made.name then
      refuse("server.register_function must get a function name argument")
    elseif not made.callback then
      refuse("server.register_function must get a callback argument")
    end
    return made
  end

  local function positional(name, callback)
    if not is_text(name) then
      refuse("first argument to server.register_function must be a string")
    elseif type(callback) ~= "function" then
      refuse("second argument to server.register_function must be a function")
    end
    return { name = tostring(name), callback = callback, flags = 0 }
  end

  local function register_function(...)
    if not loading then
      refuse("server.register_function can only be called on FUNCTION LOAD command")
    end
    local n = select("#", ...)
    if n < 1 or n > 2 then
      refuse("wrong number of arguments to server.register_function")
    end
    local made
    if n == 1 then
      made = named(...)
    else
      made = positional(...)
    end
    loading[#loading + 1] = made
  end

  -- -- loading ------------------------------------------------------------------------------------

  local missing = { __index = kit.missing_global }
  local loading_server = setmetatable({ register_function = register_function }, missing)
  function loading_server.log(...)
    server.log(...)
  end
  for name, value in next, server do
    if type(value) ~= "function" and not name:find("^REPL_") then
      loading_server[name] = value
    end
  end
  local seen = view(loading_server)
  metatables[seen] = view(missing)
  local loading_globals = setmetatable(kit.while_loading, missing)
  loading_globals.server, loading_globals.redis = seen, seen

  for _, name in next, { "breakpoint", "debug", "replicate_commands" } do
    server[name] = nil
  end

  local function message_of(err)
    if type(err) == "table" then
      err = err.err
      return is_text(err) and c_string(tostring(err)) or "ERR unknown error"
    end
    return "ERR " .. (is_text(err) and c_string(tostring(err)) or "")
  end

  -- The number of functions that `source` registers, or what is wrong with it.
  local function load(source)
    local fn, message = compile(source, "@user_function")
    if not fn then
      return "Error compiling function: " .. c_string(message)
    end
    loading, environment.__index = {}, loading_globals
    fresh()
    local ok, err = pcall(fn)
    registered, loading, environment.__index = loading, nil, globals
    settle(ok, err)
    if ok then
      return #registered
    end
    registered = nil
    return "Error registering functions: " .. message_of(err)
  end

  local function taken(i)
    local made = registered[i]
    return made.name, made.callback, made.flags, made.description
  end

  -- -- calling ------------------------------------------------------------------------------------

  local current = {}

  local function picked()
    return current.fn
  end

  local function call_current()
    return picked()(current.keys, current.args)
  end

  -- What the server makes of an error whose raiser was called by no Lua function.
  local function without_frame(ok, ...)
    if ok then
      return finished(true, ...)
    end
    local err = ...
    if type(err) ~= "table" and type(err) ~= "userdata" then
      err = { err = "ERR " .. globals.tostring(err) }
    end
    return finished(false, err)
  end

  local function run_tables(fn, keys, args)
    fresh()
    if is_native(fn) then
      return without_frame(pcall(fn, keys, args))
    end
    current.fn, current.keys, current.args = fn, keys, args
    return finished(xpcall(call_current, error_handler))
  end

  local function run(fn, numkeys, ...)
    return run_tables(fn, split(numkeys, ...))
  end

  return { load = load, taken = taken, run = run, run_tables = run_tables }
end
