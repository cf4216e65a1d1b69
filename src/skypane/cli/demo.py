"""`skypane demo`: replay weeks of flights as a stream, show the answers live, and write a report at the end."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser(
        "demo", help="replay four weeks of flights as a stream: the best departures of the last 24 hours, every hour"
    )
    parser.add_argument("--out", type=Path, default=Path("skypane-demo"), help="folder for all output (./skypane-demo)")
    parser.add_argument(
        "--speedup",
        type=float,
        help="factor by which the replay is faster than real time (40000: four weeks in a minute)",
    )
    parser.add_argument("--days", type=int, help="replay only the first DAYS days (28; 365 for the whole year)")
    parser.add_argument("--rows", type=int, help="replay only the first ROWS flights")
    parser.add_argument(
        "--max-drop", type=float, default=0.01, help="share of flights that may be dropped as late (0.01)"
    )
    parser.add_argument("--master", default="local[*]", help="Spark master to use if no session is running (local[*])")
    parser.add_argument(
        "--fresh", action="store_true", help="remove the output of an earlier demo in --out and start over"
    )
    return parser


def run(arguments: Namespace) -> int:
    """Replay the flights, show progress and write the report; return 130 if interrupted."""
    # Spark, Numba and matplotlib take seconds to import, and the --help of other commands should not wait for them.
    from skypane import demo, wording  # noqa: PLC0415
    from skypane.cli.command_console import CommandConsole  # noqa: PLC0415
    from skypane.reporting import live, report  # noqa: PLC0415

    console = CommandConsole()
    speedup = demo.SPEEDUP if arguments.speedup is None else arguments.speedup
    settings = demo.Demo(
        arguments.out,
        speedup,
        demo.DAYS if arguments.days is None else arguments.days,
        arguments.rows,
        arguments.max_drop,
    )
    if arguments.fresh:
        settings.clear()
    view = demo.prepare(settings)
    at = f", resuming at row {wording.count(view.read_before)}" if view.resumed else ""
    console.print(f"{wording.count(view.total_rows or 0)} flights, {wording.count(round(speedup))} times faster{at}")
    spark = demo.session(arguments.master)
    ended = demo.run(settings, spark, view, live.display(view, console, demo.COLUMNS))
    if settings.log.batches():
        snapshot = demo.snapshot(settings)
        settings.report.write_text(report.render(snapshot), encoding="utf-8")
        for text in report.lines(snapshot):
            console.print(text, soft_wrap=True)
        demo.print_locations(settings, lambda text: console.print(text, soft_wrap=True))
    if not ended:
        console.print("interrupted; run the same command to resume, or add --fresh to start over")
    return 0 if ended else 130
