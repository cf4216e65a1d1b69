"""python -m tests.differential.spark: random cases on Spark, for so many seconds or cases; exit 1 at the first failure."""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys
import tempfile
import time
from collections import Counter

from tests.differential.draw.cases import KINDS
from tests.differential.spark.trying import Trying


def main() -> int:
    """Try cases; say how many there were, or which failed."""
    arguments = _arguments()
    # What a developer has calibrated must not decide anything here.
    os.environ["SKYPANE_CACHE"] = tempfile.mkdtemp(prefix="skypane-differential-")
    logging.disable(logging.ERROR)  # of sinks that fail, as they are meant to
    began, tried = time.monotonic(), Counter[str]()
    for run, how in Trying(arguments.seed, arguments.only, arguments.jobs).until(arguments.seconds, arguments.cases):
        tried[run.case.kind] += 1
        if how is not None:
            print(f"seed {run.case.seed}, {run.case.kind}: {how}\n{run}", flush=True)
            os._exit(1)  # streams of other cases are under way, and nobody waits for them
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(tried.items()))
    print(f"{tried.total()} cases agree in {time.monotonic() - began:.0f} s: {kinds}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.spark", description=__doc__)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--cases", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0, help="the first; one more for each case")
    parser.add_argument("--only", choices=KINDS, default=None, metavar="KIND")
    parser.add_argument(
        "--jobs", type=int, default=3, help="cases at once; most of a small batch's time is spent waiting"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
