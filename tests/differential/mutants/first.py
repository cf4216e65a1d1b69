"""python -m tests.differential.mutants.first: random cases until one fails, which is reported as it was drawn; exit 1 then."""

from __future__ import annotations

import argparse
import math
import sys

from tests.differential.draw.cases import KINDS
from tests.differential.running import Tally, cases, failures


def main() -> int:
    """Try cases; report the first failure, or how many there were."""
    arguments = _arguments()
    tally = Tally()
    for failure in failures(cases(arguments.seed, arguments.only, arguments.cases, arguments.seconds), tally):
        print(f"seed {failure.case.seed}, {failure.case.kind}, by {failure.way}: {failure.what}")
        return 1
    print(tally)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.mutants.first", description=__doc__)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--cases", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=KINDS, default=None, metavar="KIND")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
