"""Lua scripts: the sandbox, values both ways, the libraries, the cache; most of it compared with the live server."""
