"""``python -m benchmarks [GOAL ...] [--quick]``: measured ratios against fakeredis and a live Valkey.

Prints one table per goal; a row says the measured ratio and the bar. Nothing is hidden: a missed bar is printed as
missed, and the exit status is 0 all the same, since a benchmark is a measurement and not a test.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import workloads
from benchmarks.measure import cpu_of_process, cpu_us, percentile, resident_bytes
from benchmarks.servers import emuredis_server, valkey_server


class Bench:
    def __init__(self, port: int, pid: int, rounds: int) -> None:
        self.port, self.pid, self.rounds = port, pid, rounds
        self.rows: list[tuple[int, str, float, float, bool]] = []

    def clients(self) -> dict[str, Any]:
        import fakeredis
        import redis

        import emuredis

        return {
            "emuredis": emuredis.Redis(emulator=emuredis.Emulator()),
            "fakeredis": fakeredis.FakeRedis(),
            "valkey": redis.Redis(port=self.port),
        }

    def report(self, goal: int, what: str, ratio: float, bar: float, *, at_least: bool = True) -> None:
        met = ratio >= bar if at_least else ratio <= bar
        self.rows.append((goal, what, ratio, bar, met))
        sign = ">=" if at_least else "<="
        print(
            f"  goal {goal:>2}  {what:<52} {ratio:8.2f}x   bar {sign} {bar:g}x   {'met' if met else 'MISSED'}",
            flush=True,
        )

    def compare(self, prepare: Any, run: Any, per_round: int, clients: dict[str, Any]) -> dict[str, float]:
        timings: dict[str, list[float]] = {name: [] for name in clients}
        order = list(clients)
        rng = random.Random(7)
        for client in clients.values():
            prepare(client)
            run(client)
        for _ in range(self.rounds):
            rng.shuffle(order)
            for name in order:
                prepare(clients[name])
                pid = self.pid if name == "valkey" else None
                timings[name].append(cpu_us(partial(run, clients[name]), pid) / per_round)
        return {name: percentile(values) for name, values in timings.items()}


def _geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def single_commands(bench: Bench) -> None:
    """Goals 1 and 2."""
    clients = bench.clients()
    against_fake, against_valkey = [], []
    print(f"\nsingle commands, CPU us: {'emuredis':>10} {'fakeredis':>10} {'valkey':>10}")
    for name, (prepare, run) in workloads.SINGLE.items():
        cpu = bench.compare(prepare, run, workloads.N, clients)
        print(
            f"  {name:<22} {cpu['emuredis']:10.2f} {cpu['fakeredis']:10.2f} {cpu['valkey']:10.2f}", flush=True
        )
        against_fake.append(cpu["fakeredis"] / cpu["emuredis"])
        against_valkey.append(cpu["valkey"] / cpu["emuredis"])
    for goal, other, ratios in ((1, "fakeredis", against_fake), (2, "Valkey over TCP", against_valkey)):
        for name, ratio in zip(workloads.SINGLE, ratios, strict=True):
            bench.report(goal, f"{name} against {other}", ratio, 8)
        bench.report(goal, f"geometric mean against {other}", _geometric_mean(ratios), 15)


def pipelines(bench: Bench) -> None:
    """Goal 5."""
    clients = bench.clients()
    print("\npipelines of 100")
    for name, (prepare, run) in workloads.PIPELINES.items():
        cpu = bench.compare(prepare, run, workloads.PIPELINE_SIZE, clients)
        bench.report(5, f"pipeline {name} against fakeredis", cpu["fakeredis"] / cpu["emuredis"], 5)
        bench.report(5, f"pipeline {name} against Valkey over TCP", cpu["valkey"] / cpu["emuredis"], 1.3)


def claim(bench: Bench) -> None:
    """Goal 7."""
    clients = bench.clients()
    count = 100
    shas = {name: client.script_load(workloads.CLAIM) for name, client in clients.items()}
    keys = [workloads.BASE + "pending", workloads.BASE + "active"]
    names = {id(client): name for name, client in clients.items()}

    def run(client: Any) -> None:
        sha = shas[names[id(client)]]
        for _ in range(count):
            client.evalsha(sha, 2, *keys, workloads.BASE + "job:", 60000)

    print("\nEVALSHA claim")
    cpu = bench.compare(lambda c: workloads.fill_pending(c, count), run, count, clients)
    print(
        f"  CPU us: emuredis {cpu['emuredis']:.1f}, fakeredis {cpu['fakeredis']:.1f}, valkey {cpu['valkey']:.1f}"
    )
    bench.report(7, "claim against fakeredis", cpu["fakeredis"] / cpu["emuredis"], 8)
    bench.report(7, "claim against Valkey over TCP", cpu["valkey"] / cpu["emuredis"], 2.5)
    engine = claim_in_the_engine(clients["valkey"], shas["valkey"], keys, count, bench.rounds)
    bench.report(7, "engine time of a claim, times Valkey's", engine, 2.5, at_least=False)


def claim_in_the_engine(valkey: Any, sha: str, keys: list[str], count: int, rounds: int) -> float:
    """What one claim costs without any client's part, as a multiple of the server's own ``commandstats``."""
    import emuredis

    door = emuredis.Redis(emulator=emuredis.Emulator())
    native = door.connection_pool.emulator.client()
    native.call("SCRIPT", "LOAD", workloads.CLAIM)
    ours, theirs = [], []
    for _ in range(rounds):
        workloads.fill_pending(door, count)
        workloads.fill_pending(valkey, count)
        valkey.config_resetstat()
        for _ in range(count):
            valkey.evalsha(sha, 2, *keys, workloads.BASE + "job:", 60000)
        theirs.append(float(valkey.info("commandstats")["cmdstat_evalsha"]["usec_per_call"]))
        ours.append(cpu_us(partial(claim_many, native, sha, keys, count)) / count)
    mine, live = percentile(ours), percentile(theirs)
    print(f"  engine us: emuredis {mine:.1f}, valkey {live:.1f}")
    return mine / live


def claim_many(native: Any, sha: str, keys: list[str], count: int) -> None:
    for _ in range(count):
        assert native.call("EVALSHA", sha, 2, *keys, workloads.BASE + "job:", 60000)


def many_arguments(bench: Bench) -> None:
    """Goal 9."""
    import emuredis

    native = emuredis.Emulator().client()
    script = """local t = {} for i = 1, 6999 do t[i] = 'value:' .. i end
        local n = 0 for _ = 1, 20 do n = redis.call('RPUSH', KEYS[1], unpack(t)) end return n"""
    empty = "local t = {} for i = 1, 6999 do t[i] = 'value:' .. i end return 0"
    print("\nredis.call with 7,000 arguments")
    times: dict[str, list[float]] = {script: [], empty: []}
    for _ in range(bench.rounds):
        for body, spent in times.items():
            native.call("DEL", "k")
            spent.append(cpu_us(partial(native.call, "EVAL", body, 1, "k")))
    call = (percentile(times[script]) - percentile(times[empty])) / 20
    bench.report(9, "7,000 arguments: milliseconds of a call", call / 1000, 3, at_least=False)


def promote(bench: Bench) -> None:
    """Goal 8."""
    clients = bench.clients()
    shas = {name: client.script_load(workloads.PROMOTE) for name, client in clients.items()}
    names = {id(client): name for name, client in clients.items()}
    keys = [workloads.BASE + "schedule", workloads.BASE + "pending"]
    costs = {}
    print("\nEVALSHA promote")
    for count in (100, 1000):

        def run(client: Any, count: int = count) -> None:
            moved = client.evalsha(shas[names[id(client)]], 2, *keys, workloads.BASE, count)
            assert moved == count, moved

        rounds, bench.rounds = bench.rounds, max(5, bench.rounds // 3)
        costs[count] = bench.compare(lambda c, n=count: workloads.fill_schedule(c, n), run, 1, clients)
        bench.rounds = rounds
        print(
            f"  {count} ids, CPU ms: " + ", ".join(f"{n} {us / 1000:.2f}" for n, us in costs[count].items())
        )
    cpu = costs[1000]
    bench.report(8, "promote 1,000 ids, times Valkey's", cpu["emuredis"] / cpu["valkey"], 2.5, at_least=False)
    bench.report(8, "promote 1,000 ids against fakeredis", cpu["fakeredis"] / cpu["emuredis"], 8)
    linear = cpu["emuredis"] / (10 * costs[100]["emuredis"])
    bench.report(8, "cost an id at 1,000, times that at 100", linear, 1.5, at_least=False)


TESTS = ("set", "get", "incr", "lpush", "hset", "zadd", "zpopmin")


def tcp(bench: Bench) -> None:
    """Goal 14: redis-benchmark drives both servers; only the server's CPU counts."""
    tool = shutil.which("redis-benchmark") or shutil.which("valkey-benchmark")
    if tool is None:
        print("\nTCP: skipped, redis-benchmark is not installed (Debian: redis-tools)")
        return
    with ExitStack() as stack:
        servers = {
            "hiredis": stack.enter_context(emuredis_server()),
            "pure": stack.enter_context(emuredis_server(pure_python=True)),
            "valkey": (bench.port, bench.pid),
        }
        for pipeline, clients, requests, bars in (
            (1, 50, 8000, (2, 2)),
            (16, 50, 60000, (3, 4)),
            (100, 50, 120000, (4, 7)),
        ):
            print(f"\nTCP server CPU us a request, {clients} clients, pipeline {pipeline}", flush=True)
            for test in TESTS:
                cost = _drive(tool, servers, test, pipeline, clients, requests)
                print(
                    f"  {test:<8} " + ", ".join(f"{name} {us:.2f}" for name, us in cost.items()), flush=True
                )
                for parser, bar in zip(("hiredis", "pure"), bars, strict=True):
                    ratio = cost[parser] / cost["valkey"]
                    bench.report(
                        14, f"P={pipeline} {test} with the {parser} parser", ratio, bar, at_least=False
                    )


