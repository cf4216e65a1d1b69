"""`skypane describe`: estimate the rate, burstiness, disorder and skew of a recorded stream."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.cli.output import say
from skypane.types import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skypane.describing.columns import RecordedStream
    from skypane.describing.statistics import Statistic
    from skypane.types import IntArray

_UNITS = ("s", "ms", "us", "ns")
_LAYOUTS = ("soccer", "sensorscope", "cabs", "meters", "rates")


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser("describe", help="estimate rate, burstiness, disorder and skew of a recorded stream")
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a parquet, csv or Arrow file, or a folder of parquet files"
    )
    parser.add_argument("--time", metavar="COLUMN", help="column of the event time")
    parser.add_argument("--unit", choices=_UNITS, help="unit of times that are stored as integers (us)")
    parser.add_argument(
        "--arrival", metavar="COLUMN", help="column of the arrival time; by default rows arrive in file order"
    )
    parser.add_argument("--source", metavar="COLUMN", help="column that names the source of a row")
    parser.add_argument("--key", metavar="COLUMN", help="column by which rows are grouped")
    parser.add_argument(
        "--criteria", metavar="TEXT", help='criteria by which rows are compared, such as "price MIN, rating MAX"'
    )
    parser.add_argument("--layout", choices=_LAYOUTS, help="read the files as text in the layout of this data set")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="also draw rate, delay and dispersion (.svg, .png, .pdf or .html)"
    )
    return parser


def run(arguments: Namespace) -> int:
    """Print a table of statistics."""
    # Matplotlib, Arrow and Numba take seconds to import, and the --help of other commands should not wait for them.
    from skypane.describing import pictures, statistics  # noqa: PLC0415

    if arguments.plot is not None:
        pictures.check_format(arguments.plot)
    if arguments.layout == "rates":
        series = _trace(arguments.files)
        _print(statistics.of_counts(series))
        if arguments.plot is not None and len(series):
            pictures.draw_counts(series, arguments.plot, arguments.files[0].name)
        return 0
    stream = _stream(arguments)
    _print(statistics.statistics(stream))
    if arguments.plot is not None and len(stream.event):
        pictures.draw(stream, arguments.plot, arguments.files[0].name)
    return 0


def _stream(arguments: Namespace) -> RecordedStream:
    from skypane.datasets import LAYOUTS, read_all  # noqa: PLC0415
    from skypane.describing.columns import ColumnRoles, load, stream_of  # noqa: PLC0415
    from skypane.preference import parse  # noqa: PLC0415

    criteria = None if arguments.criteria is None else parse(arguments.criteria)
    if arguments.layout is not None:
        reading = read_all(LAYOUTS[arguments.layout], arguments.files)
        _print_rejected(reading.reasons)
        named = (arguments.time or "time", arguments.arrival, arguments.source or "source", arguments.key)
        return stream_of(reading.table, ColumnRoles(*named, criteria, arguments.unit))
    if len(arguments.files) > 1:
        raise ConfigError(f"FILE: got {len(arguments.files)} files; give one file or one folder, or a --layout")
    if arguments.time is None:
        raise ConfigError("--time is missing; name the column of the event time with --time COLUMN")
    named = (arguments.time, arguments.arrival, arguments.source, arguments.key)
    return load(arguments.files[0], ColumnRoles(*named, criteria, arguments.unit))


def _trace(files: list[Path]) -> IntArray:
    from skypane.datasets import RATES, counts, read_all  # noqa: PLC0415

    if len(files) > 1:
        raise ConfigError(f"FILE: got {len(files)} rate traces; give one at a time")
    reading = read_all(RATES, files)
    _print_rejected(reading.reasons)
    return counts(reading.table)


def _print_rejected(reasons: dict[str, int]) -> None:
    for reason, lines in reasons.items():
        say(f"{lines} line{'s' if lines > 1 else ''} skipped: {reason}")


def _print(statistics: Iterable[Statistic]) -> None:
    from rich.table import Table  # noqa: PLC0415

    from skypane.cli.command_console import CommandConsole  # noqa: PLC0415

    table = Table(box=None, pad_edge=False)
    for head, align in (("", "left"), ("figure", "left"), ("value", "right"), ("", "left")):
        table.add_column(head, justify=align, overflow="fold")  # type: ignore[arg-type]
    topic = None
    for statistic in statistics:
        shown = "" if statistic.topic == topic else statistic.topic
        table.add_row(shown, statistic.name, statistic.value, statistic.meaning)
        topic = statistic.topic
    CommandConsole().print(table)
