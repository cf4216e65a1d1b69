"""`skypane warm`: compile kernels and modules without bytecode in advance, so that the first query need not."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from time import perf_counter

from skypane.runtime.interrupts import interrupted_afterwards


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    return commands.add_parser("warm", help="compile kernels and modules before the first query")


def run(_arguments: Namespace) -> int:
    """Compile or load every kernel, and print the names."""
    started = perf_counter()
    # Importing kernels takes a second, and the --help of other commands should not wait for it.
    from skypane.kernels import warm  # noqa: PLC0415
    from skypane.runtime.spark.machine import bytecode  # noqa: PLC0415

    with interrupted_afterwards():
        compiled = warm(print)
    kept = bytecode.keep(bytecode.lacking())
    seconds = perf_counter() - started
    print(f"compiled {len(compiled)} kernels and {kept} modules in {seconds:.1f} s; the others were cached")
    return 0
