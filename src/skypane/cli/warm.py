"""`skypane warm`: compile kernels, and modules that were installed without bytecode, so that no first query has to."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from time import perf_counter

from skypane.runtime.interrupts import interrupted_afterwards


def add_parser(verbs: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the verb's parser."""
    return verbs.add_parser("warm", help="compile what workers load ahead of the first query")


def run(_arguments: Namespace) -> int:
    """Compile or load every kernel; say which."""
    started = perf_counter()
    # Importing kernels takes a second, and no other verb's --help should wait for it.
    from skypane.kernels import warm  # noqa: PLC0415
    from skypane.runtime.spark.machine import bytecode  # noqa: PLC0415

    with interrupted_afterwards():
        compiled = warm(print)
    kept = bytecode.keep(bytecode.lacking())
    seconds = perf_counter() - started
    print(f"{len(compiled)} kernels and {kept} modules compiled, the others were cached, in {seconds:.1f} s")
    return 0
