"""Write docs/reproductions.md.

    python -m measure.reproductions [docs [NAME ...]] [--jobs N] [--only simulated|timings] [--resume]

measures every figure, or those that are named, and keeps the other parts of the page. Each figure is written as soon as it
is measured; with --resume, those that the page has of this day, machine and version are left out. Figures that measure time
are measured after all others, one by one. With TRACES=FOLDER the figures of paper 5 that the paper ran on published rates
use these rates.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from measure.reproductions.document import Part, parts, write
from measure.reproductions.running import Running, split
from measure.reproductions.stamp import stamp
from skypane_papers import registry


def main(given: Sequence[str], traces: Path | None = None) -> None:
    """Measure figures and put them into the page, in the order of the list."""
    parser = ArgumentParser(prog="python -m measure.reproductions", description="Write docs/reproductions.md.")
    parser.add_argument("docs", nargs="?", type=Path, default=Path("docs"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="figure such as paper1-figure-8 (all)")
    parser.add_argument("--jobs", type=int, default=1, help="processes for the figures that do not measure time (1)")
    parser.add_argument("--only", choices=("simulated", "timings"), help="leave out those that do, or all others")
    parser.add_argument("--resume", action="store_true", help="leave out what was measured on this day and machine")
    parser.add_argument("--quick", action="store_true", help="run for seconds, which is too short for the claims")
    asked = parser.parse_args(given)
    document = asked.docs / "reproductions.md"
    simulated, timings = split(asked.names or registry.names())
    names = {"simulated": simulated, "timings": timings, None: simulated + timings}[asked.only]
    if asked.resume:
        names = [name for name in names if name not in _of_today(document)]
    for number, told in enumerate(Running(asked.jobs, asked.quick, traces).over(names), 1):
        write(document, parts(document) | {told.name: Part(told.text, stamp())}, registry.names())
        sys.stderr.write(f"{number} of {len(names)}: {told.name}, {told.seconds:.0f} s, {told.cpu:.0f} s of CPU\n")


def _of_today(document: Path) -> set[str]:
    now = stamp()
    return {name for name, part in parts(document).items() if part.stamp == now}


if __name__ == "__main__":
    folder = os.environ.get("TRACES")
    main(sys.argv[1:], None if folder is None else Path(folder))
