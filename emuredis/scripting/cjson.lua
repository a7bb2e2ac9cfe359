-- cjson: JSON as the server's library writes and reads it, byte for byte, errors included.
--
-- Written in Lua: for the small documents of scripts that is faster than crossing to the host, and the tables are
-- built in the order the server builds them. `fill` makes the module; `cjson.new()` makes another with settings of its
-- own. The order of an object's members is that of `next`, which differs from the server's (another string hash).

local type, next, tonumber, tostring, select = type, next, tonumber, tostring, select
local find, sub, byte, char = string.find, string.sub, string.byte, string.char
local gsub, format = string.gsub, string.format
local floor, concat, huge = math.floor, table.concat, math.huge
local lower, match = string.lower, string.match

local ESCAPED = { ['"'] = '\\"', ["\\"] = "\\\\", ["/"] = "\\/", ["\b"] = "\\b", ["\t"] = "\\t", ["\n"] = "\\n",
                  ["\f"] = "\\f", ["\r"] = "\\r" }
for code = 0, 31 do
  ESCAPED[char(code)] = ESCAPED[char(code)] or format("\\u%04x", code)
end
ESCAPED["\127"] = "\\u007f"

local INT_MAX = 2147483647

local UNESCAPED = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", t = "\t", n = "\n", f = "\f", r = "\r" }

local function utf8(code)
  if code < 0x80 then
    return char(code)
  elseif code < 0x800 then
    return char(0xC0 + floor(code / 64), 0x80 + code % 64)
  elseif code < 0x10000 then
    return char(0xE0 + floor(code / 4096), 0x80 + floor(code / 64) % 64, 0x80 + code % 64)
  end
  local low, middle, high = code % 64, floor(code / 64) % 64, floor(code / 4096) % 64
  return char(0xF0 + floor(code / 262144), 0x80 + high, 0x80 + middle, 0x80 + low)
end

-- -- reading: strings and numbers ------------------------------------------------------------------

-- The code point of the \uXXXX at `at` and what follows it; nil if it is malformed.
local function unicode_escape(s, at)
  local digits = match(s, "^%x%x%x%x", at + 2)
  local code = digits and tonumber(digits, 16)
  if not code then
    return nil
  elseif code < 0xD800 or code > 0xDFFF then
    return code, at + 6
  end
  digits = code < 0xDC00 and match(s, "^\\u(%x%x%x%x)", at + 6)
  local trail = digits and tonumber(digits, 16)
  if not trail or trail < 0xDC00 or trail > 0xDFFF then
    return nil
  end
  return (code - 0xD800) * 1024 + trail - 0xDC00 + 0x10000, at + 12
end

-- The string whose opening quote is at `at`: its value and the next position; or nil, a problem and its place.
local function string_token(s, at)
  local parts, n = {}, 0
  local from = at + 1
  while true do
    local stop = find(s, '["\\]', from)
    if not stop then
      return nil, "unexpected end of string", #s + 1
    end
    if stop > from then
      n = n + 1
      parts[n] = sub(s, from, stop - 1)
    end
    if byte(s, stop) == 34 then
      return concat(parts), stop + 1
    end
    local letter = sub(s, stop + 1, stop + 1)
    local plain = UNESCAPED[letter]
    n = n + 1
    if plain then
      parts[n], from = plain, stop + 2
    elseif letter == "u" then
      local code, after = unicode_escape(s, stop)
      if not code then
        return nil, "invalid unicode escape code", stop
      end
      parts[n], from = utf8(code), after
    else
      return nil, "invalid escape code", stop
    end
  end
end

-- The longest number that C's strtod reads at `at` and the next position; nil if there is none.
local function number_token(s, at)
  local _, stop = find(s, "^[+-]?0[xX]%x+%.?%x*", at)
  if not stop then
    _, stop = find(s, "^[+-]?0[xX]%.%x+", at)
  end
  if stop then
    local _, exponent = find(s, "^[pP][+-]?%d+", stop + 1)
    stop = exponent or stop
  else
    _, stop = find(s, "^[+-]?%d+%.?%d*", at)
    if not stop then
      _, stop = find(s, "^[+-]?%.%d+", at)
    end
    if stop then
      local _, exponent = find(s, "^[eE][+-]?%d+", stop + 1)
      stop = exponent or stop
    end
  end
  if stop then
    return tonumber(sub(s, at, stop)), stop + 1
  end
  local sign, word = match(s, "^([+-]?)(%a+)", at)
  word = word and lower(word)
  if not word then
    return nil
  elseif sub(word, 1, 3) == "inf" then
    stop = at + #sign + (sub(word, 1, 8) == "infinity" and 8 or 3)
    return sign == "-" and -huge or huge, stop
  elseif sub(word, 1, 3) == "nan" then
    stop = at + #sign + 3
    local _, payload = find(s, "^%([%w_]*%)", stop)
    return tonumber(sign .. "nan"), (payload or stop - 1) + 1
  end
  return nil
