"""Ways to do one thing, run in turn: a round that is checked and not measured, then rounds that are."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from measure.peers.places import MissingError
from measure.processes import cpu_seconds
from measure.results.record import Comparison, Times

Way = Callable[[Path], Times | None]
"""Writes its answers into the file or folder that it is given. It returns its times where others' processes are measured, else None."""


def timed(way: Way, target: Path) -> Times:
    """Return the times of a way: its own, or those of this process and all that it has started."""
    cpu, began = cpu_seconds(), time.perf_counter()
    own = way(target)
    return own or Times(time.perf_counter() - began, cpu_seconds() - cpu)


def compared(
    subject: str,
    case: str,
    rows: int,
    ways: Mapping[str, Way],
    *,
    rounds: int,
    scratch: Path,
    check: Callable[[str, Path], None],
) -> Comparison:
    """Return the rounds of all ways; `check` gets the name of each and its answers of the first round, and raises if they are wrong.

    A way that raises MissingError is left out, with its reason. The first way is ours.
    """
    sides: dict[str, list[Times]] = {}
    missing: dict[str, str] = {}
    for turn in range(rounds + 1):
        for number, (name, way) in enumerate(ways.items()):
            if name in missing:
                continue
            target = scratch / f"{turn}-{number}"
            try:
                times = timed(way, target)
            except MissingError as error:
                missing[name] = str(error)
                continue
            print(f"{subject}, {case}: {name}: {times.wall:.2f} s, CPU {times.cpu or 0:.2f} s", flush=True)
            if turn == 0:
                check(name, target)
            else:
                sides.setdefault(name, []).append(times)
    return Comparison(subject, case, rows, next(iter(ways)), sides, missing)
