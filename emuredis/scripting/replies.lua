-- What a script returned or died of, as what the host takes: a plain value, or a kind and what belongs to it.
--
-- Flat arrays go as the results of one call. Anything else becomes *tokens*, a list of codes and payloads, fetched in
-- portions: `emuredis.scripting.runtime` makes the reply of them. The order in which fields are looked at is the
-- server's.

local type, next, unpack, tostring, rawget = type, next, unpack, tostring, rawget
local sub = string.sub
local getmetatable = debug.getmetatable

return function(kit)
  local real, c_string, signed = kit.real, kit.c_string, kit.signed

  -- Kinds; emuredis.scripting.bridge has the same numbers.
  local ERROR, STRINGS, FLAT, TOKENS = 1, 5, 6, 7

  -- Codes of the tokens in which nested tables go to the host, each followed by its payload.
  local T_STRING, T_NUMBER, T_BOOLEAN, T_NULL, T_STATUS, T_ERROR, T_DOUBLE, T_BIG, T_VERBATIM, T_ARRAY, T_MAP, T_SET =
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12

  local MAX_STACK = 7994  -- slots of the server's Lua stack that nested replies may take

  local function is_text(x)
    return type(x) == "string" or type(x) == "number"
  end

  local function error_message(t)
    local message = t.err
    if not is_text(message) then
      return "ERR unknown error"
    end
    return c_string(tostring(message))
  end

  local emit

  -- Append the tokens of a table that is marked as a special reply; false if it is an ordinary array.
  local function emit_special(out, n, t, depth)
    local x = rawget(t, "err")
    if type(x) == "string" then
      out[n + 1], out[n + 2] = T_ERROR, error_message(t)
      return n + 2
    end
    x = rawget(t, "ok")
    if type(x) == "string" then
      out[n + 1], out[n + 2] = T_STATUS, c_string(x)
      return n + 2
    end
    x = rawget(t, "double")
    if type(x) == "number" then
      out[n + 1], out[n + 2] = T_DOUBLE, signed(x)
      return n + 2
    end
    x = rawget(t, "big_number")
    if type(x) == "string" then
      out[n + 1], out[n + 2] = T_BIG, c_string(x)
      return n + 2
    end
    x = rawget(t, "verbatim_string")
    if type(x) == "table" then
      local kind, text = rawget(x, "format"), rawget(x, "string")
      if type(kind) == "string" and type(text) == "string" then
        out[n + 1], out[n + 2], out[n + 3] = T_VERBATIM, c_string(kind), text
        return n + 3
      end
    end
    x = rawget(t, "map")
    if type(x) == "table" then
      local at, size = n + 2, 0
      out[n + 1], n = T_MAP, n + 2
      for k, v in next, real[x] or x do
        n = emit(out, n, k, depth + 4)
        n = emit(out, n, v, depth + 3)
        size = size + 1
      end
      out[at] = size
      return n
    end
    x = rawget(t, "set")
    if type(x) == "table" then
      local at, size = n + 2, 0
      out[n + 1], n = T_SET, n + 2
      for k in next, real[x] or x do
        n = emit(out, n, k, depth + 3)
        size = size + 1
      end
      out[at] = size
      return n
    end
    return false
  end

  function emit(out, n, v, depth)
    local kind = type(v)
    if depth > MAX_STACK then
      out[n + 1], out[n + 2] = T_ERROR, "ERR reached lua stack limit"
      return n + 2
    elseif kind == "string" then
      out[n + 1], out[n + 2] = T_STRING, v
      return n + 2
    elseif kind == "number" then
      out[n + 1], out[n + 2] = T_NUMBER, v
      return n + 2
    elseif kind == "boolean" then
      out[n + 1], out[n + 2] = T_BOOLEAN, v
      return n + 2
    elseif kind ~= "table" then
      out[n + 1] = T_NULL
      return n + 1
    end
    local special = emit_special(out, n, v, depth)
    if special then
      return special
    end
    local at, size = n + 2, 0
    out[n + 1], n = T_ARRAY, n + 2
    local item = rawget(v, 1)
    while item ~= nil do
      n = emit(out, n, item, depth + 1)
      size = size + 1
      item = rawget(v, size + 1)
    end
    out[at] = size
    return n
  end

  local FLAT_MOST = 5000  -- values given back at once; more are fetched in portions
  local tokens, token_count

  local function more(first)
    local last = first + FLAT_MOST - 1
    if last >= token_count then
      last = token_count
    end
    return unpack(tokens, first, last)
  end

  local function reply_table(t)
    if getmetatable(t) == nil and t.err == nil and t.ok == nil and t.double == nil and t.big_number == nil
      and t.verbatim_string == nil and t.map == nil and t.set == nil then
      local n, kind = 0, STRINGS
      while n <= FLAT_MOST do
        local item = t[n + 1]
        local what = type(item)
        if what == "string" then
          n = n + 1
        elseif what == "number" or what == "boolean" then
          n, kind = n + 1, FLAT
        elseif what == "nil" and n > 0 then
          return kind, unpack(t, 1, n)
        elseif what == "nil" then
          return TOKENS, 2, T_ARRAY, 0
        else
          break
        end
      end
    end
    tokens = {}
    token_count = emit(tokens, 0, t, 0)
    return TOKENS, token_count, more(1)
  end

  local function forget()
    tokens = nil
  end

  local function failure(err)
    if type(err) ~= "table" then
      local text = is_text(err) and tostring(err) or "execution failure"
      return ERROR, "ERR Error running script, " .. sub(c_string(text), 1, 100)
    end
    local message, source, line = error_message(err), err.source, err.line
    if is_text(source) and is_text(line) then
      message = message .. " script: on " .. c_string(tostring(source)) .. ":" .. c_string(tostring(line)) .. "."
    end
    return ERROR, message
  end

  return { table = reply_table, failure = failure, more = more, forget = forget }
end
