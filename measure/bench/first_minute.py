"""What README's program takes in a new process until its answers are there, first with nothing compiled, then again.

    python -m measure.bench.first_minute [--quick] [--rounds 3] [--python PYTHON]

The wheel of this checkout is built and installed into an environment of its own, which is not part of the times. Each
round runs four processes: a program of Spark's alone of the same shape, README's program with an empty folder of kernels,
README's program again with what the run before has left there, and with what `skypane warm --java` has left, which is not
part of the times either. Times are by the parts of the programs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from measure.first_minute.environment import ROOT, installed
from measure.first_minute.parts import FIRST_ANSWER, FIRST_TABLE, PARTS, ends, program_of, spans
from measure.results.record import Found, Table, Times
from skypane.runtime.spark.machine.java import ensure_java

SPARK: Final = "Spark alone"
FIRST: Final = "skypane, nothing compiled"
AGAIN: Final = "skypane, again"
WARMED: Final = "skypane, after `skypane warm --java`"
WAYS: Final = (SPARK, FIRST, AGAIN, WARMED)
GOALS: Final[Mapping[str, float]] = {FIRST: 40.0, AGAIN: 15.0, WARMED: 15.0}
"""Seconds until the first answer of the stream that are the goals."""
_STEPWISE: Final = ROOT / "measure" / "first_minute" / "stepwise.py"
_PLAIN: Final = ROOT / "measure" / "first_minute" / "plain_spark.py"

Round = dict[str, dict[str, Times]]
"""By way, when each part has ended."""


def one_round(python: Path, folder: Path, warmed: Path | None = None) -> Round:
    """Run all ways once, in turn; `folder` receives what they write.

    warmed   the folder that warm() has filled; None: that way is left out
    """
    readme = folder / "readme.py"
    readme.write_text(program_of((ROOT / "README.md").read_text(encoding="utf-8")), encoding="utf-8")
    kept = folder / "kept"
    runs = {SPARK: (_PLAIN, kept), FIRST: (readme, kept), AGAIN: (readme, kept)}
    if warmed is not None:
        runs[WARMED] = readme, warmed
    return {way: _run(python, *run, folder / str(at)) for at, (way, run) in enumerate(runs.items())}


def warm(python: Path, kept: Path) -> float:
    """Fill a folder with all that can be compiled and stored ahead; return the seconds that it takes."""
    began = time.perf_counter()
    command = [str(python), "-P", "-m", "skypane", "warm", "--java"]
    subprocess.run(command, env=_environment(python, kept), check=True)  # noqa: S603
    return time.perf_counter() - began


def _run(python: Path, program: Path, kept: Path, folder: Path) -> dict[str, Times]:
    """Run a program in a new process in a new folder; return when each part of it has ended."""
    folder.mkdir()
    steps, log = folder / "steps.json", folder / "output.txt"
    command = [str(python), "-P", str(_STEPWISE), str(program), str(steps), str(time.monotonic())]
    with log.open("wb") as output:
        done = subprocess.run(  # noqa: S603
            command, cwd=folder, env=_environment(python, kept), stdout=output, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{program.name} failed:\n{log.read_text(encoding='utf-8', errors='replace')[-4000:]}")
    return ends(json.loads(steps.read_text(encoding="utf-8")))


def _environment(python: Path, kept: Path) -> dict[str, str]:
    """Return the environment of a process; what it keeps for later ones is in `kept`, not in the home and the packages."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kept / "kernels"), "SKYPANE_CACHE": str(kept / "skypane")}
    ensure_java(environment)
    # Of this process: they may name another Python, and a checkout that would stand before the wheel.
    own = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", *(() if python == Path(sys.executable) else ("PYTHONPATH",)))
    return {name: value for name, value in environment.items() if name not in own}


def lines(rounds: Sequence[Round]) -> list[list[str]]:
    """Return a line for each part, and for the time until each answer: seconds, and CPU seconds in brackets."""
    taken = [{way: spans(ended) for way, ended in one.items()} for one in rounds]
    found = [[part, *_cells(taken, part)] for part in PARTS]
    for title, part in (
        ("until the answer over a table", FIRST_TABLE),
        ("until the answers of the stream", FIRST_ANSWER),
    ):
        found.append([f"**{title}**", *_cells(rounds, part)])
    return [*found, ["goal", *(f"{GOALS[way]:g}" if way in GOALS else "-" for way in WAYS)]]


def _cells(rounds: Sequence[Round], part: str) -> list[str]:
    return [_cell([one.get(way, {}).get(part) for one in rounds]) for way in WAYS]


def _cell(times: Sequence[Times | None]) -> str:
    known = [one for one in times if one is not None]
    if not known:
        return "-"
    return (
        f"{statistics.median(one.wall for one in known):.1f} ({statistics.median(one.cpu or 0.0 for one in known):.1f})"
    )


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, with the environment of this process")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", type=Path, help="of an environment that has skypane, instead of a new one")
    arguments = parser.parse_args(argv)
    rounds: list[Round] = []
    python: Path | None = Path(sys.executable) if arguments.quick else arguments.python
    with tempfile.TemporaryDirectory(prefix="skypane-first-minute-") as temporary:
        folder = Path(temporary)
        if python is None:
            python, seconds = installed(folder)
            print(f"installed into a new environment in {seconds:.0f} s", flush=True)
        warmed = None if arguments.quick else folder / "warmed"
        if warmed is not None:
            print(f"skypane warm --java: {warm(python, warmed):.0f} s", flush=True)
        for _ in range(1 if arguments.quick else arguments.rounds):
            (folder / "round").mkdir()
            rounds.append(one_round(python, folder / "round", warmed))
            print(
                "; ".join(f"{way}: {ended[FIRST_ANSWER].wall:.1f} s" for way, ended in rounds[-1].items()), flush=True
            )
            shutil.rmtree(folder / "round")
    table = Table("bench-streaming.md", "first minute", ["part, s (CPU s)", *WAYS], lines(rounds))
    print(table.text)
    return [table]


if __name__ == "__main__":
    main()
