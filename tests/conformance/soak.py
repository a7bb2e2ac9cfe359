"""``python -m tests.conformance.soak --minutes 10``: random sequences on emuredis and on the live server, for long.

Each sequence belongs to one of the `machines`; every reply is compared as it comes, and every few hundred lines and
at the end everything the databases hold (`digest`) and everything a subscriber to keyspace events was told; the
emulator's values check their invariants. A sequence that differs is shortened and appended to ``lines/found.txt``,
where the other tests run it from then on. All is drawn from one seed, which is printed: ``--seed`` repeats a run,
``--first`` starts it at a later sequence. The exit status says whether anything was found.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from random import Random
from typing import Any

from tests.support.emulated import EmulatorEndpoint, EngineClient
from tests.support.endpoints import SocketEndpoint
from tests.support.live import LiveServer, Lost
from tests.support.resp import show

from .compare import differences, same
from .lines import DIRECTORY, Block, Line, Variant
from .machines import MACHINES, Machine, Sequence, line_of
from .run import CLOSED, NOTHING, Entry, Run, run

FOUND = DIRECTORY / "found.txt"
EVERY = 200  # lines between two looks at everything
SHORTEN_SECONDS = 60.0
PATIENCE = 2.0  # seconds; a live server that has not answered by then does not
REPORT_SECONDS = 30.0
AHEAD = 30  # lines of one client that the live server is sent together
SOON_MS = 60_000


class Anything:
    """Stands for a block of which nothing is known yet."""

    def mentions(self, *words: str) -> bool:
        return True


@dataclass(slots=True)
class Tally:
    sequences: int = 0
    commands: int = 0
    differences: int = 0
    began: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        minutes = (time.monotonic() - self.began) / 60
        return (
            f"{minutes:.1f} minutes: {self.sequences} sequences, {self.commands} commands compared, "
            f"{self.differences} differences"
        )


@dataclass(slots=True)
class Difference:
    """The lines up to the first answer that differed, and what differed."""

    lines: list[Line]
    protocol: int
    what: str
    kind: str


def explained(want: list[Entry], got: list[Entry]) -> list[str]:
    """As `differences`, of a digest only the keys that differ."""
    out = []
    for text in differences(want, got):
        out.append(text if ":digest" not in text.partition("\n")[0] else text.partition("\n")[0])
    for left, right in zip(want, got, strict=False):
        if left.text == right.text == ":digest" and left.frame.raw != right.frame.raw:
            ours, theirs = left.frame.value.decode().split("\n"), right.frame.value.decode().split("\n")
            out += [f"  live     {one[:1000]}" for one in ours if one not in theirs]
            out += [f"  emuredis {one[:1000]}" for one in theirs if one not in ours]
    return out


def expires_soon(emulated: EmulatorEndpoint) -> bool:
    """Whether a deadline comes so soon that the two may look at it at different times."""
    heap = emulated.engine.keyspace.heap
    return bool(heap) and heap[0][0] < emulated.clock.now_ms + SOON_MS


class Play:
    """One sequence on both sides, line by line."""

    def __init__(self, sequence: Sequence, protocol: int, truth: SocketEndpoint) -> None:
        self.sequence = sequence
        self.emulated = EmulatorEndpoint()
        truth.begin(Anything())
        self.left = Run(truth, protocol)
        self.right = Run(self.emulated, protocol)
        self.protocol = protocol
        self.lines: list[Line] = []
        self.ahead: list[tuple[int, Line, Entry]] = []  # answered here, not yet asked there

    def sessions(self) -> dict[str, Any]:
        return {name: c.session for name, c in self.right.clients.items() if isinstance(c, EngineClient)}

    def go(self, length: int, tally: Tally) -> Difference | None:
        found, since = None, 0
        while found is None and (length > 0 or self.sequence.queue):
            found = self.step(self.sequence.next(self.sessions()))
            length -= 1
            since += 1
            tally.commands += 1
            if not self.sequence.queue and expires_soon(self.emulated):
                break  # a number that came out as a short time to live: when it ends is anybody's guess
            # Not between lines that belong together.
            if found is None and not self.sequence.queue and (since >= EVERY or length <= 0):
                found, since = self.everything(), 0
        if found is None:
            found = self.catch_up()
        for side in (self.left, self.right):
            for client in side.clients.values():
                client.close()
        return found

    def step(self, line: Line) -> Difference | None:
        """Run a line here at once, on the live server together with others of the same client."""
        self.lines.append(line)
        try:
            self.right.step(line)
        except Exception:
            return self.catch_up() or self._different(line, traceback.format_exc(limit=-6))
        entry = self.right.entries.pop() if self.right.entries else None
        alone = line.action != "call" or entry is None
        if self.ahead and (alone or len(self.ahead) >= AHEAD or self.ahead[0][1].client != line.client):
            found = self.catch_up()
            if found is not None:
                return found
        if not alone and entry is not None:
            self.ahead.append((len(self.lines), line, entry))
            return None
        self.left.step(line)
        return self._compare(line, entry) if entry is not None else None

    def catch_up(self) -> Difference | None:
        """Have the live server do what has been done here, and compare."""
        ahead, self.ahead = self.ahead, []
        if not ahead:
            return None
        client = self.left.client(ahead[0][1].client)
        for _, line, _ in ahead:
            client.send(self.left.fill(line.argv))
        for place, line, entry in ahead:
            self.left.note(line, self.left.read(client, wait=True))
            found = self._compare(line, entry)
            if found is not None:
                found.lines = self.lines[:place]
                return found
        return None

    def _compare(self, line: Line, entry: Entry) -> Difference | None:
        want = self.left.entries.pop()
        if same(want.variant, want.frame, entry.frame):
            return None
        return self._different(line, "\n".join(explained([want], [entry])))

    def everything(self) -> Difference | None:
        """The content, what came unasked, the emulator's own invariants."""
        line = line_of(len(self.lines) + 1, "main", "digest", Variant())
        found = self.step(line)
        if found is not None:
            return found
        for name in list(self.left.clients):
            if name not in self.sequence.waiting:
                found = self._told(name, line)
                if found is not None:
                    return found
        try:
            self.emulated.engine.keyspace._check()
        except AssertionError:
            return self._different(line, traceback.format_exc(limit=-3))
        return None

    def _told(self, name: str, line: Line) -> Difference | None:
        """What a client has been sent that no line of the sequence read, such as a subscriber's messages."""
        told: list[list[str]] = []
        for side in (self.left, self.right):
            side.endpoint.settle(None)
            told.append([])
            while (frame := side.read(side.clients[name], wait=False)) not in (NOTHING, CLOSED):
                told[-1].append(show(frame))
        if told[0] == told[1]:
            return None
        pairs = [f"  live {a}\n  here {b}" for a, b in zip_longest(*told) if a != b]
        lengths = f"  {len(told[0])} and {len(told[1])} messages"
        return self._different(line, "\n".join([f"what client {name} was sent", *pairs[:5], lengths]))

    def _different(self, line: Line, what: str) -> Difference:
        name = b" ".join(line.argv[:1]).decode("latin-1") or line.action
        if name == "EVAL":
            name += " " + " ".join(repr(word) for word in line.argv[3:4])
        lines = what.strip().splitlines()
        if line.action == "digest":
            shown = [text.split(maxsplit=7)[0:1] + text.split(maxsplit=7)[3:5] for text in lines[1:]]
            return Difference(self.lines, self.protocol, what, f"digest: {shown[:4]}")
        kind = (
            f"{name}: {lines[-1][:60] if 'Traceback' in what else [text.strip()[:40] for text in lines[1:3]]}"
        )
        return Difference(self.lines, self.protocol, what, kind)


