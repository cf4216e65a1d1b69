"""`skypane doctor`: check this machine and print one line per check, with a remedy for each that fails."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from skypane.cli import machine_checks
from skypane.cli.machine_checks import Finding
from skypane.cli.output import say
from skypane.naming import printable

Check = Callable[[], Finding | Iterable[Finding]]

_GREEN, _RED, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser(
        "doctor",
        help="check Java, Python, package versions, checkpoint and disk, and suggest a remedy for each problem",
    )
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="also check that a stream can commit to this checkpoint (a path or a URI)"
    )
    parser.add_argument(
        "--master", default="local[2]", metavar="URL", help="Spark master on which the test job runs (local[2])"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=machine_checks.JOB_TIMEOUT,
        metavar="SECONDS",
        help=f"time limit of the Spark job ({machine_checks.JOB_TIMEOUT:g})",
    )
    parser.add_argument("--no-spark", action="store_true", help="do not start Spark")
    return parser


def run(arguments: Namespace) -> int:
    """Print each finding as soon as its check ends; return 1 if any check failed."""
    paint = _coloured if sys.stdout.isatty() else _plain
    failed = 0
    master = None if arguments.no_spark else arguments.master
    for finding in findings(_checks(arguments.checkpoint, master, arguments.timeout)):
        print(paint(finding), flush=True)  # noqa: T201 - colours are escapes
        failed += not finding.ok
    if failed:
        say(f"failed checks: {failed}")
    return int(failed > 0)


def findings(todo: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """Yield the findings of each named check; an exception becomes a finding, so that the other checks still run."""
    for name, check in todo:
        try:
            result = check()
            yield from [result] if isinstance(result, Finding) else result
        except Exception as error:  # noqa: BLE001  # doctor reports any error and continues
            first_line = str(error).strip().partition("\n")[0]
            yield Finding(
                name, f"{type(error).__name__}: {first_line}", "see the message; the checks above may name the cause"
            )


def _checks(checkpoint: str | None, master: str | None, timeout: float) -> Iterator[tuple[str, Check]]:
    yield "Python", machine_checks.python
    yield "Java", machine_checks.java
    yield "workers' interpreter", machine_checks.worker_interpreter
    yield "versions", machine_checks.versions
    yield "memory", machine_checks.memory
    yield "disk", partial(machine_checks.disk, checkpoint)
    yield "checkpoint", partial(machine_checks.checkpoint_directory, checkpoint)
    yield "kernels", machine_checks.kernels
    yield "bytecode", machine_checks.bytecode
    yield "costs", machine_checks.costs
    if master is not None:
        yield "Spark job", partial(machine_checks.spark, master, timeout)
        yield "executors", partial(machine_checks.executors, master)


def _plain(finding: Finding) -> str:
    line = f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}: {finding.detail}"
    return printable(line if finding.ok else f"{line}\n      -> {finding.mend}")


def _coloured(finding: Finding) -> str:
    plain = _plain(finding)
    return f"{_GREEN if finding.ok else _RED}{plain[:4]}{_PLAIN}{plain[4:]}"
