"""python -m tests.differential.mutants: try all mutants, and say which are killed by what."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.differential.mutants.every import MUTANTS
from tests.differential.mutants.mutant import Mutant
from tests.differential.mutants.running import Fate, Harness

LEAST = 0.97
"""Share of the mutants that must be killed."""


def main() -> int:
    """Try the requested mutants; return 0 if enough of them are killed."""
    arguments = _arguments()
    chosen = [mutant for mutant in MUTANTS if _is_meant(mutant, arguments.only)]
    if not chosen:
        print(f"no mutant is called {arguments.only}; there are {', '.join(mutant.id for mutant in MUTANTS)}")
        return 2
    with tempfile.TemporaryDirectory(prefix="skypane-mutants-") as folder:
        harness = Harness(Path(folder), arguments.seconds_each, arguments.seed)
        print(*harness.check(chosen), sep="\n", flush=True)
        fates = []
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for fate in pool.map(harness.fate, chosen):
                print(fate, flush=True)
                fates.append(fate)
    print(_summary(fates))
    return 0 if sum(fate.by is not None for fate in fates) >= LEAST * len(fates) else 1


def _is_meant(mutant: Mutant, only: list[str] | None) -> bool:
    return only is None or not {mutant.id, mutant.layer, *mutant.kinds}.isdisjoint(only)


def _summary(fates: list[Fate]) -> str:
    killed = [fate for fate in fates if fate.by is not None]
    by_layer, of = Counter(fate.mutant.layer for fate in killed), Counter(fate.mutant.layer for fate in fates)
    layers = ", ".join(f"{layer} {by_layer[layer]} of {count}" for layer, count in of.items())
    return f"{len(killed)} of {len(fates)} killed: {layers}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.mutants", description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="ID", help="a mutant, a layer (kernels, operators, ...) or a kind of cases"
    )
    parser.add_argument("--seconds-each", type=float, default=30.0, help="of random cases, for each mutant and kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at once")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
