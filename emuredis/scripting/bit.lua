-- bit: Lua BitOp 1.0.2, operations on 32-bit numbers. The arithmetic is the host's, the arguments are checked here.

local select, tonumber, type = select, tonumber, type

return function(kit)
  local host, bad_argument, expected = kit.host, kit.bad_argument, kit.expected

  local function number(at, ...)
    local x = select(at, ...)
    return type(x) ~= "boolean" and tonumber(x) or nil
  end

  local bit = {}

  function bit.tobit(...)
    local x = number(1, ...)
    if not x then
      bad_argument(1, expected(1, "number", ...))
    end
    return (host.bit("bor", x, 0))
  end

  function bit.bnot(...)
    local x = number(1, ...)
    if not x then
      bad_argument(1, expected(1, "number", ...))
    end
    return (host.bit("bxor", x, -1))
  end

  function bit.bswap(...)
    local x = number(1, ...)
    if not x then
      bad_argument(1, expected(1, "number", ...))
    end
    return (host.bswap(x))
  end

  function bit.tohex(...)
    local x, digits = number(1, ...), 8
    if not x then
      bad_argument(1, expected(1, "number", ...))
    end
    if select("#", ...) > 1 then
      digits = number(2, ...)
      if not digits then
        bad_argument(2, expected(2, "number", ...))
      end
    end
    return (host.tohex(x, digits))
  end

  for _, name in next, { "band", "bor", "bxor" } do
    bit[name] = function(...)
      local result = number(1, ...)
      if not result then
        bad_argument(1, expected(1, "number", ...))
      end
      result = host.bit("bor", result, 0)
      for at = select("#", ...), 2, -1 do
        local x = number(at, ...)
        if not x then
          bad_argument(at, expected(at, "number", ...))
        end
        result = host.bit(name, result, x)
      end
      return result
    end
  end

  for _, name in next, { "lshift", "rshift", "arshift", "rol", "ror" } do
    bit[name] = function(...)
      local x = number(1, ...)
      if not x then
        bad_argument(1, expected(1, "number", ...))
      end
      local by = number(2, ...)
      if not by then
        bad_argument(2, expected(2, "number", ...))
      end
      return (host.bit(name, x, by))
    end
  end

  return bit
end
