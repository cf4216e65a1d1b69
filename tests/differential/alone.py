"""Cases of the kernels or of the policies alone, one after the other, until one fails or the time is up."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any


def failures(
    drawn: Callable[[int], Any],
    failure: Callable[[Any], str | None],
    first: int,
    most: int | None,
    seconds: float,
    tried: list[int],
) -> Iterator[tuple[Any, str]]:
    """Try the cases of seeds from the first on, which are noted as tried; yield those that fail, and how."""
    until, seed = time.monotonic() + seconds, first
    while time.monotonic() < until and (most is None or seed < first + most):
        tried.append(seed)
        case = drawn(seed)
        if (how := failure(case)) is not None:
            yield case, how
        seed += 1


def run(kind: str, drawn: Callable[[int], Any], failure: Callable[[Any], str | None]) -> int:
    """Run what the arguments say; return the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.differential.{kind}")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--cases", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tried: list[int] = []
    for case, how in failures(drawn, failure, arguments.seed, arguments.cases, arguments.seconds, tried):
        print(f"seed {case.seed}, {kind}: {how}; {case}")
        return 1
    print(f"{len(tried)} cases of {kind}")
    return 0
