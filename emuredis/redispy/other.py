"""A real server, asked word by word over redis-py, with replies as `emuredis.client.Client` gives them."""

from __future__ import annotations

from typing import Any

import redis
import redis.asyncio

from emuredis.errors import EmulatorError, ReplyError

__all__ = ["Other", "emptied"]


class Other:
    """One connection in RESP3. Raises EmulatorError when the server at ``url`` does not answer."""

    def __init__(self, url: str) -> None:
        self._in_multi = False
        pool = redis.ConnectionPool.from_url(url.replace("valkey://", "redis://", 1), protocol=3)
        self._connection: Any = pool.make_connection()
        try:
            self._connection.connect()
        except redis.ConnectionError as problem:
            raise EmulatorError(f"no server answers at {url}: {problem}") from problem

    def ask(self, argv: list[bytes]) -> Any:
        """The reply; an error reply is a ReplyError, returned."""
        word = argv[0].upper()
        if word in (b"MULTI", b"EXEC", b"DISCARD"):
            self._in_multi = word == b"MULTI"
        try:
            self._connection.send_command(*argv)
            return _plain(self._connection.read_response(disable_decoding=True))
        except redis.ResponseError as error:
            return ReplyError(_message(error))
        except redis.ConnectionError as problem:
            raise EmulatorError(f"the server does not answer {argv[0]!r} any more: {problem}") from problem

    def ask_at_once(self, argv: list[bytes]) -> Any:
        """The reply to a blocking command that does not wait: the server lets none wait in a transaction."""
        if self._in_multi:
            return self.ask(argv)
        self.ask([b"MULTI"])
        queued = self.ask(argv)
        replies = self.ask([b"EXEC"])
        return queued if isinstance(queued, ReplyError) else replies[0]

    def close(self) -> None:
        self._connection.disconnect()


def emptied(url: str, is_async: bool) -> Any:
    """A stock client of the server at ``url``, all of whose keys are deleted. Raises redis.ConnectionError."""
    with redis.Redis.from_url(url) as cleaner:
        cleaner.flushall()
    return (redis.asyncio.Redis if is_async else redis.Redis).from_url(url)


def _message(error: Exception) -> str:
    """The whole line: redis-py takes the code away where it has a class for it."""
    text = str(error)
    code = getattr(error, "status_code", None)
    if code and not text.startswith(code):
        return f"{code} {text}"
    return text


def _plain(reply: Any) -> Any:
    if isinstance(reply, redis.ResponseError):
        return ReplyError(_message(reply))
    if isinstance(reply, list):
        return [_plain(item) for item in reply]
    if isinstance(reply, dict):
        return {_plain(name): _plain(value) for name, value in reply.items()}
    return reply
