"""Measure all that docs/ quotes about speed, in one run on a quiet machine, and write pages and charts from it.

    python -m measure.bench [--quick] [--only NAME ...] [--list] [--publish]

Each program runs in a process of its own, on two cores. The run is a file in measure/runs, which is written after each
program: the same command continues a run that was interrupted. Pages are written at the end, each table with the day
and the machine; of several runs, the newest that has a table counts. A machine on which others use more than a few
percent of the CPU time is refused, before the run and for each program, unless `--anyway` is given: then it is stated
below the tables.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from measure.bench.programs import LEFT_OUT, chosen, every, schedule
from measure.bench.running import ROOT, Estimate, Step, measure, missing, to_continue
from measure.peers import windflow
from measure.peers.places import MissingError
from measure.results import machine, record
from measure.results.publish import Files, Measured, usable, write
from measure.results.record import Run

LOAD = 0.25
"""Programs for each core, by the load of the last minute, above which a machine is not quiet."""
WRITTEN = ("docs", "README.md", "measure/runs")
"""What this command writes into the checkout: a run whose pages are written is continued nevertheless."""


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Return what the command line has."""
    parser = argparse.ArgumentParser(
        "make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes; pages are written only into --docs DIR")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="some of the programs")
    parser.add_argument("--list", action="store_true", help="list the programs, and run nothing")
    parser.add_argument("--publish", action="store_true", help="write the pages from the runs that are there")
    parser.add_argument("--anyway", action="store_true", help="measure on a machine that is not quiet, too")
    parser.add_argument(
        "--wait", type=float, default=0.0, metavar="MIN", help="wait so long for the machine to be quiet"
    )
    parser.add_argument("--new", action="store_true", help="do not continue an interrupted run")
    parser.add_argument("--docs", type=Path, help="folder with the pages, README.md above it (docs)")
    parser.add_argument("--runs", type=Path, help="folder of the runs (measure/runs; of quick runs build/bench)")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None, say: Callable[[str], None] = print) -> int:
    """Run and publish; return 1 if anything could not be measured or written, 2 if it cannot begin."""
    asked = arguments(given)
    if asked.list:
        say("\n".join(f"{one.name:24}{LEFT_OUT.get(one.name, '')}".rstrip() for one in every()))
        return 0
    if reason := cannot_begin(asked):
        say(reason)
        return 2
    folder = asked.runs or (ROOT / "build" / "bench" if asked.quick else ROOT / "measure" / "runs")
    if asked.publish:
        return publish(asked, list(record.every(folder).values()), say)
    if not asked.quick and (reason := not_quiet(asked.wait)) and not asked.anyway:
        say(f"this machine is not quiet: {reason}; stop what runs there, or measure --anyway")
        return 1
    run, troubles = _measured(asked, folder, schedule(chosen(asked.only, quick=asked.quick)), say)
    written = publish(asked, [run] if asked.quick else list(record.every(folder).values()), say)
    for trouble in troubles:
        say(f"not published: {trouble}")
    if troubles:
        say("the same command measures these again")
    return int(bool(troubles)) or written


def _measured(
    asked: argparse.Namespace, folder: Path, steps: Sequence[Step], say: Callable[[str], None]
) -> tuple[Run, list[str]]:
    """Begin a run or continue one; return it, and what went wrong."""
    now = datetime.now(UTC)
    run = Run(machine.this(), versions(), now.isoformat("T", "seconds"), asked.quick, asked.anyway)
    runs = record.every(folder)
    file = folder / f"{now:%Y-%m-%dT%H%M%S}.json"
    if not asked.new and (before := to_continue(runs, run, steps)):
        file, run = before
        say(f"continues {file}, which has {len(run.results)} results")
    estimate = Estimate.of(list(runs.values()), quick=asked.quick)
    logs = (asked.runs or ROOT / "build" / "bench") / "logs"
    return measure(run, file, missing(run, steps), estimate, logs, say)


def publish(asked: argparse.Namespace, runs: Sequence[Run], say: Callable[[str], None]) -> int:
    """Write pages and charts; return 1 if there is nothing to write them from."""
    if asked.quick and asked.docs is None:
        return 0
    measured = _published(asked, runs)
    if not measured:
        say("no run has anything to publish: `make bench` makes one")
        return 1
    docs = asked.docs or ROOT / "docs"
    files = write(measured, Files(docs, docs.parent / "README.md"))
    say("\n".join(f"wrote {file}" for file in files) or "the pages are as the runs say")
    return 0


def _published(asked: argparse.Namespace, runs: Sequence[Run]) -> list[Measured]:
    return [Measured(result, run) for run in runs for result in run.results] if asked.quick else usable(runs)


def cannot_begin(asked: argparse.Namespace) -> str:
    """Return why nothing can be measured or written as it is asked for; nothing if it can."""
    if unknown := set(asked.only) - {program.name for program in every()}:
        return f"there is no program {', '.join(sorted(unknown))}: --list names them"
    if not (asked.publish or machine.has_clocks()):
        return "benchmarks need Linux: its /proc has the CPU times of processes"
    return no_pages(asked)


def no_pages(asked: argparse.Namespace) -> str:
    """Return why there are no pages to write, before hours are measured for them; nothing if there are or none are asked for."""
    docs: Path | None = asked.docs
    if docs is None:
        return "--quick --publish needs --docs, a copy of docs/" if asked.quick and asked.publish else ""
    if asked.quick and docs.resolve() == (ROOT / "docs").resolve():
        return "figures of a quick run are for no page: --docs needs a copy of docs/, with README.md above it"
    lacking = [file for file in (docs / "performance.md", docs.parent / "README.md") if not file.exists()]
    return f"--docs needs a folder of pages with README.md above it: there is no {lacking[0]}" if lacking else ""


def not_quiet(minutes: float) -> str:
    """Return why the machine is not quiet, after waiting so long for it; nothing if it is."""
    until = time.monotonic() + 60 * minutes
    while True:
        reason = machine.look().why_not
        if not reason and machine.load() > LOAD:
            reason = f"in the last minute {machine.load():.1f} programs ran on each core, more than {LOAD}"
        if not reason or time.monotonic() > until:
            return reason


def versions() -> dict[str, str]:
    """Return all versions, with the commit of this checkout and WindFlow's headers where there are any."""
    found = machine.versions()
    if commit := machine.commit(ROOT, but=WRITTEN):
        found["commit"] = commit
    with suppress(MissingError):
        found["windflow"] = windflow.digest()
    return found


if __name__ == "__main__":
    sys.exit(main())