def _drive(tool: str, servers: dict[str, tuple[int, int]], test: str, pipeline: int, clients: int,
           requests: int) -> dict[str, float]:  # fmt: skip
    def contender(port: int) -> Callable[[], object]:
        command = [
            tool,
            "-p",
            str(port),
            "-t",
            test,
            "-n",
            str(requests),
            "-P",
            str(pipeline),
            "-c",
            str(clients),
            "-q",
            "-r",
            "100000",
        ]
        return lambda: subprocess.run(command, check=True, capture_output=True)

    runs = {name: contender(port) for name, (port, _) in servers.items()}
    costs: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(5):
        for name, (_, pid) in servers.items():
            before = cpu_of_process(pid)
            runs[name]()
            costs[name].append((cpu_of_process(pid) - before) / requests / 1000)
    return {name: percentile(values) for name, values in costs.items()}


def script_memory(bench: Bench) -> None:
    """Goal 15: scripts leave nothing behind."""
    if not Path("/proc/self/statm").exists():
        print("\nmemory of scripts: skipped, the size of a process is not told here")
        return
    import emuredis

    print("\n100,000 EVALs in process")
    for what, script in (("distinct scripts", "return {}"), ("of one script", "return ARGV[1]")):
        client = emuredis.Emulator().client()
        sizes = []
        for first, last in ((0, 20_000), (20_000, 120_000)):
            for i in range(first, last):
                client.call("EVAL", script.format(i), 0, i)
            gc.collect()
            sizes.append(resident_bytes())
        bench.report(15, f"memory after 100,000 more {what}", sizes[1] / sizes[0], 1.05, at_least=False)


