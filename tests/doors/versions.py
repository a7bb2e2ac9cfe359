"""The door tests with other versions of the client packages: ``python -m tests.doors.versions [package==version ...]``.

Each version is installed into a directory of its own beside this environment, and goes before the installed one. Needs
the package index; not part of the test suite. Prints one line per version, and fails if one of them failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The newest of each minor version at the edges and in the middle of every major one, and all of valkey-py's.
VERSIONS = (
    "redis==5.0.8",
    "redis==5.3.1",
    "redis==6.0.0",
    "redis==6.4.0",
    "redis==7.0.1",
    "redis==7.4.1",
    "redis==8.0.1",
    "redis==8.1.0",
    "valkey==6.0.2",
    "valkey==6.1.1",
    "valkey==6.2.0",
)


def outcome(version: str, folder: Path) -> tuple[bool, str]:
    """Run the door tests with one version; whether all passed, and pytest's last line."""
    place = folder / version.replace("==", "-")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(place), version]
    subprocess.run(install, check=True)
    package = version.partition("==")[0]
    chosen = "valkey" if package == "valkey" else "not valkey"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "tests/doors",
            "-k",
            f"{chosen} and not theirs",
            "--timeout",
            "30",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
    )
    lines = done.stdout.strip().splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode == 0, "\n    ".join([lines[-1] if lines else done.stderr, *failed])


def main(versions: list[str]) -> int:
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for version in versions or VERSIONS:
            passed, line = outcome(version, Path(folder))
            good = good and passed
            print(f"{version:16} {line}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
