"""The lessons: what is broken breaks, what is right holds; in the terminal and over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from typing import Any

import pytest

from emuredis.lab.lessons import LESSONS, Lesson, Play
from emuredis.lab.lessons.terminal import explored, learn
from emuredis.lab.lessons.web import answer, serve

SIDES = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.number}")


def test_there_are_fifteen() -> None:
    assert [lesson.number for lesson in LESSONS] == list(range(1, 16))


@SIDES
def test_the_broken_program_breaks_and_the_right_one_holds(lesson: Lesson) -> None:
    broken, right = lesson.broken.explore(), lesson.right.explore()
    assert broken.counterexample is not None
    assert broken.complete
    assert right.ok, str(right)
    assert right.complete
    with Play(lesson, "broken", "".join(broken.counterexample.choices)) as play:
        assert play.message == broken.counterexample.message
        assert play.over
    assert lesson.broken.code
    assert "def " in lesson.right.code


@SIDES
def test_playing_by_hand(lesson: Lesson) -> None:
    """The first choice again and again comes to an end; undo goes back to the beginning."""
    with Play(lesson, "right") as play:
        before = (play.choices, play.state)
        steps = 0
        while play.choices:
            choice, meaning = play.choices[0]
            assert meaning
            play.take(choice)
            steps += 1
            assert steps < 100
        assert play.message is None
        while play.token:
            play.undo()
        assert (play.choices, play.state) == before
        with pytest.raises(ValueError, match="cannot be chosen now"):
            play.take("z")


def session(*lines: str, number: int | None = None) -> str:
    """What the terminal shows when these lines are typed."""
    typed, shown = iter(lines), []

    def read(prompt: str) -> str:
        shown.append(prompt)
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    learn(read, lambda text: shown.append(text + "\n"), number)
    return "".join(shown)


def test_a_session_in_the_terminal() -> None:
    shown = session("1", "a", "a!", "1", "u", "h", "c", "t", "nonsense", "s", "1", "1", "e", "n", "l", "q")
    assert "  1  Two steps or one" in shown
    assert "** job:7 is lost: it is in none of queue, busy" in shown
    assert "'nonsense' is no choice now" in shown
    assert "[right: LMOVE, one command]" in shown
    assert "the program has ended, and nothing is wrong" in shown
    assert "2 broke it" in shown
    assert "2. Atomic is not safe" in shown


def test_a_session_that_just_ends() -> None:
    assert "15. A slow script stops everyone" in session("a", number=15)
    assert "lesson, or q:" in session("99", "x")


def test_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "emuredis", "learn", "10"],
        input="a?\na\nq\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "** job:7 is in the queue 2 times" in done.stdout


def test_exploring_tells_the_moral() -> None:
    text = explored(LESSONS[0])
    assert "2 broke it" in text
    assert "replay with 'emu1:aa!b'" in text
    assert "none broke it" in text
    assert "One command has no gap." in text


def test_answers_over_http() -> None:
    game = answer("/play", {"lesson": "1", "program": "broken", "choices": "aa!b"})
    assert game["message"] == "job:7 is lost: it is in none of queue, busy"
    assert game["over"]
    told = answer("/explore", {"lesson": "1"})
    assert told["broken"]["choices"] == "aa!b"
    assert told["right"]["message"] == ""
    assert json.dumps(answer("/lessons", {}))
    for path, asked in (("/play", {"lesson": "99"}), ("/play", {"lesson": "1", "program": "?"}),
                        ("/play", {"lesson": "1", "choices": "A"}), ("/nowhere", {"lesson": "1"})):  # fmt: skip
        with pytest.raises((KeyError, ValueError)):
            answer(path, asked)


@pytest.fixture
def address() -> Iterator[str]:
    """The lessons, served."""
    found: list[Any] = []
    there = threading.Event()

    def ready(server: ThreadingHTTPServer) -> None:
        found.append(server)
        there.set()

    thread = threading.Thread(target=serve, args=(0, ready), daemon=True)
    thread.start()
    assert there.wait(10)
    yield f"http://127.0.0.1:{found[0].server_address[1]}"
    found[0].shutdown()
    thread.join()


def test_the_server(address: str) -> None:
    def get(path: str) -> bytes:
        with urllib.request.urlopen(address + path) as response:
            body: bytes = response.read()
            return body

    page = get("/").decode()
    assert "<title>Lessons in atomicity</title>" in page
    assert "http" not in page.replace("http-equiv", "")
    assert len(json.loads(get("/lessons"))) == 15
    for bad, status in (
        ("/play?lesson=x", 400),
        ("/play", 400),
        ("/../../etc/passwd", 404),
        ("/lessons/", 404),
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(bad)
        assert refused.value.code == status
        refused.value.close()
