"""`skypane describe`: how fast, how bursty, how late, how skewed a recorded stream is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.types import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skypane.describing.columns import RecordedStream
    from skypane.describing.statistics import Statistic
    from skypane.types import IntArray

_UNITS = ("s", "ms", "us", "ns")
_LAYOUTS = ("soccer", "sensorscope", "cabs", "meters", "rates")


def add_parser(verbs: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the verb's parser."""
    parser = verbs.add_parser("describe", help="estimate rate, burstiness, disorder and skew of a recorded stream")
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a parquet, csv or Arrow file, or a folder of parquet files"
    )
    parser.add_argument("--time", metavar="COLUMN", help="event time")
    parser.add_argument("--unit", choices=_UNITS, help="what times count that are whole numbers (us)")
    parser.add_argument("--arrival", metavar="COLUMN", help="time of arrival; without it, rows are in their order")
    parser.add_argument("--source", metavar="COLUMN", help="which source sent a row")
    parser.add_argument("--key", metavar="COLUMN", help="what rows are grouped by")
    parser.add_argument("--criteria", metavar="TEXT", help='what rows are compared on, as "price MIN, rating MAX"')
    parser.add_argument("--layout", choices=_LAYOUTS, help="the files are text in the layout of this data set")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="also draw rate, delay and dispersion (.svg, .png, .pdf or .html)"
    )
    return parser


def run(arguments: Namespace) -> int:
    """Print a table of statistics."""
    # Matplotlib, Arrow and Numba take seconds to import, and no other verb's --help should wait for them.
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
    from skypane.describing.columns import Roles, load, stream_of  # noqa: PLC0415
    from skypane.preference import parse  # noqa: PLC0415

    criteria = None if arguments.criteria is None else parse(arguments.criteria)
    if arguments.layout is not None:
        reading = read_all(LAYOUTS[arguments.layout], arguments.files)
        _tell_rejected(reading.reasons)
        named = (arguments.time or "time", arguments.arrival, arguments.source or "source", arguments.key)
        return stream_of(reading.table, Roles(*named, criteria, arguments.unit))
    if len(arguments.files) > 1:
        raise ConfigError(f"need one file, or a folder, got {len(arguments.files)}; only a --layout has many files")
    if arguments.time is None:
        raise ConfigError("which column is the event time? give --time COLUMN")
    named = (arguments.time, arguments.arrival, arguments.source, arguments.key)
    return load(arguments.files[0], Roles(*named, criteria, arguments.unit))


def _trace(files: list[Path]) -> IntArray:
    from skypane.datasets import RATES, counts, read_all  # noqa: PLC0415

    if len(files) > 1:
        raise ConfigError(f"need one rate trace at a time, got {len(files)}")
    reading = read_all(RATES, files)
    _tell_rejected(reading.reasons)
    return counts(reading.table)


def _tell_rejected(reasons: dict[str, int]) -> None:
    for reason, lines in reasons.items():
        print(f"{lines} line{'s' if lines > 1 else ''} left out: {reason}")


def _print(statistics: Iterable[Statistic]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False)
    for head, align in (("", "left"), ("figure", "left"), ("value", "right"), ("", "left")):
        table.add_column(head, justify=align, overflow="fold")  # type: ignore[arg-type]
    topic = None
    for statistic in statistics:
        shown = "" if statistic.topic == topic else statistic.topic
        table.add_row(shown, statistic.name, statistic.value, statistic.meaning)
        topic = statistic.topic
    Console(highlight=False).print(table)
