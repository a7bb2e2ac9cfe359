-- redis.call and the rest of the table `server`.
--
-- A call whose name is known goes straight to the host function of that command (a *caller*, registered by the host
-- under the spelling the script used). What comes back first decides: a value is the reply, (nil, kind, value) is
-- anything else. Nothing is raised from a tail call, see ``sandbox.lua``.

local error, type, select, next, unpack, tostring, tonumber = error, type, select, next, unpack, tostring, tonumber
local find, sub, concat, floor = string.find, string.sub, table.concat, math.floor
local gcinfo = gcinfo

return function(kit)
  local host, kill, c_string, crowded = kit.host, kit.kill, kit.c_string, kit.crowded
  local out_of_memory = kit.out_of_memory

  -- Kinds; emuredis.scripting.bridge has the same numbers.
  local ERROR, STATUS, TABLE, FATAL = 1, 2, 3, 4

  local scalars, arrays = {}, {}      -- name -> host function, for RESP2; spelled as scripts spelled it
  local by_value, by_array = scalars, arrays
  local nothing = {}
  local observed, resp = false, 2

  local packed
  local function take()
    local args = packed
    packed = nil
    return unpack(args, 1, args.n)
  end

  -- What the host answered, when it is no plain value. `raise`: redis.call's way with errors.
  local function special(kind, value, raise)
    if kind == STATUS then
      return { ok = value }
    elseif kind == TABLE then
      return value
    elseif kind == ERROR then
      local err = { err = value, ignore_error_stats_update = true }
      if raise then
        error(err, 0)
      end
      return err
    elseif kind == FATAL then
      by_value, by_array = nothing, nothing  -- whatever the script catches, it calls no command any more
      kill(value)
      error({ err = value }, 0)
    end
  end

  -- Lua must have memory left for the reply, see emuredis.scripting.guard.
  local mark = math.huge

  local function set_mark(kilobytes)
    mark = kilobytes
  end

  local MANY = 40  -- arguments, above which they are fetched by the host: passing them is quadratic

  local function call_other(raise, ...)
    local n = select("#", ...)
    if observed then
      host.called_at(kit.user_line())
    end
    if n == 0 then
      if observed then
        kit.event("error", "Please specify at least one argument for this call")
      end
      local err = { err = "ERR Please specify at least one argument for this call" }
      if raise then
        error(err, 0)
      end
      return err
    end
    local value, kind, extra
    if n > MANY then
      packed = { n = n, ... }
      value, kind, extra = host.call_packed()
    else
      value, kind, extra = host.call(...)
    end
    if kind == nil then
      return value
    end
    local answer = special(kind, extra, raise)
    return answer
  end

  -- redis.call, which raises errors, and redis.pcall, which returns them.
  local function maker(raise)
    return function(...)
      if gcinfo() > mark and crowded() then
        out_of_memory()
      end
      local name = ...
      local fn = by_value[name]
      if fn and select("#", ...) <= MANY then
        local value, kind, extra = fn(...)
        if kind == nil then
          return value
        end
        local answer = special(kind, extra, raise)
        return answer
      end
      fn = by_array[name]
      if fn and select("#", ...) <= MANY then
        local t = { fn(...) }
        if t[1] == nil and t[2] ~= nil then
          local answer = special(t[2], t[3], raise)
          return answer
        end
        return t
      end
      local answer = call_other(raise, ...)
      return answer
    end
  end

  local function set_resp(version)
    resp = version
    if version == 3 or observed then
      by_value, by_array = nothing, nothing
    else
      by_value, by_array = scalars, arrays
    end
  end

  -- While observed, every call goes the slow way, where the host tells its observers.
  local function observe(on)
    observed = on
    set_resp(resp)
  end

  local function raise_table(message)
    error({ err = "ERR " .. message }, 0)
  end

  -- -- server.* -----------------------------------------------------------------------------------

  local server = {
    LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
    REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
  }
  for name, value in next, host.versions do
    server[name] = value
  end

  server.call = maker(true)
  server.pcall = maker(false)

  local function one_string(...)
    return select("#", ...) == 1 and type((...)) == "string"
  end

  function server.error_reply(...)
    if not one_string(...) then
      return { err = "ERR wrong number or type of arguments" }
    end
    local text = c_string((...))
    if sub(text, 1, 1) == "-" then
      text = sub(text, 2)
    end
    if observed then
      kit.event("error", "-" .. text)
    end
    local space = find(text, " ", 1, true)
    if not space then
      return { err = "ERR " .. text }
    end
    local code, rest = sub(text, 1, space - 1), sub(text, space + 1)
    return { err = code .. " " .. host.trim(rest) }
  end

  function server.status_reply(...)
    if not one_string(...) then
      return { err = "ERR wrong number or type of arguments" }
    end
    return { ok = (...) }
  end

  function server.sha1hex(...)
    if select("#", ...) ~= 1 then
      raise_table("wrong number of arguments")
    end
    local text = ...
    if type(text) ~= "string" then
      text = type(text) == "number" and tostring(text) or ""
    end
    return (host.sha1hex(text))
  end

  function server.log(...)
    local n = select("#", ...)
    if n < 2 then
      raise_table("server.log() requires two arguments or more.")
    end
    local level = tonumber((...))
    if level == nil or type((...)) == "boolean" then
      raise_table("First argument must be a number (log level).")
    end
    if level <= -1 or level >= 4 then
      raise_table("Invalid log level.")
    end
    local words = {}
    for i = 2, n do
      local word = select(i, ...)
      if type(word) == "string" or type(word) == "number" then
        words[#words + 1] = c_string(tostring(word))
      end
    end
    host.log(level, concat(words, " "))
  end

  function server.setresp(...)
    if select("#", ...) ~= 1 then
      raise_table("server.setresp() requires one argument.")
    end
    local version = tonumber((...))
    version = version and floor(version)
    if version ~= 2 and version ~= 3 then
      raise_table("RESP version must be 2 or 3.")
    end
    set_resp(version)
    host.setresp(version)
  end

  function server.set_repl(...)
    if select("#", ...) ~= 1 then
      raise_table("server.set_repl() requires one argument.")
    end
    local flags = tonumber((...)) or 0
    if flags <= -1 or flags >= 4 then
      raise_table("Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
    end
  end

  function server.acl_check_cmd(...)
    if select("#", ...) == 0 then
      raise_table("Please specify at least one argument for this call")
    end
    packed = { n = select("#", ...), ... }
    local allowed, kind, message = host.acl_check_cmd()
    if kind ~= nil then
      error({ err = message }, 0)
    end
    return allowed
  end

  function server.replicate_commands()
    return true
  end

  function server.breakpoint()
    return observed and kit.event("breakpoint") or false
  end

  function server.debug(...)
    if observed then
      host.called_at(kit.user_line())
      kit.event("debug", ...)
    end
  end

  local function forget()
    packed = nil
  end

  return { set_mark = set_mark, forget = forget, server = server, observe = observe, scalars = scalars, arrays = arrays, set_resp = set_resp, take = take }
end