end

local function is_invalid_number(s, at)
  if sub(s, at, at) == "+" then
    return true
  end
  if sub(s, at, at) == "-" then
    at = at + 1
  end
  local c = byte(s, at) or 0
  if c == 48 then
    return find(s, "^[xX0-9]", at + 1) ~= nil
  elseif c <= 57 then
    return false
  end
  local word = lower(sub(s, at, at + 2))
  return word == "inf" or word == "nan"
end

local SINGLE = { ["{"] = "T_OBJ_BEGIN", ["}"] = "T_OBJ_END", ["["] = "T_ARR_BEGIN", ["]"] = "T_ARR_END",
                 [","] = "T_COMMA", [":"] = "T_COLON" }

-- The name of the token at `at`, or what is wrong with it; and its place.
local function describe(s, at, strict)
  at = find(s, "[^ \t\n\r]", at) or #s + 1
  local c = sub(s, at, at)
  if c == "" then
    return "T_END", at
  elseif SINGLE[c] then
    return SINGLE[c], at
  elseif c == '"' then
    local value, problem, place = string_token(s, at)
    if not value then
      return problem, place
    end
    return "T_STRING", at
  elseif find(c, "[-0-9]") then
    if (strict and is_invalid_number(s, at)) or not number_token(s, at) then
      return "invalid number", at
    end
    return "T_NUMBER", at
  elseif sub(s, at, at + 3) == "true" or sub(s, at, at + 4) == "false" then
    return "T_BOOLEAN", at
  elseif sub(s, at, at + 3) == "null" then
    return "T_NULL", at
  elseif find(c, "[iInN+]") and not strict and is_invalid_number(s, at) then
    if not number_token(s, at) then
      return "invalid number", at
    end
    return "T_NUMBER", at
  end
  return "invalid token", at
end

-- -- the module ------------------------------------------------------------------------------------

