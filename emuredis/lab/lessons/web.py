"""``python -m emuredis learn --web``: the lessons as a page on this machine.

A small HTTP server on loopback. It keeps nothing: a request says which lesson, which program and which choices, and
the answer is where that leads, so every state has an address of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from emuredis.lab.lessons import LESSONS
from emuredis.lab.lessons.play import Play
from emuredis.lab.pictures import as_data

__all__ = ["answer", "serve"]

_PAGE = Path(__file__).parents[1] / "assets" / "learn.html"
_lock = Lock()  # one game at a time: an exploration has the process's notion of the current actor


def lessons() -> list[dict[str, Any]]:
    """What the page needs to know of every lesson."""
    return [
        {"number": lesson.number, "title": lesson.title, "text": lesson.text, "task": lesson.task,
         "forbidden": lesson.forbidden, "moral": lesson.moral,
         "programs": {name: {"says": lesson.variant(name).says, "code": lesson.variant(name).code}
                      for name in ("broken", "right")}}
        for lesson in LESSONS
    ]  # fmt: skip


def answer(path: str, asked: dict[str, str]) -> Any:
    """The reply to ``/lessons``, ``/play`` or ``/explore``. Raises ValueError or KeyError for a bad question."""
    if path == "/lessons":
        return lessons()
    lesson = {str(one.number): one for one in LESSONS}[asked["lesson"]]
    if path == "/play":
        with _lock, Play(lesson, asked.get("program", "broken"), asked.get("choices", "")) as play:
            return as_data("", play.run) | {
                "choices": [{"choice": choice, "what": what} for choice, what in play.choices],
                "taken": list(play.run.choices), "over": play.over,
            }  # fmt: skip
    if path == "/explore":
        told = {}
        for name in ("broken", "right"):
            with _lock:
                found = lesson.variant(name).explore()
            worst = found.counterexample
            told[name] = {
                "summary": found.summary,
                "message": "" if worst is None else worst.message,
                "choices": "" if worst is None else "".join(worst.choices),
            }
        return told
    raise KeyError(path)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path in ("/", "/index.html"):
            self._send(200, "text/html; charset=utf-8", _PAGE.read_bytes())
            return
        asked = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        try:
            said, status = answer(parts.path, asked), 200
        except (KeyError, ValueError) as problem:
            said, status = {"problem": str(problem)}, 400 if parts.path in ("/play", "/explore") else 404
        self._send(status, "application/json; charset=utf-8", json.dumps(said, ensure_ascii=False).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on the terminal."""


def serve(port: int, ready: Callable[[ThreadingHTTPServer], None]) -> None:
    """Serve on loopback until interrupted; ``port`` 0 takes a free one. ``ready`` is called with the server.

    Raises OSError when the port cannot be had.
    """
    with ThreadingHTTPServer(("127.0.0.1", port), _Handler) as server:
        server.daemon_threads = True
        ready(server)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
