"""`skypane yardstick`: compare AqKSlack with a drop budget, and any other policy, to KSlack and the best fixed delay in hindsight."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.types import ConfigError

if TYPE_CHECKING:
    from skypane.describing.columns import RecordedStream
    from skypane.progress.policy_yardstick import PolicyScore
    from skypane.progress.progress_policy import ProgressPolicy


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
    from rich.table import Table  # noqa: PLC0415

    from skypane.cli.command_console import CommandConsole  # noqa: PLC0415 - importing kernels takes a second, and --help should not wait
    from skypane.progress import AqKSlack  # noqa: PLC0415
    from skypane.progress.policy_yardstick import measure  # noqa: PLC0415
    from skypane.windows import Windows  # noqa: PLC0415
    from skypane.wording import count, percent, span  # noqa: PLC0415

    others = _policies(arguments)
    stream = _stream(arguments)
    if not len(stream.event):
        raise ConfigError(f"STREAM {arguments.stream} has no rows")
    windows = Windows.of(arguments.window, arguments.slide)
    result = measure(
        stream.event,
        windows,
        arguments.batch,
        AqKSlack(arguments.max_drop),
        source=stream.source,
        source_names=stream.source_names,
        others=[policy for _, policy in others],
    )
    table = Table(box=None, pad_edge=False)
    for head in ("", "dropped", "mean", "p99", "silence", "first answer", "worst excess"):
        table.add_column(head, justify="right" if head else "left")

    def add(name: str, score: PolicyScore) -> None:
        excess = f"{count(round(score.excess))} rows"
        latency = (span(round(time) if score.answered else None) for time in (score.mean, score.p99))
        table.add_row(name, percent(score.drop), *latency, span(score.silence), span(score.first), excess)

    add(f"AqKSlack({arguments.max_drop})", result.tested)
    add(f"best fixed delay, {span(result.delay)}", result.fixed)
    add("KSlack()", result.kslack)
    for (name, _), score in zip(others, result.others, strict=True):
        add(name, score)
    console = CommandConsole()
    console.print(table)
    mean, p99 = result.ratios
    console.print(f"Against the best fixed delay: mean {mean:.2f}, p99 {p99:.2f}. At the end: {result.because}.")
    if not result.judged:
        console.print(
            "No verdict: the stream is too short for this budget, or its delays are larger than any policy could learn."
        )
    return 0


def _policies(arguments: Namespace) -> list[tuple[str, ProgressPolicy]]:
    """Return the further policies, each with a short name: the values of its fields, or its text if others have the same values."""
    if not arguments.policies:
        return []
    from skypane.jobs.document import data_of  # noqa: PLC0415 - the model of job files takes a while to import
    from skypane.jobs.reading import progress_policy  # noqa: PLC0415

    texts = arguments.policies
    policies = [progress_policy(text, "--policy") for text in texts]
    names = [", ".join(map(str, data_of(text, "--policy").values())) for text in texts]
    shown = [name if names.count(name) == 1 else text for name, text in zip(names, texts, strict=True)]
    return list(zip(shown, policies, strict=True))


def _stream(arguments: Namespace) -> RecordedStream:
    """Return the stream of the file, or of the workload, in the order of arrival."""
    from skypane.describing.columns import ColumnRoles, RecordedStream, load  # noqa: PLC0415

    path = Path(arguments.stream)
    if path.exists():
        if arguments.time is None:
            raise ConfigError("--time is missing; name the column of the event time with --time COLUMN")
        return load(path, ColumnRoles(arguments.time, arguments.arrival, arguments.source))
    if arguments.source is not None:
        raise ConfigError("--source names a column of a file; a workload has none here")
    from skypane.workloads import workload  # noqa: PLC0415

    pairs = [text.partition("=") for text in arguments.parameters]
    made = workload(
        arguments.stream, **{name: value for name, _, value in pairs}, rows=arguments.rows, seed=arguments.seed
    )
    return RecordedStream(made.table()["time"].cast("int64").to_numpy())
