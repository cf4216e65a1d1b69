"""`skypane inputs JOB.yaml`: the many inputs of a job that runs or has stopped, from its checkpoint."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.cli.trust import allow
from skypane.types import ConfigError
from skypane.wording import UNKNOWN, count

if TYPE_CHECKING:
    from skypane.jobs import JobFile
    from skypane.metrics import InputSeen

COLUMNS = ("input", "reader", "rows/s", "forecast", "lag", "offset", "state")


def add_parser(verbs: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the verb's parser."""
    parser = verbs.add_parser("inputs", help="show the inputs of a job: who reads them, how fast, how far behind")
    parser.add_argument("job", metavar="JOB", help="a job file whose source is skypane-many")
    allow(parser)
    return parser


def run(arguments: Namespace) -> int:
    """Print a line for each input; nothing is changed, whether the job runs or not."""
    from rich.console import Console  # noqa: PLC0415 - as in run
    from rich.table import Table  # noqa: PLC0415

    from skypane.jobs import examples  # noqa: PLC0415

    job = examples.find(arguments.job, arguments.allow)
    table = Table(*COLUMNS, box=None, header_style="dim", padding=(0, 2, 0, 0))
    rows = _standing(job)
    for one in rows:
        table.add_row(*cells(one))
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(table)
    else:
        print("\n".join("\t".join(row) for row in (COLUMNS, *map(cells, rows))))
    return 0


def cells(one: InputSeen) -> Sequence[str]:
    """Return what is printed of an input."""
    rates = (UNKNOWN if rate is None else count(round(rate)) for rate in (one.rate, one.forecast))
    reader = UNKNOWN if one.reader is None else str(one.reader)
    return (one.input, reader, *rates, count(one.lag), count(one.offset), one.state)


def _standing(job: JobFile) -> list[InputSeen]:
    from skypane.runtime.spark.sources.many.door import FORMAT  # noqa: PLC0415 - imports all of PySpark
    from skypane.runtime.spark.sources.many.standing import standing  # noqa: PLC0415

    listing = job.source.options.get("inputs")
    if job.source.format != FORMAT or not isinstance(listing, str):
        raise ConfigError(f"{job.name} has no many inputs: its source is {job.source.format}, and must be {FORMAT}")
    if job.checkpoint is None:
        raise ConfigError(f"{job.name} has no checkpoint, so nothing is known of it here")
    return standing(listing, Path(job.checkpoint))