def look(lines: list[Line], protocol: int, truth: SocketEndpoint) -> list[str]:
    """What differs when ``lines`` are run on both from the start."""
    block = Block("soak", "soak", 0, lines=lines)
    want = run(block, protocol, truth)
    emulated = EmulatorEndpoint()
    try:
        got = run(block, protocol, emulated)
        emulated.engine.keyspace._check()
    except Exception:
        return [traceback.format_exc(limit=-6)]
    return [] if expires_soon(emulated) else explained(want, got)


def cleaned(lines: list[Line]) -> list[Line]:
    """Lines without those that, now that others are missing, would wait for a reply in vain."""
    state = Run(EmulatorEndpoint(), 2)
    out = []
    for line in lines:
        try:
            state.step(line)
        except Exception:
            return lines
        vain = line.action in ("call", "receive") and state.entries[-1].frame is NOTHING
        if not vain:
            out.append(line)
    return out


def shortest(lines: list[Line], protocol: int, truth: SocketEndpoint) -> list[Line]:
    """Lines that still differ after as many lines and arguments as possible were taken out."""
    until = time.monotonic() + SHORTEN_SECONDS

    def differ(fewer: list[Line]) -> bool:
        return time.monotonic() < until and bool(look(fewer, protocol, truth))

    # Lines of one number belong together.
    units = [list(unit) for _, unit in groupby(lines, key=lambda line: line.number)]
    size = len(units) // 2
    while size:
        at = 0
        while at < len(units):
            fewer = units[:at] + units[at + size :]
            kept = cleaned([line for unit in fewer for line in unit])
            if kept and differ(kept):
                units = [list(unit) for _, unit in groupby(kept, key=lambda line: line.number)]
            else:
                at += size
        size //= 2
    lines = [line for unit in units for line in unit]
    for place, line in enumerate(lines):
        size = len(line.argv) // 2 if line.action in ("call", "send") else 0
        while size:
            at = 1
            while at < len(line.argv):
                argv = line.argv[:at] + line.argv[at + size :]
                shorter = line_of(line.number, line.client, line.action, line.variant, argv)
                if differ([*lines[:place], shorter, *lines[place + 1 :]]):
                    lines = [*lines[:place], shorter, *lines[place + 1 :]]
                    line = shorter
                else:
                    at += size
            size //= 2
    return lines


