"""The network door: any client in any language, over TCP or a Unix socket."""

from emuredis.server.server import Server

__all__ = ["Server"]
