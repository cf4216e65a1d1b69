"""`skypane readmit JOB.yaml`: rows that were rejected, and can enter now, go back into their windows."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace, _SubParsersAction
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from skypane.cli.output import say
from skypane.cli.run import allow, connect, job_of
from skypane.naming import instead
from skypane.operators.entry.raw_text import KEPT
from skypane.types import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from skypane.runtime.spark.engine.readmission import Repair


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser(
        "readmit", help="put rejected rows of a streaming job, repaired, back into their windows"
    )
    parser.add_argument("job", metavar="JOB", help="job file; no other process may run the job")
    parser.add_argument(
        "--reason", required=True, help="the reason for which the rows were rejected, such as 'null price' or 'future'"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=_assignment,
        metavar="COLUMN=SQL",
        help='repair a column by an SQL expression, such as "price=coalesce(price, 0)"; repeat for each column',
    )
    parser.add_argument(
        "--reparse",
        action="store_true",
        help="parse rows again from their raw text, by the schema of the job; --set raw_text=... repairs it before",
    )
    allow(parser)
    connect(parser)
    return parser


def run(arguments: Namespace) -> int:
    """Readmit the rows, and print the batch."""
    import skypane as sp  # noqa: PLC0415  # Spark takes seconds to import
    from skypane.jobs import building  # noqa: PLC0415

    job = job_of(arguments)
    ready = building.build(job, building.session(job))
    if not isinstance(ready, sp.Job):
        raise ConfigError("readmit is only for streaming jobs; a batch job rejects no rows")
    parse = partial(building.reparsed, job) if arguments.reparse else None
    say(ready.readmit(arguments.reason, _repair(arguments.set, parse) if arguments.set or parse else None))
    return 0


def _repair(columns: list[tuple[str, str]], parse: Callable[[DataFrame], DataFrame] | None) -> Repair:
    from pyspark.sql.functions import expr  # noqa: PLC0415

    def set_in(rows: DataFrame, chosen: list[tuple[str, str]]) -> DataFrame:
        return rows.withColumns({name: expr(sql).cast(rows.schema[name].dataType) for name, sql in chosen})

    def repaired(rows: DataFrame) -> DataFrame:
        unknown = [name for name, _ in columns if name not in rows.columns]
        if unknown:
            raise ConfigError(f"--set: unknown column {unknown[0]!r}, {instead(unknown[0], rows.columns)}")
        if parse is None:
            return set_in(rows, columns)
        before = [one for one in columns if one[0] in KEPT.names]
        return set_in(parse(set_in(rows, before)), [one for one in columns if one not in before])

    return repaired


def _assignment(text: str) -> tuple[str, str]:
    name, equals, sql = text.partition("=")
    if not (name and equals and sql):
        raise ArgumentTypeError(f"need COLUMN=SQL, got {text!r}")
    return name, sql
