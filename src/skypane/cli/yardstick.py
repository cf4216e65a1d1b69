"""`skypane yardstick`: compare AqKSlack with a drop budget to KSlack and to the best fixed delay in hindsight."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.types import ConfigError

if TYPE_CHECKING:
    from skypane.progress.policy_yardstick import PolicyScore
    from skypane.types import IntArray


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser(
        "yardstick", help="compare AqKSlack with KSlack and the best fixed delay, on a recorded or synthetic stream"
    )
    parser.add_argument("stream", metavar="STREAM", help="a parquet, csv or Arrow file, or the name of a workload")
    parser.add_argument("--time", metavar="COLUMN", help="column of the event time, for a file")
    parser.add_argument(
        "--arrival", metavar="COLUMN", help="column of the arrival time; by default rows arrive in file order"
    )
    parser.add_argument("--window", default="1 minute", metavar="LENGTH", help="length of a window (1 minute)")
    parser.add_argument(
        "--slide", metavar="LENGTH", help="distance between the starts of windows (the window's length)"
    )
    parser.add_argument("--batch", type=int, default=200, metavar="ROWS", help="rows of a micro-batch (200)")
    parser.add_argument("--max-drop", type=float, default=0.01, metavar="SHARE", help="drop budget (0.01)")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of a workload (100000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of a workload (0)")
    parser.add_argument(
        "--with",
        dest="parameters",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="parameter of a workload; repeat for each",
    )
    return parser


def run(arguments: Namespace) -> int:
    """Print a table of the three policies, and a line with the reason for the last punctuation."""
    from rich.console import Console  # noqa: PLC0415 - importing kernels takes a second, and --help should not wait
    from rich.table import Table  # noqa: PLC0415

    from skypane.progress import AqKSlack  # noqa: PLC0415
    from skypane.progress.policy_yardstick import measure  # noqa: PLC0415
    from skypane.windows import Windows  # noqa: PLC0415
    from skypane.wording import count, percent, span  # noqa: PLC0415

    event = _event(arguments)
    if not len(event):
        raise ConfigError(f"STREAM {arguments.stream} has no rows")
    windows = Windows.of(arguments.window, arguments.slide)
    result = measure(event, windows, arguments.batch, AqKSlack(arguments.max_drop))
    table = Table(box=None, pad_edge=False)
    for head in ("", "dropped", "mean", "p99", "silence", "first answer", "worst excess"):
        table.add_column(head, justify="right" if head else "left")

    def add(name: str, score: PolicyScore) -> None:
        excess = f"{count(round(score.excess))} rows"
        spans = (span(round(score.mean)), span(round(score.p99)), span(score.silence), span(score.first))
        table.add_row(name, percent(score.drop), *spans, excess)

    add(f"AqKSlack({arguments.max_drop})", result.tested)
    add(f"best fixed delay, {span(result.delay)}", result.fixed)
    add("KSlack()", result.kslack)
    console = Console(highlight=False)
    console.print(table)
    mean, p99 = result.ratios
    console.print(f"Against the best fixed delay: mean {mean:.2f}, p99 {p99:.2f}. At the end: {result.because}.")
    if not result.judged:
        console.print(
            "No verdict: the stream is too short for this budget, or its delays are larger than any policy could learn."
        )
    return 0


def _event(arguments: Namespace) -> IntArray:
    """Return event times in the order of arrival (microseconds)."""
    path = Path(arguments.stream)
    if path.exists():
        from skypane.describing.columns import ColumnRoles, load  # noqa: PLC0415

        if arguments.time is None:
            raise ConfigError("--time is missing; name the column of the event time with --time COLUMN")
        return load(path, ColumnRoles(arguments.time, arguments.arrival)).event
    from skypane.workloads import workload  # noqa: PLC0415

    pairs = [text.partition("=") for text in arguments.parameters]
    made = workload(
        arguments.stream, **{name: value for name, _, value in pairs}, rows=arguments.rows, seed=arguments.seed
    )
    times: IntArray = made.table()["time"].cast("int64").to_numpy()
    return times
