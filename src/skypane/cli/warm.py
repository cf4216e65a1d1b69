"""`skypane warm`: compile kernels and modules without bytecode in advance, so that the first query need not.

With `--java` also store Spark's classes in the form that Java has of them in memory.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from time import perf_counter

from skypane.cli.output import say
from skypane.runtime.interrupts import interrupted_afterwards


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser("warm", help="compile kernels and modules before the first query")
    parser.add_argument(
        "--java",
        action="store_true",
        help="also store Spark's classes as Java has them in memory, so that each session on this machine starts faster",
    )
    return parser


def run(arguments: Namespace) -> int:
    """Compile or load every kernel, and print how many; return 1 if Java was to store Spark's classes, and cannot."""
    started = perf_counter()
    # Importing kernels takes a second, and the --help of other commands should not wait for it.
    from skypane.kernels import warm  # noqa: PLC0415
    from skypane.runtime.spark.machine import bytecode  # noqa: PLC0415

    with interrupted_afterwards():
        compiled = warm(print)
    kept = bytecode.keep(bytecode.lacking())
    seconds = perf_counter() - started
    say(f"compiled {len(compiled)} kernels and {kept} modules in {seconds:.1f} s; the others were cached")
    return 0 if not arguments.java or _stored_classes() else 1


def _stored_classes() -> bool:
    """Store Spark's classes and print where; return whether they are there."""
    from skypane.runtime.spark.machine import class_archive  # noqa: PLC0415 - as above
    from skypane.runtime.spark.machine.java import ensure_java  # noqa: PLC0415

    java = ensure_java()
    stored = class_archive.make(java)
    say(
        f"Spark's classes are stored in {class_archive.place(java)}"
        if stored
        else f"{java} cannot store Spark's classes"
    )
    return stored
