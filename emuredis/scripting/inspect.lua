-- What a debugger wants to see of a script that has stopped: its frames, their local variables, values as text.
--
-- `stopped_in` is the coroutine in which the script stopped, nil for the main one. Frames count from 1, the innermost
-- function of the script; functions of ours and C functions are no frames.

local getinfo, getlocal = debug.getinfo, debug.getlocal
local type, next, tostring, loadstring, pcall = type, next, tostring, loadstring, pcall
local format, find = string.format, string.find

return function(kit)
  local globals, ours = kit.globals, kit.ours
  local DEEPEST = 10

  -- A value as the server's debugger shows it.
  local function shown(value, depth)
    local kind = type(value)
    if kind == "string" then
      return value
    elseif kind == "number" then
      return format("%.17g", value)
    elseif kind == "boolean" or kind == "nil" then
      return tostring(value)
    elseif kind ~= "table" then
      return ' "' .. (find(tostring(value), "0x") and tostring(value):gsub(": ", "@") or kind) .. '"'
    elseif depth == DEEPEST then
      return "<max recursion level reached! Nested table?>"
    end
    local array, at, out = true, 1, "{"
    for key in next, value do
      array = array and key == at
      at = at + 1
    end
    for key, item in next, value do
      if not array then
        out = out .. "[" .. shown(key, depth + 1) .. "]="
      end
      out = out .. shown(item, depth + 1) .. "; "
    end
    return out .. "}"
  end

  -- Calls `visit(info, get)` for each frame, innermost first, until it answers something but nil.
  local function frames(stopped_in, visit)
    local level = stopped_in and 0 or 2
    while true do
      local info = stopped_in and getinfo(stopped_in, level, "nSl") or not stopped_in and getinfo(level, "nSl")
      if not info then
        return nil
      end
      if info.source ~= ours and info.what ~= "C" and info.what ~= "tail" then
        local here = level
        local found = visit(info, function(i)
          if stopped_in then
            return getlocal(stopped_in, here, i)
          end
          return getlocal(here + 2, i)  -- this function and `visit` lie between
        end)
        if found ~= nil then
          return found
        end
      end
      level = level + 1
    end
  end

  local inspect = {}

  -- A flat list: name ("" for the main chunk) and line of each frame.
  function inspect.stack(stopped_in)
    local out = {}
    frames(stopped_in, function(info)
      out[#out + 1] = info.name or ""
      out[#out + 1] = info.currentline
    end)
    return out
  end

  -- A flat list: name and text of each local variable of the innermost frame.
  function inspect.locals(stopped_in)
    local out = {}
    frames(stopped_in, function(info, get)
      local i = 1
      local name, value = get(i)
      while name do
        if not find(name, "(*", 1, true) then
          out[#out + 1] = name
          out[#out + 1] = shown(value, 0)
        end
        i = i + 1
        name, value = get(i)
      end
      return true
    end)
    return out
  end

  -- The text of a variable, looked for from the innermost frame outwards, then in KEYS and ARGV; nil without one.
  function inspect.variable(stopped_in, wanted)
    local found = frames(stopped_in, function(info, get)
      local i = 1
      local name, value = get(i)
      while name do
        if name == wanted then
          return shown(value, 0)
        end
        i = i + 1
        name, value = get(i)
      end
    end)
    if found == nil and (wanted == "KEYS" or wanted == "ARGV") then
      return shown(kit.rawget(globals, wanted), 0)
    end
    return found
  end

  -- Run `code` in the script's world: "compile", "error" or "value", and the text.
  function inspect.eval(code)
    local fn, message = loadstring("return " .. code, "@ldb_eval")
    if not fn then
      fn, message = loadstring(code, "@ldb_eval")
    end
    if not fn then
      return { "compile", message }
    end
    local ok, value = pcall(kit.enclosed(fn, "@ldb_eval"))
    if not ok and type(value) ~= "string" and type(value) ~= "number" then
      value = "(null)"  -- what the server makes of an error that is no text
    end
    return { ok and "value" or "error", ok and shown(value, 0) or tostring(value) }
  end

  function inspect.shown(value)
    return shown(value, 0)
  end

  return inspect
end
