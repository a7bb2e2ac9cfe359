-- struct: Roberto Ierusalimschy's library for packing and unpacking structures, as the server has it.

local select, tonumber, type, tostring = select, tonumber, type, tostring
local huge = math.huge
local sub, find, byte, rep, concat, unpack = string.sub, string.find, string.byte, string.rep, table.concat, unpack

local INTEGERS = { b = 1, B = 1, h = 2, H = 2, l = 8, L = 8, T = 8 }
local MAX_INT_SIZE, MAX_ALIGN, INT_MAX = 32, 8, 2147483647

return function(kit)
  local signed = kit.signed
  local host, bad_argument, expected, raise, whole = kit.host, kit.bad_argument, kit.expected, kit.raise, kit.whole

  -- The number written at `at` of a format and the position after it; `default` if there is none.
  local function count(fmt, at, default)
    local _, stop, digits = find(fmt, "^(%d+)", at)
    if not stop then
      return default, at
    end
    local value = 0
    for i = 1, #digits do
      if value > INT_MAX / 10 or value * 10 > INT_MAX - (byte(digits, i) - 48) then
        raise("integral size overflow")
      end
      value = value * 10 + byte(digits, i) - 48
    end
    return value, stop + 1
  end

  -- The size of what option `opt` packs, and the position after its number.
  local function size_of(opt, fmt, at)
    if INTEGERS[opt] then
      return INTEGERS[opt], at
    elseif opt == "f" then
      return 4, at
    elseif opt == "d" then
      return 8, at
    elseif opt == "x" then
      return 1, at
    elseif opt == "c" then
      return count(fmt, at, 1)
    elseif opt == "i" or opt == "I" then
      local size
      size, at = count(fmt, at, 4)
      if size > MAX_INT_SIZE then
        raise("integral size " .. size .. " is larger than limit of " .. MAX_INT_SIZE)
      end
      return size, at
    end
    return 0, at
  end

  -- Bytes to skip so that what follows is aligned: (size - (at & (size - 1))) & (size - 1), also where size is no
  -- power of 2.
  local function padding(at, state, opt, size)
    if size == 0 or opt == "c" then
      return 0
    end
    if size > state.align then
      size = state.align
    end
    if size <= 1 then
      return 0
    end
    return host.bit("band", size - host.bit("band", at, size - 1), size - 1)
  end

  -- Carry out an option that packs nothing; the position after it, or nil if there is no such option.
  local function control(opt, fmt, at, state)
    if opt == " " then
      return at
    elseif opt == ">" then
      state.big = true
    elseif opt == "<" then
      state.big = false
    elseif opt == "!" then
      local align
      align, at = count(fmt, at, MAX_ALIGN)
      if align <= 0 or host.bit("band", align, align - 1) ~= 0 then
        raise("alignment " .. align .. " is not a power of 2")
      end
      state.align = align
    else
      return nil
    end
    return at
  end

  local function format_of(...)
    local fmt = ...
    if type(fmt) == "string" or type(fmt) == "number" then
      fmt = tostring(fmt)
      local nul = find(fmt, "\0", 1, true)
      return nul and sub(fmt, 1, nul - 1) or fmt
    end
  end

  local struct = {}

  function struct.pack(...)
    local fmt = format_of(...)
    if not fmt then
      bad_argument(1, expected(1, "string", ...))
    end
    local state, out, total, arg, at = { big = false, align = 1 }, {}, 0, 2, 1
    while at <= #fmt do
      local opt, size = sub(fmt, at, at), nil
      size, at = size_of(opt, fmt, at + 1)
      local skip = padding(total, state, opt, size)
      total = total + skip
      out[#out + 1] = rep("\0", skip)
      if INTEGERS[opt] or find(opt, "[iIfd]") then
        local x = select(arg, ...)
        local number = type(x) ~= "boolean" and tonumber(x)
        if not number then
          bad_argument(arg, arg == select("#", ...) + 1 and "number expected, got nil" or expected(arg, "number", ...))
        end
        if opt == "f" or opt == "d" then
          out[#out + 1] = host.pack_real(signed(number), size, state.big)
        else
          out[#out + 1] = host.pack_int(number, size, state.big)
        end
        arg = arg + 1
      elseif opt == "x" then
        out[#out + 1] = "\0"
      elseif opt == "c" or opt == "s" then
        local s = select(arg, ...)
        if type(s) ~= "string" and type(s) ~= "number" then
          bad_argument(arg, arg == select("#", ...) + 1 and "string expected, got nil" or expected(arg, "string", ...))
        end
        s, arg = tostring(s), arg + 1
        if size == 0 then
          size = #s
        end
        if #s < size then
          bad_argument(arg, "string too short")
        end
        out[#out + 1] = sub(s, 1, size)
        if opt == "s" then
          out[#out + 1] = "\0"
          size = size + 1
        end
      else
        local after = control(opt, fmt, at, state)
        if not after then
          bad_argument(1, "invalid format option '" .. opt .. "'")
        end
        at = after
      end
      total = total + size
    end
    return concat(out)
  end

  function struct.unpack(...)
    local fmt = format_of(...)
    if not fmt then
      bad_argument(1, expected(1, "string", ...))
    end
    local data, offset = select(2, ...)
    if type(data) ~= "string" and type(data) ~= "number" then
      bad_argument(2, expected(2, "string", ...))
    end
    data = tostring(data)
    local pos = 1
    if offset ~= nil then
      pos = type(offset) ~= "boolean" and tonumber(offset)
      if not pos then
        bad_argument(3, expected(3, "number", ...))
      end
      pos = whole(pos)
      if pos == 0 then
        bad_argument(3, "offset must be 1 or greater")
      elseif pos < 0 then
        pos = huge  -- there it is unsigned
      end
    end
    pos = pos - 1
    if fmt == "" then
      return pos == huge and whole(tonumber(offset)) or pos + 1
    end
    local state, out, n, at = { big = false, align = 1 }, {}, 0, 1
    while at <= #fmt do
      local opt, size = sub(fmt, at, at), nil
      size, at = size_of(opt, fmt, at + 1)
      pos = pos == huge and pos or pos + padding(pos, state, opt, size)
      if size > #data or pos > #data - size then
        bad_argument(2, "data string too short")
      end
      if n >= 7990 then
        raise("stack overflow (too many results)")
      end
      if INTEGERS[opt] or opt == "i" or opt == "I" then
        n = n + 1
        out[n] = host.unpack_int(sub(data, pos + 1, pos + size), find(opt, "%l") ~= nil, state.big)
      elseif opt == "f" or opt == "d" then
        n = n + 1
        out[n] = host.unpack_real(sub(data, pos + 1, pos + size), state.big)
      elseif opt == "c" then
        if size == 0 then
          local before = n > 0 and tonumber(out[n])
          if not before then
            raise("format 'c0' needs a previous size")
          end
          size, n = before < 18446744073709551616 and whole(before) or 0, n - 1  -- as C casts it
          if size < 0 or size > #data or pos > #data - size then
            bad_argument(2, "data string too short")
          end
        end
        n = n + 1
        out[n] = sub(data, pos + 1, pos + size)
      elseif opt == "s" then
        local stop = find(data, "\0", pos + 1, true)
        if not stop then
          raise("unfinished string in data")
        end
        n = n + 1
        out[n] = sub(data, pos + 1, stop - 1)
        size = stop - pos
      elseif opt ~= "x" then
        local after = control(opt, fmt, at, state)
        if not after then
          bad_argument(1, "invalid format option '" .. opt .. "'")
        end
        at = after
      end
      pos = pos + size
    end
    out[n + 1] = pos + 1
    return unpack(out, 1, n + 1)
  end

  function struct.size(...)
    local fmt = format_of(...)
    if not fmt then
      bad_argument(1, expected(1, "string", ...))
    end
    local state, total, at = { big = false, align = 1 }, 0, 1
    while at <= #fmt do
      local opt, size = sub(fmt, at, at), nil
      size, at = size_of(opt, fmt, at + 1)
      total = total + padding(total, state, opt, size)
      if opt == "s" then
        bad_argument(1, "option 's' has no fixed size")
      elseif opt == "c" and size == 0 then
        bad_argument(1, "option 'c0' has no fixed size")
      elseif not find(opt, "%w") then
        local after = control(opt, fmt, at, state)
        if not after then
          bad_argument(1, "invalid format option '" .. opt .. "'")
        end
        at = after
      end
      total = total + size
    end
    return total
  end

  return struct
end
