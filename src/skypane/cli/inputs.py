"""`skypane inputs JOB.yaml`: show the inputs of a running or stopped job, as recorded in its checkpoint."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.cli.output import say
from skypane.cli.run import allow
from skypane.types import ConfigError
from skypane.wording import UNKNOWN, count

if TYPE_CHECKING:
    from skypane.jobs import JobFile
    from skypane.metrics import InputMetrics

COLUMNS = ("input", "reader", "rows/s", "forecast", "lag", "offset", "state")


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser("inputs", help="show the inputs of a job with reader, rate, lag and offset of each")
    parser.add_argument("job", metavar="JOB", help="job file whose source is skypane-many")
    allow(parser)
    return parser


def run(arguments: Namespace) -> int:
    """Print one line per input; change nothing, whether the job runs or not."""
    from rich.table import Table  # noqa: PLC0415

    from skypane.cli.command_console import CommandConsole  # noqa: PLC0415 - as in run
    from skypane.jobs import examples  # noqa: PLC0415

    job = examples.find(arguments.job, arguments.allow)
    table = Table(*COLUMNS, box=None, header_style="dim", padding=(0, 2, 0, 0))
    rows = _status(job)
    for one in rows:
        table.add_row(*cells(one))
    console = CommandConsole()
    if console.is_terminal:
        console.print(table)
    else:
        say("\n".join("\t".join(row) for row in (COLUMNS, *map(cells, rows))))
    return 0


def cells(one: InputMetrics) -> Sequence[str]:
    """Return the table cells of one input."""
    rates = (UNKNOWN if rate is None else count(round(rate)) for rate in (one.rate, one.forecast))
    reader = UNKNOWN if one.reader is None else str(one.reader)
    return (one.input, reader, *rates, count(one.lag), count(one.offset), one.state)


def _status(job: JobFile) -> list[InputMetrics]:
    from skypane.runtime.spark.sources.many.input_lag import lag_of_inputs  # noqa: PLC0415
    from skypane.runtime.spark.sources.many.option_names import FORMAT  # noqa: PLC0415 - imports all of PySpark

    listing = job.source.options.get("inputs") if job.source.inputs is None else job.source.inputs.text
    if job.source.format != FORMAT or not isinstance(listing, str):
        raise ConfigError(
            f"source.format of {job.name} must be {FORMAT}, got {job.source.format}; only such a job has inputs"
        )
    if job.checkpoint is None:
        raise ConfigError(f"checkpoint is missing in {job.name}; without one the state of its inputs is not recorded")
    return lag_of_inputs(listing, Path(job.checkpoint))
