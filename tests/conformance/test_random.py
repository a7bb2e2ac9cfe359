"""Random sequences of commands, drawn from the declarations, on emuredis and on the live server.

Two clients, RESP2 or RESP3, with transactions and with calls from scripts; every reply and the content at the end are
compared. What a command's declaration says about its output (in any order, not determined) decides how.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from emuredis.emulator import Emulator
from emuredis.spec import NOSCRIPT, Command
from tests.support.emulated import EmulatorEndpoint
from tests.support.endpoints import SocketEndpoint
from tests.support.generate import command_line
from tests.support.live import LiveServer

from .compare import differences
from .lines import Block, Line, Variant
from .run import run

GROUPS = (
    "string",
    "bitmap",
    "hyperloglog",
    "generic",
    "hash",
    "list",
    "set",
    "sorted-set",
    "geo",
    "stream",
    "transactions",
)
# Random choices that change the content, what the clock decides, and what takes long.
LEFT_OUT = {"spop", "wait", "waitaof", "migrate", "object|freq", "object|idletime", "pfselftest"}
BY_THE_CLOCK = {
    "ttl",
    "pttl",
    "expiretime",
    "pexpiretime",
    "httl",
    "hpttl",
    "hexpiretime",
    "hpexpiretime",
    "xinfo|stream",
}
IN_SCRIPT = b"return redis.call(unpack(ARGV))"

TABLE = Emulator().engine.table
COMMANDS = [c for c in TABLE.everything() if c.group in GROUPS and c.name not in LEFT_OUT and c.subs is None]
EXACT, UNORDERED, KIND = Variant(), Variant("unordered"), Variant("kind")


def variant_of(command: Command, argv: list[bytes]) -> Variant:
    # Whether the same time from now is later than before depends on the milliseconds in between.
    if "expire" in command.name and b"GT" in argv:
        return KIND
    if "nondeterministic_output" in command.tips or command.name in BY_THE_CLOCK:
        return KIND
    return UNORDERED if "nondeterministic_output_order" in command.tips else EXACT


# Sequences that differ are shortened below, which is quicker than drawing others.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
Step = tuple[str, Command, list[bytes], bool]


def steps(commands: list[Command]) -> st.SearchStrategy[list[Step]]:
    argv = {command.name: command_line(command) for command in commands}
    one = st.sampled_from(commands).flatmap(
        lambda c: st.tuples(
            st.sampled_from("aab"), st.just(c), argv[c.name], st.integers(0, 9).map(lambda n: n == 0)
        )
    )
    return st.lists(one, min_size=25, max_size=50)


def block_of(drawn: list[Step]) -> Block:
    """The drawn steps as lines; an EXEC is compared as loosely as the loosest command it runs."""
    block = Block("random", "random", 0)
    looseness = {"a": EXACT, "b": EXACT}
    order = [EXACT, UNORDERED, KIND]
    for number, (client, command, argv, in_script) in enumerate(drawn, 1):
        variant = variant_of(command, argv)
        if in_script and not command.flags & NOSCRIPT and b"EVAL" in TABLE:
            argv = [b"EVAL", IN_SCRIPT, b"0", *argv]
        if command.name == "exec":
            variant = looseness[client]
        elif command.name in ("multi", "discard"):
            looseness[client] = EXACT
        else:
            looseness[client] = max(looseness[client], variant, key=order.index)
        text = f"@{client} " + " ".join(repr(word)[1:] for word in argv)
        block.lines.append(Line(number, text, client, "call", variant, tuple(argv)))
    return block


@pytest.fixture(scope="module")
def truth(live_server: LiveServer) -> Iterator[SocketEndpoint]:
    endpoint = SocketEndpoint("live", live_server.socket_path)
    yield endpoint
    endpoint.close()


def look(lines: list[Line], protocol: int, truth: SocketEndpoint) -> list[str]:
    """What differs when ``lines`` are run on both."""
    block = Block("random", "random", 0, lines=lines)
    return differences(run(block, protocol, truth), run(block, protocol, EmulatorEndpoint()))


def shortest(lines: list[Line], protocol: int, truth: SocketEndpoint) -> list[Line]:
    """Lines that still differ after as many as possible were taken out."""
    size = len(lines) // 2
    while size:
        at = 0
        while at < len(lines):
            fewer = lines[:at] + lines[at + size :]
            if fewer and look(fewer, protocol, truth):
                lines = fewer
            else:
                at += size
        size //= 2
    return lines


def compare(block: Block, protocol: int, truth: SocketEndpoint) -> None:
    if look(block.lines, protocol, truth):
        lines = shortest(block.lines, protocol, truth)
        texts = [line.text for line in lines]
        pytest.fail("\n".join([f"RESP{protocol}", *texts, "", *look(lines, protocol, truth)]), pytrace=False)


@pytest.mark.slow
@settings(max_examples=60, phases=PHASES)
@given(drawn=steps(COMMANDS), protocol=st.sampled_from([2, 3]))
def test_all_groups_together(drawn: list[Step], protocol: int, truth: SocketEndpoint) -> None:
    compare(block_of(drawn), protocol, truth)


def of_group(group: str) -> list[Command]:
    """A group with what every group needs to meet other types and time."""
    shared = {"del", "type", "exists", "expire", "rename", "copy", "set"}
    return [command for command in COMMANDS if command.group == group or command.name in shared]


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
@settings(max_examples=25, phases=PHASES)
@given(data=st.data(), protocol=st.sampled_from([2, 3]))
def test_group(group: str, data: st.DataObject, protocol: int, truth: SocketEndpoint) -> None:
    compare(block_of(data.draw(steps(of_group(group)))), protocol, truth)
