"""`skypane run JOB.yaml`: a job of the user's own, checked in full before anything starts."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.cli.trust import allow
from skypane.types import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from rich.console import Console

    import skypane as sp
    from skypane.jobs import JobFile


def add_parser(verbs: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the verb's parser."""
    parser = verbs.add_parser("run", help="run the job that a YAML file describes, in batch or stream")
    parser.add_argument("job", nargs="?", metavar="JOB", help="a job file, or the name of an example that is shipped")
    parser.add_argument(
        "--dry-run", action="store_true", help="check the job against Spark and its source, and say what it would do"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write a page with plots about a stream (HTML)")
    parser.add_argument("--seconds", type=float, help="stop a stream after so many seconds")
    parser.add_argument(
        "--drain",
        action="store_true",
        help="when the stream ends, or --seconds have passed, answer the open windows too, and decide on rows far ahead",
    )
    allow(parser)
    parser.add_argument("--examples", action="store_true", help="list the examples")
    parser.add_argument("--show", action="store_true", help="print the example JOB, to start from")
    return parser


def run(arguments: Namespace) -> int:
    """Check, then run; return 130 if interrupted."""
    # Spark, Numba and matplotlib take seconds to import, and no other verb's --help should wait for them.
    from rich.console import Console  # noqa: PLC0415

    from skypane.jobs import examples  # noqa: PLC0415

    if arguments.examples:
        print("\n".join(examples.names()))
        return 0
    if arguments.job is None:
        raise ConfigError("which job? give a file, or one of --examples")
    if arguments.show:
        print(examples.text(arguments.job), end="")
        return 0
    console = Console(highlight=False)
    job = examples.find(arguments.job, arguments.allow)
    if arguments.report is not None and job.mode == "batch":
        raise ConfigError("--report is for streams: a batch job leaves no measurements, only its answers")
    if arguments.drain and job.mode == "batch":
        raise ConfigError("--drain is for streams: a batch job answers all its windows")
    return _run(job, arguments, console)


def _run(job: JobFile, arguments: Namespace, console: Console) -> int:
    from pyspark.sql import DataFrame  # noqa: PLC0415

    from skypane.jobs import building, description  # noqa: PLC0415

    spark = building.session(job)
    ready = building.build(job, spark)
    if arguments.dry_run:
        for name, value in description.settings(job):
            console.print(f"{name:<12}{value}", soft_wrap=True, markup=False)
        console.print("the job is sound: nothing has been read or written")
        return 0
    return _batch(job, ready, console) if isinstance(ready, DataFrame) else _stream(job, ready, arguments, console)


def _batch(job: JobFile, ready: DataFrame, console: Console) -> int:
    from skypane.jobs import building  # noqa: PLC0415

    building.write(job, ready)
    if job.output.path is not None:
        console.print(f"answers   {job.output.path}   {job.output.format}", soft_wrap=True)
    return 0


def _stream(job: JobFile, ready: sp.Job, arguments: Namespace, console: Console) -> int:
    from skypane.jobs import running  # noqa: PLC0415
    from skypane.reporting import live, report  # noqa: PLC0415
    from skypane.reporting.view import View  # noqa: PLC0415

    log = running.run_log(job)
    resumed = log.begin({"job": job.summary()})
    view = View(job.name, read_before=sum(metrics.rows for metrics in log.batches()), resumed=resumed)
    ended = running.run_stream(
        job, ready, live.display(view, console), log, seconds=arguments.seconds, drain=arguments.drain
    )
    if log.batches():
        snapshot = running.snapshot(job, log)
        for text in report.lines(snapshot):
            console.print(text, soft_wrap=True)
        if arguments.report is not None:
            arguments.report.write_text(report.render(snapshot), encoding="utf-8")
            console.print(f"report    {arguments.report}", soft_wrap=True)
    if job.output.path is not None:
        console.print(f"answers   {job.output.path}   {job.output.format}", soft_wrap=True)
    if not ended:
        console.print("interrupted; the same command goes on from here")
    return 0 if ended else 130