def save(title: str, lines: list[Line]) -> None:
    """Append the case to the file of found ones."""
    if not FOUND.exists():
        FOUND.write_text(
            "# Found by `make soak`: shortened sequences on which emuredis once differed.\n", "utf-8"
        )
    with FOUND.open("a", encoding="utf-8") as out:
        out.write("\n".join(["", f"== {title}", *(line.text for line in lines), ""]))


class Soak:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.live = LiveServer()
        self.truth = SocketEndpoint("live", self.live.socket_path, PATIENCE)
        self.tally = Tally()
        self.saved = 0
        self.kinds: Counter[str] = Counter()
        chosen = options.machine or [machine.name for machine in MACHINES]
        self.machines = [machine for machine in MACHINES if machine.name in chosen]

    def run(self) -> None:
        until = self.tally.began + self.options.minutes * 60
        report = self.tally.began + REPORT_SECONDS
        number = self.options.first
        while time.monotonic() < until:
            try:
                self.sequence(number)
            except Lost as problem:
                print(f"{number}: the live server is lost and started again: {problem}", flush=True)
                self.kinds["lost"] += 1
                self.stop()
                self.live = LiveServer()
                self.truth = SocketEndpoint("live", self.live.socket_path, PATIENCE)
            number += 1
            if self.options.count and number >= self.options.first + self.options.count:
                break
            if time.monotonic() > report:
                report += REPORT_SECONDS
                print(self.tally, flush=True)

    def stop(self) -> None:
        self.truth.close()
        self.live.stop()

    def sequence(self, number: int) -> None:
        rng = Random(f"{self.options.seed}:{number}")
        machine = self.machines[number % len(self.machines)]
        sequence = Sequence(machine, rng)
        protocol = rng.choice([2, 3])
        length = rng.choice([60, 150, 150, 400, 3000 if number % 40 < len(self.machines) else 400])
        sequence.opening(notify=rng.randrange(2) == 0)
        found = Play(sequence, protocol, self.truth).go(length, self.tally)
        self.tally.sequences += 1
        if found is not None:
            self.found(machine, number, found)

    def found(self, machine: Machine, number: int, found: Difference) -> None:
        self.tally.differences += 1
        self.kinds[found.kind] += 1
        if self.kinds[found.kind] > 1:
            return
        title = f"{machine.name}, seed {self.options.seed}:{number}"
        print(
            f"\n== {title} (RESP{found.protocol}, after {len(found.lines)} lines)\n{found.what}", flush=True
        )
        if not look(found.lines, found.protocol, self.truth):
            print("(does not show when the lines are run again)", flush=True)
            return
        lines = shortest(found.lines, found.protocol, self.truth)
        print("\n".join(["shortened:", *(line.text for line in lines)]))
        print("\n".join(look(lines, found.protocol, self.truth)), flush=True)
        if self.options.save:
            self.saved += 1
            save(title, [replace(line, number=at) for at, line in enumerate(lines, 1)])


def arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--count", type=int, default=0, help="stop after this many sequences")
    parser.add_argument("--seed", default=None)
    parser.add_argument(
        "--first", type=int, default=0, metavar="N", help="start at the Nth sequence of the seed"
    )
    parser.add_argument("--machine", action="append", choices=[machine.name for machine in MACHINES])
    parser.add_argument(
        "--no-save", dest="save", action="store_false", help="do not write to lines/found.txt"
    )
    options = parser.parse_args(argv)
    if options.seed is None:
        options.seed = str(Random().randrange(1_000_000))
    return options


def main(argv: list[str] | None = None) -> int:
    options = arguments(argv)
    print(f"seed {options.seed}", flush=True)
    soak = Soak(options)
    try:
        soak.run()
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        soak.stop()
    for kind, times in soak.kinds.most_common():
        print(f"{times:6} {kind}")
    if soak.saved:
        print(f"{soak.saved} kept in {FOUND.name}: mend them, move them where they belong, `make record`")
    print(f"{soak.tally} (seed {options.seed})")
    return 1 if soak.tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
