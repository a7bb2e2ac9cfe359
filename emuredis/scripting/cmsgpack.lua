-- cmsgpack: MessagePack as lua-cmsgpack 0.4.0 writes and reads it.

local type, next, tonumber, tostring, select, error, unpack = type, next, tonumber, tostring, select, error, unpack
local byte, char, sub, concat, floor, huge = string.byte, string.char, string.sub, table.concat, math.floor, math.huge

local MAX_NESTING, INT_MAX = 16, 2147483647

return function(kit)
  local host, real, whole = kit.host, kit.real, kit.whole
  local bad_argument, expected, raise = kit.bad_argument, kit.expected, kit.raise

  -- -- packing

  local function big_endian(n, size)
    if size == 1 then
      return char(n % 256)
    elseif size == 2 then
      return char(floor(n / 256) % 256, n % 256)
    end
    return (host.pack_int(n, size, true))
  end

  local function integer(n)
    if n >= 0 then
      if n <= 127 then
        return char(n)
      elseif n <= 0xff then
        return "\204" .. big_endian(n, 1)
      elseif n <= 0xffff then
        return "\205" .. big_endian(n, 2)
      elseif n <= 0xffffffff then
        return "\206" .. big_endian(n, 4)
      end
      return "\207" .. big_endian(n, 8)
    elseif n >= -32 then
      return char(256 + n)
    elseif n >= -128 then
      return "\208" .. big_endian(n, 1)
    elseif n >= -32768 then
      return "\209" .. big_endian(n, 2)
    elseif n >= -2147483648 then
      return "\210" .. big_endian(n, 4)
    end
    return "\211" .. big_endian(n, 8)
  end

  local function number(n)
    if floor(n) == n and n >= -9223372036854775808 and n < 9223372036854775808 then
      return integer(n)
    elseif host.is_single(n) then
      return "\202" .. host.pack_real(n, 4, true)
    end
    return "\203" .. host.pack_real(n, 8, true)
  end

  local function text(s)
    local size = #s
    if size < 32 then
      return char(0xa0 + size) .. s
    elseif size <= 0xff then
      return "\217" .. char(size) .. s
    elseif size <= 0xffff then
      return "\218" .. big_endian(size, 2) .. s
    end
    return "\219" .. big_endian(size, 4) .. s
  end

  local function head(size, short, middle, long)
    if size <= 15 then
      return char(short + size)
    elseif size <= 65535 then
      return middle .. big_endian(size, 2)
    end
    return long .. big_endian(size, 4)
  end

  local function is_array(t)
    local items, most = 0, 0
    for k in next, t do
      if type(k) ~= "number" or k <= 0 or floor(k) ~= k or k > INT_MAX then
        return false
      end
      if k > most then
        most = k
      end
      items = items + 1
    end
    return items == most
  end

  local function pack(out, v, level)
    local kind = type(v)
    if kind == "string" then
      out[#out + 1] = text(v)
    elseif kind == "number" then
      out[#out + 1] = number(v)
    elseif kind == "boolean" then
      out[#out + 1] = v and "\195" or "\194"
    elseif kind ~= "table" or level == MAX_NESTING then
      out[#out + 1] = "\192"
    elseif is_array(real[v] or v) then
      local size = #v
      out[#out + 1] = head(size, 0x90, "\220", "\221")
      for i = 1, size do
        pack(out, v[i], level + 1)
      end
    else
      v = real[v] or v
      local size = 0
      for _ in next, v do
        size = size + 1
      end
      out[#out + 1] = head(size, 0x80, "\222", "\223")
      for k, item in next, v do
        pack(out, k, level + 1)
        pack(out, item, level + 1)
      end
    end
  end

  -- -- unpacking

  local SHORT = "Missing bytes in input."
  local decode

  local function need(s, at, size)
    if #s < at + size - 1 then
      raise(SHORT)
    end
  end

  local function unsigned(s, at, size)
    need(s, at, size)
    local value = 0
    for i = at, at + size - 1 do
      value = value * 256 + byte(s, i)
    end
    return value
  end

  local function array(s, at, size)
    local t = {}
    for i = 1, size do
      t[i], at = decode(s, at)
    end
    return t, at
  end

  local function map(s, at, size)
    local t = {}
    for _ = 1, size do
      local k, v
      k, at = decode(s, at)
      v, at = decode(s, at)
      if k == nil then
        error("table index is nil", 0)
      elseif k ~= k then
        error("table index is NaN", 0)
      end
      t[k] = v
    end
    return t, at
  end

  local function chars(s, at, size)
    need(s, at, size)
    return sub(s, at, at + size - 1), at + size
  end

  local LONG_UNSIGNED = { [0xcc] = 1, [0xcd] = 2, [0xce] = 4 }
  local LONG_INTEGER = { [0xcf] = 8, [0xd0] = 1, [0xd1] = 2, [0xd2] = 4, [0xd3] = 8 }
  local LONG_TEXT = { [0xd9] = 1, [0xda] = 2, [0xdb] = 4 }
  local LONG_ARRAY = { [0xdc] = 2, [0xdd] = 4 }
  local LONG_MAP = { [0xde] = 2, [0xdf] = 4 }
  local REAL = { [0xca] = 4, [0xcb] = 8 }

  -- The value at `at` and the position after it.
  function decode(s, at)
    need(s, at, 1)
    local c = byte(s, at)
    at = at + 1
    if c < 0x80 then
      return c, at
    elseif c < 0x90 then
      return map(s, at, c - 0x80)
    elseif c < 0xa0 then
      return array(s, at, c - 0x90)
    elseif c < 0xc0 then
      return chars(s, at, c - 0xa0)
    elseif c >= 0xe0 then
      return c - 256, at
    elseif c == 0xc0 then
      return nil, at
    elseif c == 0xc2 or c == 0xc3 then
      return c == 0xc3, at
    end
    local size = LONG_UNSIGNED[c]
    if size then
      return unsigned(s, at, size), at + size
    end
    size = LONG_INTEGER[c]
    if size then
      need(s, at, size)
      return host.unpack_int(sub(s, at, at + size - 1), true, true), at + size
    end
    size = LONG_TEXT[c]
    if size then
      return chars(s, at + size, unsigned(s, at, size))
    end
    size = LONG_ARRAY[c]
    if size then
      return array(s, at + size, unsigned(s, at, size))
    end
    size = LONG_MAP[c]
    if size then
      return map(s, at + size, unsigned(s, at, size))
    end
    size = REAL[c]
    if size then
      need(s, at, size)
      return host.unpack_real(sub(s, at, at + size - 1), true), at + size
    end
    raise("Bad data format in input.")
  end

  local function unpack_some(s, limit, offset)
    local all = limit == 0 and offset == 0
    if offset < 0 or limit < 0 then
      raise("Invalid request to unpack with offset of " .. offset .. " and limit of " .. #s .. ".")
    elseif offset > #s then
      raise("Start offset " .. offset .. " greater than input length " .. #s .. ".")
    end
    local out, n, at = {}, all and 0 or 1, offset + 1
    local last = all and huge or limit + 1
    while at <= #s and n < last do
      n = n + 1
      if n > 7990 then
        raise("stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)")
      end
      out[n], at = decode(s, at)
    end
    if not all then
      out[1] = at > #s and -1 or at - 1
    end
    return unpack(out, 1, n)
  end

  local function optional(at, ...)
    local x = select(at, ...)
    if x == nil then
      return 0
    end
    x = type(x) ~= "boolean" and tonumber(x)
    return x and whole(x)
  end

  local cmsgpack = {
    _NAME = "cmsgpack", _VERSION = "lua-cmsgpack 0.4.0", _COPYRIGHT = "Copyright (C) 2012, Redis Ltd.",
    _DESCRIPTION = "MessagePack C implementation for Lua",
  }

  local function is_text(x)
    return type(x) == "string" or type(x) == "number"
  end

  function cmsgpack.pack(...)
    local n = select("#", ...)
    if n == 0 then
      bad_argument(0, "MessagePack pack needs input.")
    end
    local out, args = {}, { ... }
    for i = 1, n do
      pack(out, args[i], 0)
    end
    return concat(out)
  end

  function cmsgpack.unpack(...)
    if not is_text((...)) then
      bad_argument(1, expected(1, "string", ...))
    end
    return unpack_some(tostring((...)), 0, 0)
  end

  function cmsgpack.unpack_one(...)
    local offset = optional(2, ...)
    if not offset then
      bad_argument(2, expected(2, "number", ...))
    elseif not is_text((...)) then
      bad_argument(1, expected(1, "string", ...))
    end
    return unpack_some(tostring((...)), 1, offset)
  end

  function cmsgpack.unpack_limit(...)
    local limit, offset = optional(2, ...), optional(3, ...)
    if not limit or select(2, ...) == nil then
      bad_argument(2, expected(2, "number", ...))
    elseif not offset then
      bad_argument(3, expected(3, "number", ...))
    elseif not is_text((...)) then
      bad_argument(1, expected(1, "string", ...))
    end
    return unpack_some(tostring((...)), limit, offset)
  end

  return cmsgpack
end
