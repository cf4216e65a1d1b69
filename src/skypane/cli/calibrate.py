"""`skypane calibrate`: measure what exchanges, jobs and merges cost on this machine, for control policies."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from typing import TYPE_CHECKING

from skypane.cli.output import say
from skypane.types import ConfigError

if TYPE_CHECKING:
    from skypane.control.costs import Costs


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser(
        "calibrate", help="measure what exchanges, jobs and merges cost on this machine, for control policies to use"
    )
    parser.add_argument("--master", default="local[*]", help="Spark master to use if no session is running (local[*])")
    parser.add_argument("--rounds", type=int, default=5, help="how often each operation is measured (5)")
    parser.add_argument("--dry-run", action="store_true", help="measure and print, but store nothing")
    return parser


def run(arguments: Namespace) -> int:
    """Measure the costs, print them beside the previous ones, and store them unless this is a dry run."""
    if arguments.rounds < 1:
        raise ConfigError(f"need --rounds of at least 1, got {arguments.rounds}")
    # Spark and Numba take seconds to import, and the --help of other commands should not wait for them.
    from skypane.runtime import machine_costs  # noqa: PLC0415
    from skypane.runtime.spark.calibration import calibrate, machine_of  # noqa: PLC0415
    from skypane.runtime.spark.machine.session import session  # noqa: PLC0415

    spark = session(arguments.master, "skypane calibrate")
    machine = machine_of(spark)
    before, costs = machine_costs.read(machine), calibrate(spark, rounds=arguments.rounds)
    say("\n".join(lines(before, costs)))
    if not arguments.dry_run:
        say(f"stored in {machine_costs.write(machine, costs)}")
    return 0


def lines(before: Costs, costs: Costs) -> list[str]:
    """Return the lines of a table with one row per cost."""
    measured = costs.in_seconds()
    rows = [("cost", "before", "measured")]
    rows += [(name, f"{old:.3g} s", f"{measured[name]:.3g} s") for name, old in before.in_seconds().items()]
    return [f"{name:<18}{old:>12}{new:>12}" for name, old, new in rows]
