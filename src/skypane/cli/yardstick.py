"""`skypane yardstick`: compare AqKSlack with a drop budget, and any other policy, to KSlack and the best fixed delay in hindsight."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.types import ConfigError

if TYPE_CHECKING:
    from skypane.progress.policy_yardstick import PolicyScore
    from skypane.progress.progress_policy import ProgressPolicy
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
    parser.add_argument(
        "--source", metavar="COLUMN", help="column of each row's source, for a file; all policies then know the sources"
    )
    parser.add_argument(
        "--policy",
        dest="policies",
        action="append",
        default=[],
        metavar="SECTION",
        help="a further policy, written as the section progress of a job file, such as "
        "'{policy: watermark, delay: 1 hour}'; repeat for each",
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
    """Print a table of the policies, and a line with the reason for the last punctuation."""
    from rich.console import Console  # noqa: PLC0415 - importing kernels takes a second, and --help should not wait
    from rich.table import Table  # noqa: PLC0415

    from skypane.progress import AqKSlack  # noqa: PLC0415
    from skypane.progress.policy_yardstick import measure  # noqa: PLC0415
    from skypane.windows import Windows  # noqa: PLC0415
    from skypane.wording import count, percent, span  # noqa: PLC0415

    others = _policies(arguments)
    event, source = _columns(arguments)
    if not len(event):
        raise ConfigError(f"STREAM {arguments.stream} has no rows")
    windows = Windows.of(arguments.window, arguments.slide)
    budget = AqKSlack(arguments.max_drop)
    result = measure(event, windows, arguments.batch, budget, source=source, others=list(others.values()))
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
    for name, score in zip(others, result.others, strict=True):
        add(name, score)
    console = Console(highlight=False)
    console.print(table)
    mean, p99 = result.ratios
    console.print(f"Against the best fixed delay: mean {mean:.2f}, p99 {p99:.2f}. At the end: {result.because}.")
    if not result.judged:
        console.print(
            "No verdict: the stream is too short for this budget, or its delays are larger than any policy could learn."
        )
    return 0


def _policies(arguments: Namespace) -> dict[str, ProgressPolicy]:
    """Return the further policies by short names: the values of their fields."""
    if not arguments.policies:
        return {}
    from skypane.jobs.document import data_of  # noqa: PLC0415 - the model of job files takes a while to import
    from skypane.jobs.reading import progress_policy  # noqa: PLC0415

    policies = [progress_policy(text, "--policy") for text in arguments.policies]
    names = [", ".join(map(str, data_of(text, "--policy").values())) for text in arguments.policies]
    return dict(zip(names, policies, strict=True))


def _columns(arguments: Namespace) -> tuple[IntArray, IntArray | None]:
    """Return event times (microseconds) and numbers of sources, if they are known, in the order of arrival."""
    path = Path(arguments.stream)
    if path.exists():
        from skypane.describing.columns import ColumnRoles, load  # noqa: PLC0415

        if arguments.time is None:
            raise ConfigError("--time is missing; name the column of the event time with --time COLUMN")
        stream = load(path, ColumnRoles(arguments.time, arguments.arrival, arguments.source))
        return stream.event, stream.source
    if arguments.source is not None:
        raise ConfigError("--source names a column of a file; a workload has none here")
    from skypane.workloads import workload  # noqa: PLC0415

    pairs = [text.partition("=") for text in arguments.parameters]
    made = workload(
        arguments.stream, **{name: value for name, _, value in pairs}, rows=arguments.rows, seed=arguments.seed
    )
    times: IntArray = made.table()["time"].cast("int64").to_numpy()
    return times, None
