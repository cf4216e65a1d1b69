"""python -m tests.differential: random cases until one fails, or the time is up; see the package."""

from __future__ import annotations

import argparse
import sys
from itertools import chain

from tests.differential.checking import Failure, failure_of
from tests.differential.draw.cases import KINDS, drawn
from tests.differential.kept import keep, kept
from tests.differential.running import Tally, cases, failures
from tests.differential.shrink import shrunk


def main() -> int:
    """Run what the arguments say; return the exit code."""
    args = _arguments()
    if args.case is not None:
        return _replay(args.case, args.keep)
    tally, failed = Tally(), 0
    old = (one.case for one in kept() if args.only in (None, one.case.kind))
    new = cases(args.seed, args.only, args.cases, args.seconds if args.cases is None else None)
    for failure in failures(chain(old, new), tally):
        failed += 1
        print(failure if args.all else shrunk(failure, failure_of), flush=True)
        if not args.all:
            break
    print(tally)
    return 1 if failed else 0


def _replay(seed: int, why: str | None) -> int:
    failure = failure_of(drawn(seed))
    if failure is None:
        print(f"seed {seed} does not fail: {drawn(seed)}")
        return 0
    small: Failure = shrunk(failure, failure_of)
    print(failure, small, sep="\n\n")
    print(small.case.rows.to_pandas().to_string(max_rows=40))
    if why is not None:
        keep(small.case, why)
    return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to go on (30)")
    parser.add_argument("--cases", type=int, help="how many cases, instead of how long")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first case (0)")
    parser.add_argument("--only", choices=KINDS, help="cases of one kind")
    parser.add_argument("--all", action="store_true", help="go on after a failure, and shrink none")
    parser.add_argument("--case", type=int, help="try one seed, shrink it, and print what differs")
    parser.add_argument(
        "--keep", help="with --case: keep the shrunk case in kept.jsonl, with these words on what is wrong"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
