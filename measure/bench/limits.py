"""The memory of batches, windows, keys and outputs far beyond the usual sizes, and the errors without enough of it.

    python -m measure.bench.limits [CASE ...] [--scale 0.01] [--memory 2GiB] [--figures FILE] [--quick]

Each case runs on local[2] in a process of its own. Memory is what belongs to a process alone (without pages of files),
sampled every 50 ms and added up over the processes of a kind; the table has the maximum. With `--memory`, driver, Java
and workers together have no more than that (measure/bounded.py), and the table has the outcome of the case and its
message.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import skypane as sp
from measure.bench.limit_cases import CASES
from measure.bounded import Bounded, size_of, why_not
from measure.processes import Watch
from measure.results import record
from skypane.runtime.spark.error_causes import cause
from skypane.wording import size

PAGE = "limits.md"
QUICK = 0.002
"""How much of each case a quick run has."""
Told = dict[str, object]
"""What is known of a case that has run, as JSON."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the document, between marks of this name: its head, and how a line of it is made."""

    mark: str
    head: Sequence[str]
    line: Callable[[Told], list[str]]


def _measured(name: str, scale: float) -> Told:
    """Run one case here."""
    with tempfile.TemporaryDirectory(prefix="skypane-limits-") as folder:
        spark = sp.session("local[2]", "skypane-limits", {"spark.local.dir": f"{folder}/passing"})
        with Watch() as watch:
            began = time.monotonic()
            try:
                ended, said = "answered", CASES[name](spark, Path(folder), scale)
            except Exception as error:  # noqa: BLE001 - any error is recorded with its message
                said = cause(error).removeprefix(f"{sp.MemoryLimitError.__module__}.MemoryLimitError: ")
                ended = "refused" if "not enough memory" in said else "failed"
            seconds = time.monotonic() - began
        told = {"case": name, "seconds": seconds, "ended": ended, "said": said, **watch.most}
        print(json.dumps(told), flush=True)  # before stopping Java, which may have ended already
        spark.stop()
    return told


def _apart(name: str, scale: float, seconds: float, memory: int | None) -> Told:
    """Run one case in a process of its own, with so much memory for it and all that it starts."""
    command = [sys.executable, "-m", "measure.bench.limits", name, "--here", "--scale", str(scale)]
    told: Told = {"case": name, "scale": scale}
    if memory is None:
        return told | _ended(command, seconds)
    with Bounded(memory) as bounded:
        said = _ended(bounded.command(command), seconds)
        return told | said | {"memory": memory, "killed": bounded.killed}


def _ended(command: Sequence[str], seconds: float) -> Told:
    """Run a command to its end, or for so many seconds; return what its last line tells."""
    with (
        tempfile.TemporaryFile() as output
    ):  # a file instead of a pipe, which Java would keep open after its driver has ended
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=output, start_new_session=True)  # noqa: S603 - our own command
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            took = time.monotonic() - began
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        lines = [line for line in output.read().splitlines() if line.startswith(b"{")]
    if lines:
        told: Told = json.loads(lines[-1])
        return told
    why = f"did not end in {seconds:.0f} s" if code is None else f"the driver ended with {code}"
    return {"ended": "killed", "said": why, "seconds": took}


def _what(told: Told) -> str:
    what = " ".join(str(CASES[str(told["case"])].__doc__).split()).rstrip(".")
    return what if told["scale"] == 1 else f"{what} (scale {told['scale']})"


def _number(value: object) -> float:
    assert isinstance(value, int | float), value
    return value


def _taken(told: Told) -> list[str]:
    """Return what a case takes where there is enough."""
    held = (_number(told.get(kind, 0)) for kind in ("driver", "java", "workers", "all"))
    memory = (f"{one / 2**30:.2f}" for one in held)
    return [_what(told), *memory, f"{_number(told['seconds']):.0f}", str(told["said"])]


def _become(told: Told) -> list[str]:
    """Return what becomes of a case with less."""
    killed = int(_number(told["killed"]))
    ended = f"the kernel ended {killed} of its processes" if killed else str(told["ended"])
    limit = size(int(_number(told["memory"])))
    return [_what(told), limit, ended, f"{_number(told['seconds']):.0f}", str(told["said"])]


TAKEN = Table("limits", ["what", "driver, GiB", "Java", "Python workers", "all at once", "seconds", "outcome"], _taken)
SHORT = Table("short", ["what", "memory", "outcome", "seconds", "message"], _become)


def _kept(figures: Path | None) -> list[Told]:
    if figures is None or not figures.exists():
        return []
    return [json.loads(line) for line in figures.read_text(encoding="utf-8").splitlines()]


def _latest(told: Sequence[Told], *, short: bool) -> list[Told]:
    """Return the last figures of each case, or of each case and memory, in the order of the cases."""
    order = list(CASES)
    last = {(one["case"], one.get("memory")): one for one in told if ("memory" in one) == short}
    return sorted(last.values(), key=lambda one: (order.index(str(one["case"])), -_number(one.get("memory", 0))))


def main(argv: Sequence[str] | None = None) -> record.Found:
    """Run cases, print a table of them, return it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help=", ".join(CASES))
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="how much of each case: its rows and keys, of the slow output its seconds",
    )
    parser.add_argument("--memory", type=size_of, help="what driver, Java and workers have together, such as 2GiB")
    parser.add_argument("--seconds", type=float, default=3_600.0, help="that a case may take")
    parser.add_argument("--figures", type=Path, help="keep figures here, and tabulate those of earlier runs too")
    parser.add_argument("--quick", action="store_true", help="very little of each case")
    parser.add_argument("--here", action="store_true", help="run one case in this process")
    arguments = parser.parse_args(argv)
    names = arguments.cases or list(CASES)
    scale = QUICK if arguments.quick else arguments.scale
    if arguments.here:
        _measured(names[0], scale)
        return []
    if arguments.memory is not None and (reason := why_not()):
        sys.exit(reason)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))  # so that no cgroup and no process remains
    told = _kept(arguments.figures)
    for name in names:
        told.append(_apart(name, scale, arguments.seconds, arguments.memory))
        print(json.dumps(told[-1]), flush=True)
        if arguments.figures is not None:
            with arguments.figures.open("a", encoding="utf-8") as file:
                file.write(json.dumps(told[-1]) + "\n")
    kind = TAKEN if arguments.memory is None else SHORT
    lines = [kind.line(one) for one in _latest(told, short=kind is SHORT)]
    table = record.Table(PAGE, kind.mark, kind.head, lines)
    print(table.text)
    return [table]


if __name__ == "__main__":
    main()
