"""Run a goal of make as on other CPUs, and put what came of it into docs/versions.md: `python -m tests.cpus [NAME ...]`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from measure.versions.kept import Kept
from measure.versions.making import closing, make, tail
from tests.cpus.settings import ENVIRONMENTS, WHOLE, on_this_cpu

from skypane.wording import seconds

SETTINGS: Final = {"as it is": {}, **ENVIRONMENTS, **WHOLE}
TABLE: Final = Kept("cpus", ("as on", "set by", "goal", "tests", "took", "on"))


def main() -> int:
    """Run the goal under settings whose names hold one of the words given, or all; return 1 if it failed under one."""
    parser = ArgumentParser(prog="make cpus", description="Runs tests in processes that take this CPU for another.")
    parser.add_argument("words", nargs="*", metavar="WORD", help=f"of a name: {', '.join(SETTINGS)}; without one, all")
    parser.add_argument("--goal", default="quick", help="of the Makefile, one that runs tests (quick)")
    given = parser.parse_args()
    names = [name for name in SETTINGS if not given.words or any(word in name for word in given.words)]
    if not names:
        parser.error(f"no name holds {' or '.join(given.words)}; there are {', '.join(SETTINGS)}")
    return max([_run(name, given.goal) for name in names])


def _run(name: str, goal: str) -> int:
    variables = SETTINGS[name]
    if variables and not on_this_cpu(variables):
        print(f"{name}: not on this CPU")
        return 0
    with TemporaryDirectory() as folder:
        log = Path(folder, "log")
        start = monotonic()
        code = make(goal, {}, variables, log)
        took = seconds(monotonic() - start)
        result = closing(log) or "did not come to an end"
        print(f"{name}: {result}", flush=True)
        if code:
            print(tail(log), file=sys.stderr, flush=True)
    words = ", ".join(f"`{variable}={value}`" for variable, value in variables.items())
    TABLE.record(SETTINGS, {name: (name, words, f"`make {goal}`", result, took, f"{datetime.now(UTC):%Y-%m-%d}")})
    return int(code != 0)


if __name__ == "__main__":
    sys.exit(main())