return function(kit)
  local null, real, whole = kit.null, kit.real, kit.whole
  local bad_argument, expected, raise = kit.bad_argument, kit.expected, kit.raise

  local function new()
    local sparse_convert, sparse_ratio, sparse_safe = false, 2, 10
    local encode_max_depth, decode_max_depth = 1000, 1000
    local keep_buffer, precision, number_format = true, 14, "%.14g"
    local encode_invalid, decode_invalid = "off", true

    -- -- encoding

    local out, n
    local append

    local function refuse(value, why)
      raise("Cannot serialise " .. type(value) .. ": " .. why)
    end

    local function number(x)
      if x ~= x or x == huge or x == -huge then
        if encode_invalid == "off" then
          refuse(x, "must not be NaN or Inf")
        elseif encode_invalid == "null" then
          return "null"
        elseif x ~= x then
          return "nan"
        end
      end
      return format(number_format, x)
    end

    -- The number of elements to write for an array, or -1 for what must be an object.
    local function array_length(t)
      local most, items = 0, 0
      for k in next, t do
        if type(k) ~= "number" or k < 1 or floor(k) ~= k then
          return -1
        end
        if k > most then
          most = k > INT_MAX and -INT_MAX - 1 or k  -- as it overflows there
        end
        items = items + 1
      end
      if sparse_ratio > 0 and most > items * sparse_ratio and most > sparse_safe then
        if not sparse_convert then
          refuse(t, "excessively sparse array")
        end
        return -1
      end
      return most
    end

    local function append_object(t, depth)
      local lead = "{"
      for k, v in next, t do
        local kind = type(k)
        if kind == "string" then
          out[n + 1] = lead .. '"' .. gsub(k, '[%c"\\/]', ESCAPED) .. '":'
        elseif kind == "number" then
          out[n + 1] = lead .. '"' .. number(k) .. '":'
        else
          refuse(k, "table key must be a number or string")
        end
        n = n + 1
        lead = ","
        append(v, depth)
      end
      n = n + 1
      out[n] = lead == "{" and "{}" or "}"
    end

    local function append_table(t, depth)
      depth = depth + 1
      if depth > encode_max_depth then
        raise("Cannot serialise, excessive nesting (" .. depth .. ")")
      end
      t = real[t] or t
      local length = array_length(t)
      if length <= 0 then
        append_object(t, depth)
        return
      end
      local lead = "["
      for i = 1, length do
        n = n + 1
        out[n] = lead
        lead = ","
        append(kit.rawget(t, i), depth)
      end
      n = n + 1
      out[n] = "]"
    end

    function append(v, depth)
      local kind = type(v)
      if kind == "table" then
        append_table(v, depth)
        return
      end
      n = n + 1
      if kind == "string" then
        out[n] = '"' .. gsub(v, '[%c"\\/]', ESCAPED) .. '"'
      elseif kind == "number" then
        out[n] = number(v)
      elseif kind == "boolean" then
        out[n] = v and "true" or "false"
      elseif v == nil or v == null then
        out[n] = "null"
      else
        refuse(v, "type not supported")
      end
    end

    local cjson = { null = null, _NAME = "cjson", _VERSION = "2.1.0", new = new }

    function cjson.encode(...)
      if select("#", ...) ~= 1 then
        bad_argument(1, "expected 1 argument")
      end
      out, n = {}, 0
      append((...), 0)
      local text = concat(out)
      out = nil
      return text
    end

    -- -- decoding

    local value

    local function unexpected(wanted, s, at)
      local found, place = describe(s, at, not decode_invalid)
      raise("Expected " .. wanted .. " but found " .. found .. " at character " .. place)
    end

    local function descend(depth, at)
      if depth > decode_max_depth then
        raise("Found too many nested data structures (" .. depth .. ") at character " .. at)
      end
    end

    local function object(s, at, depth)
      depth = depth + 1
      descend(depth, at)
      local t = {}
      at = find(s, "[^ \t\n\r]", at + 1) or #s + 1
      if byte(s, at) == 125 then
        return t, at + 1
      end
      while true do
        if byte(s, at) ~= 34 then
          unexpected("object key string", s, at)
        end
        local stop = find(s, '["\\]', at + 1)
        local key
        if stop and byte(s, stop) == 34 then
          key, at = sub(s, at + 1, stop - 1), stop + 1
        else
          local start = at
          key, at = string_token(s, at)
          if not key then
            unexpected("object key string", s, start)
          end
        end
        at = find(s, "[^ \t\n\r]", at) or #s + 1
        if byte(s, at) ~= 58 then
          unexpected("colon", s, at)
        end
        t[key], at = value(s, at + 1, depth)
        at = find(s, "[^ \t\n\r]", at) or #s + 1
        local c = byte(s, at)
        if c == 125 then
          return t, at + 1
        elseif c ~= 44 then
          unexpected("comma or object end", s, at)
        end
        at = find(s, "[^ \t\n\r]", at + 1) or #s + 1
      end
    end

    local function array(s, at, depth)
      depth = depth + 1
      descend(depth, at)
      local t, size = {}, 0
      local first = find(s, "[^ \t\n\r]", at + 1)
      if first and byte(s, first) == 93 then
        return t, first + 1
      end
      while true do
        size = size + 1
        t[size], at = value(s, at + 1, depth)
        at = find(s, "[^ \t\n\r]", at) or #s + 1
        local c = byte(s, at)
        if c == 93 then
          return t, at + 1
        elseif c ~= 44 then
          unexpected("comma or array end", s, at)
        end
      end
    end

    local function odd_value(s, at)
      if sub(s, at, at + 3) == "true" then
        return true, at + 4
      elseif sub(s, at, at + 4) == "false" then
        return false, at + 5
      elseif sub(s, at, at + 3) == "null" then
        return null, at + 4
      end
      local plain = find(s, "^[-0-9]", at)
      local odd = is_invalid_number(s, at)
      if (plain and (decode_invalid or not odd)) or (decode_invalid and odd and find(s, "^[iInN+]", at)) then
        local x, after = number_token(s, at)
        if x then
          return x, after
        end
      end
      unexpected("value", s, at)
    end

    function value(s, at, depth)
      at = find(s, "[^ \t\n\r]", at) or #s + 1
      local c = byte(s, at)
      if c == 34 then
        local stop = find(s, '["\\]', at + 1)
        if stop and byte(s, stop) == 34 then
          return sub(s, at + 1, stop - 1), stop + 1
        end
        local text, after = string_token(s, at)
        if not text then
          unexpected("value", s, at)
        end
        return text, after
      elseif c == 123 then
        return object(s, at, depth)
      elseif c == 91 then
        return array(s, at, depth)
      elseif c and c >= 49 and c <= 57 then
        local _, stop = find(s, "^%d+", at)
        local after = byte(s, stop + 1)
        if after ~= 46 and after ~= 101 and after ~= 69 then
          return tonumber(sub(s, at, stop)), stop + 1
        end
      end
      return odd_value(s, at)
    end

    function cjson.decode(...)
      if select("#", ...) ~= 1 then
        bad_argument(1, "expected 1 argument")
      end
      local s = ...
      if type(s) ~= "string" then
        if type(s) ~= "number" then
          bad_argument(1, expected(1, "string", ...))
        end
        s = tostring(s)
      end
      local nul = find(s, "\0", 1, true)
      if nul then
        if #s >= 2 and nul <= 2 then
          raise("JSON parser does not support UTF-16 or UTF-32")
        end
        s = sub(s, 1, nul - 1)
      end
      local result, at = value(s, 1, 0)
      if find(s, "[^ \t\n\r]", at) then
        unexpected("the end", s, at)
      end
      return result
    end

    -- -- settings: called without a value they tell the present one

    local function at_most(count, ...)
      if select("#", ...) > count then
        return true
      end
    end

    local function integer(at, low, high, ...)
      local x = select(at, ...)
      if x == nil then
        return nil
      end
      local number = type(x) ~= "boolean" and tonumber(x)
      if not number then
        return nil, at, expected(at, "number", ...)
      end
      number = whole(number)
      if number < low or number > high then
        return nil, 1, "expected integer between " .. low .. " and " .. high
      end
      return number
    end

    local function choice(at, options, ...)
      local x = select(at, ...)
      if x == nil then
        return nil
      elseif type(x) == "boolean" then
        return x and "on" or "off"
      elseif type(x) ~= "string" and type(x) ~= "number" then
        return nil, at, expected(at, "string", ...)
      end
      x = tostring(x)
      if not options[x] then
        return nil, at, "invalid option '" .. x .. "'"
      end
      return x
    end

    local SWITCH = { off = true, on = true }

    function cjson.encode_sparse_array(...)
      if at_most(3, ...) then
        bad_argument(4, "found too many arguments")
      end
      local x, where, why = choice(1, SWITCH, ...)
      if why then
        bad_argument(where, why)
      elseif x then
        sparse_convert = x == "on"
      end
      x, where, why = integer(2, 0, INT_MAX, ...)
      if why then
        bad_argument(where, why)
      end
      sparse_ratio = x or sparse_ratio
      x, where, why = integer(3, 0, INT_MAX, ...)
      if why then
        bad_argument(where, why)
      end
      sparse_safe = x or sparse_safe
      return sparse_convert, sparse_ratio, sparse_safe
    end

    function cjson.encode_max_depth(...)
      if at_most(1, ...) then
        bad_argument(2, "found too many arguments")
      end
      local x, where, why = integer(1, 1, INT_MAX, ...)
      if why then
        bad_argument(where, why)
      end
      encode_max_depth = x or encode_max_depth
      return encode_max_depth
    end

    function cjson.decode_max_depth(...)
      if at_most(1, ...) then
        bad_argument(2, "found too many arguments")
      end
      local x, where, why = integer(1, 1, INT_MAX, ...)
      if why then
        bad_argument(where, why)
      end
      decode_max_depth = x or decode_max_depth
      return decode_max_depth
    end

    function cjson.encode_number_precision(...)
      if at_most(1, ...) then
        bad_argument(2, "found too many arguments")
      end
      local x, where, why = integer(1, 1, 14, ...)
      if why then
        bad_argument(where, why)
      end
      precision = x or precision
      number_format = "%." .. precision .. "g"
      return precision
    end

    function cjson.encode_keep_buffer(...)
      if at_most(1, ...) then
        bad_argument(2, "found too many arguments")
      end
      local x, where, why = choice(1, SWITCH, ...)
      if why then
        bad_argument(where, why)
      elseif x then
        keep_buffer = x == "on"
      end
      return keep_buffer
    end

    function cjson.encode_invalid_numbers(...)
      if at_most(1, ...) then
        bad_argument(2, "found too many arguments")
      end
      local x, where, why = choice(1, { off = true, on = true, null = true }, ...)
      if why then
        bad_argument(where, why)
      end
      encode_invalid = x or encode_invalid
      if encode_invalid == "null" then
        return "null"
      end
      return encode_invalid == "on"
    end

    function cjson.decode_invalid_numbers(...)
      if at_most(1, ...) then
        bad_argument(2, "found too many arguments")
      end
      local x, where, why = choice(1, SWITCH, ...)
      if why then
        bad_argument(where, why)
      elseif x then
        decode_invalid = x == "on"
      end
      return decode_invalid
    end

    return cjson
  end

  return new()
end