def exploring(bench: Bench) -> None:
    """The explorer: what a schedule costs, as a multiple of the plain commands it runs."""
    import emuredis
    from emuredis.lab import explore

    def native(own: str) -> Any:
        async def run(client: Any) -> None:
            await client.set(own, 1)
            await client.get("x")
            await client.set("x", own)
            await client.incr(own)

        return run

    def ordinary(own: str) -> Any:
        def run(client: Any) -> None:
            client.set(own, 1)
            client.get("x")
            client.set("x", own)
            client.incr(own)

        return run

    def plainly(call: Any, times: int) -> None:
        for own in names * times:
            call("SET", own, 1)
            call("GET", "x")
            call("SET", "x", own)
            call("INCR", own)

    print("\nexploring three clients with four commands each")
    names = ("k1", "k2", "k3")
    door = emuredis.Redis(emulator=emuredis.Emulator())
    native_client = emuredis.Emulator().client(protocol=2)
    for what, make, call, bar, many in (
        ("async programs", native, native_client.call, 5, 2000),
        ("programs on redis-py", ordinary, door.execute_command, 30, 300),
    ):
        actors = {own: make(own) for own in names}
        tries, plain = [], []
        for _ in range(bench.rounds):
            tries.append(cpu_us(partial(explore, actors, reduce=False, schedules=many)) / many)
            plain.append(cpu_us(partial(plainly, call, many)) / many)
        ratio = percentile(tries) / percentile(plain)
        bench.report(0, f"a schedule of {what}, times its commands", ratio, bar, at_least=False)
    ends: list[int] = []
    for reduce in (False, True):
        found = explore({own: native(own) for own in names}, reduce=reduce)
        ends.append(found.schedules + found.cut)
    bench.report(0, "schedules that need not be run", ends[0] / ends[1], 50)


GOALS: dict[str, Callable[[Bench], None]] = {
    "1": single_commands, "2": single_commands, "5": pipelines, "7": claim, "8": promote, "9": many_arguments,
    "14": tcp, "15": script_memory, "lab": exploring,
}  # fmt: skip


@contextmanager
def _bench(rounds: int) -> Iterator[Bench]:
    with valkey_server() as (port, pid):
        yield Bench(port, pid, rounds)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("goals", nargs="*", choices=[*GOALS, []], help="which goals (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a figure to quote")
    options = parser.parse_args(argv)
    chosen = list(dict.fromkeys(GOALS[goal] for goal in options.goals or GOALS))
    with _bench(5 if options.quick else 15) as bench:
        for measure in chosen:
            measure(bench)
    missed = sum(not met for *_, met in bench.rows)
    print(f"\n{len(bench.rows)} ratios measured, {len(bench.rows) - missed} bars met, {missed} missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
