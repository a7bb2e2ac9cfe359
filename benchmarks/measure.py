"""How the benchmarks measure: CPU time, contenders interleaved in one run, low percentiles, ratios.

Wall-clock medians move by a factor of two to four on a shared machine; ratios of CPU times taken interleaved in one
run move by a tenth to a third. So every figure is the CPU time of the client process plus that of the server
process (nanoseconds from the kernel's scheduler statistics), the contenders take turns in shuffled order, and the
25th percentile of the rounds is compared.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["cpu_of_process", "cpu_us", "percentile", "resident_bytes"]


def cpu_of_process(pid: int) -> int:
    """CPU nanoseconds that the threads of process ``pid`` have used so far."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total


def percentile(values: list[float], part: float = 0.25) -> float:
    """The value below which ``part`` of the sorted values lie."""
    ordered = sorted(values)
    return ordered[int(part * (len(ordered) - 1))]


def cpu_us(run: Callable[[], object], server_pid: int | None = None) -> float:
    """CPU microseconds that ``run`` costs this process and, if given, the server process."""
    server_before = cpu_of_process(server_pid) if server_pid else 0
    before = time.process_time_ns()
    run()
    spent = time.process_time_ns() - before
    if server_pid:
        spent += cpu_of_process(server_pid) - server_before
    return spent / 1000


def resident_bytes() -> int:
    """The memory that this process has in use (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
