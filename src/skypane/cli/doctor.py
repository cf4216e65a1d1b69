"""`skypane doctor`: check this machine, one line each, and say how to mend what fails."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from skypane.cli import checks
from skypane.cli.checks import Finding

Check = Callable[[], Finding | Iterable[Finding]]

_GREEN, _RED, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"


def add_parser(verbs: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the verb's parser."""
    parser = verbs.add_parser(
        "doctor", help="check Java, interpreter, versions, checkpoint, disk; say how to mend each"
    )
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="also check that a stream can commit here (a path or a URI)"
    )
    parser.add_argument("--master", default="local[2]", metavar="URL", help="where Spark is to run (local[2])")
    parser.add_argument(
        "--patience",
        type=float,
        default=checks.PATIENCE,
        metavar="SECONDS",
        help=f"that Spark's job may take ({checks.PATIENCE:g})",
    )
    parser.add_argument("--no-spark", action="store_true", help="do not start Spark")
    return parser


def run(arguments: Namespace) -> int:
    """Print every finding as it comes; return 1 if one failed."""
    paint = _coloured if sys.stdout.isatty() else _plain
    failed = 0
    master = None if arguments.no_spark else arguments.master
    for finding in findings(_checks(arguments.checkpoint, master, arguments.patience)):
        print(paint(finding), flush=True)
        failed += not finding.ok
    if failed:
        print(f"{failed} to mend")
    return int(failed > 0)


def findings(todo: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """Yield what each named check finds; one that breaks is a finding too, so that the others still run."""
    for name, check in todo:
        try:
            result = check()
            yield from [result] if isinstance(result, Finding) else result
        except Exception as error:  # noqa: BLE001  # whatever is wrong with the machine, doctor says so and goes on
            first_line = str(error).strip().partition("\n")[0]
            yield Finding(
                name, f"{type(error).__name__}: {first_line}", "see the message; the checks above may name the cause"
            )


def _checks(checkpoint: str | None, master: str | None, patience: float) -> Iterator[tuple[str, Check]]:
    yield "Python", checks.python
    yield "Java", checks.java
    yield "workers' interpreter", checks.worker_interpreter
    yield "versions", checks.versions
    yield "memory", checks.memory
    yield "disk", partial(checks.disk, checkpoint)
    yield "checkpoint", partial(checks.checkpoint_directory, checkpoint)
    yield "kernels", checks.kernels
    yield "bytecode", checks.bytecode
    yield "costs", checks.costs
    if master is not None:
        yield "Spark job", partial(checks.spark, master, patience)
        yield "executors", partial(checks.executors, master)


def _plain(finding: Finding) -> str:
    line = f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}: {finding.detail}"
    return line if finding.ok else f"{line}\n      -> {finding.mend}"


def _coloured(finding: Finding) -> str:
    plain = _plain(finding)
    return f"{_GREEN if finding.ok else _RED}{plain[:4]}{_PLAIN}{plain[4:]}"
