"""`skypane run JOB.yaml`: check a job file completely, then run it."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from skypane.cli import log_format
from skypane.cli.output import say
from skypane.types import ConfigError, SkypaneError

if TYPE_CHECKING:
    import skypane as sp
    from skypane.cli.command_console import CommandConsole
    from skypane.jobs import JobFile
    from skypane.reporting.snapshot import Snapshot


class Watch(Protocol):
    """Exposes the metrics of a query under a name from now on."""

    def __call__(self, handle: sp.StreamHandle, *, name: str | None = None) -> None: ...


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser("run", help="run the batch or streaming job that a YAML file describes")
    parser.add_argument(
        "job", nargs="?", metavar="JOB", help="job file, or the name of an example that comes with skypane"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="check the job against Spark, its source and its checkpoint, and print what it would do",
    )
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write an HTML report with plots of a streaming job"
    )
    parser.add_argument(
        "--metrics",
        metavar="ADDRESS",
        help="serve the metrics of a streaming job to Prometheus at host:port; :9464 is the port on all addresses of this "
        "machine, 127.0.0.1:9464 on this machine only (needs the extra `prometheus`)",
    )
    parser.add_argument(
        "--opentelemetry",
        action="store_true",
        help="give the metrics of a streaming job to the OpenTelemetry of this process, which opentelemetry-instrument sets up "
        "(needs the extra `opentelemetry`)",
    )
    parser.add_argument("--seconds", type=float, help="stop a stream after this many seconds")
    parser.add_argument(
        "--drain",
        action="store_true",
        help="at the end of the stream, or after --seconds, answer the open windows and decide on held rows; refused while "
        "rows are known to wait",
    )
    parser.add_argument(
        "--now", action="store_true", help="drain also while rows wait to be read, which are late afterwards"
    )
    parser.add_argument(
        "--from",
        dest="begin",
        choices=["offsets"],
        help="let another query begin where the query of the checkpoint has stopped reading; that one still answers the "
        "windows that it has begun",
    )
    log_format.add_option(parser)
    allow(parser)
    connect(parser)
    parser.add_argument("--examples", action="store_true", help="list the names of the examples")
    parser.add_argument("--show", action="store_true", help="print the job file of the example JOB")
    parser.add_argument(
        "--schema",
        action="store_true",
        help="print the JSON Schema of job files, with which editors complete and check them",
    )
    return parser


def allow(parser: ArgumentParser) -> None:
    """Add the option --allow, which lists the modules whose code a job file may run."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this Python module and let the job file use its functions; repeat for each module",
    )


def connect(parser: ArgumentParser, does: str = "run the job") -> None:
    """Add the option --remote, by which a job runs on a server of Spark Connect; `does` is what the command does there."""
    parser.add_argument(
        "--remote",
        metavar="ADDRESS",
        help=f"{does} on the Spark Connect server at this address, such as sc://host:15002, whatever the section "
        "`spark` of the job says; by default the environment variable SPARK_REMOTE",
    )


def job_of(arguments: Namespace) -> JobFile:
    """Return the job of the arguments JOB, --allow and --remote."""
    from skypane.jobs import examples  # noqa: PLC0415
    from skypane.runtime.spark.machine.server_address import REMOTE  # noqa: PLC0415

    job = examples.find(arguments.job, arguments.allow)
    remote = arguments.remote or (None if job.spark.remote else os.environ.get(REMOTE))
    return job if remote is None else job.at(remote)


def run(arguments: Namespace) -> int:
    """Check the job, then run it; return 130 if interrupted."""
    # Spark, Numba and matplotlib take seconds to import, and the --help of other commands should not wait for them.
    from skypane.cli.command_console import CommandConsole  # noqa: PLC0415
    from skypane.jobs import examples  # noqa: PLC0415

    if arguments.examples:
        say("\n".join(examples.names()))
        return 0
    if arguments.schema:
        from skypane.jobs.schema import job_schema  # noqa: PLC0415

        say(json.dumps(job_schema(), indent=2))
        return 0
    if arguments.job is None:
        raise ConfigError("JOB is missing; give a job file or the name of an example (--examples lists them)")
    if arguments.show:
        say(examples.text(arguments.job), end="")
        return 0
    log_format.begin(arguments.log)
    console = CommandConsole()
    job = job_of(arguments)
    _check_options(job, arguments)
    if arguments.dry_run:
        return _run(job, arguments, console)
    with ExitStack() as until_end:
        # Before Spark starts, so that a port that is taken is reported at once, and a provider that is missing, too.
        watches = list(_watches(arguments, console, until_end))
        return _run(job, arguments, console, lambda handle: _call_all(watches, handle, job.name))


def _check_options(job: JobFile, arguments: Namespace) -> None:
    """Raise ConfigError for an option that the job cannot have."""
    no_metrics = "a batch job records no metrics"
    for option, given, because in (
        ("--report", arguments.report is not None, no_metrics),
        ("--drain", arguments.drain, "a batch job always answers all windows"),
        ("--metrics", arguments.metrics is not None, no_metrics),
        ("--opentelemetry", arguments.opentelemetry, no_metrics),
    ):
        if given and job.mode == "batch":
            raise ConfigError(f"{option} is only for streaming jobs; {because}")
    if arguments.now and not arguments.drain:
        raise ConfigError("--now says how to drain: give --drain, too")
    if arguments.report is not None and not arguments.report.parent.is_dir():
        raise ConfigError(f"--report: there is no folder {arguments.report.parent}; create it, or name another file")


def _watches(arguments: Namespace, console: CommandConsole, until_end: ExitStack) -> Iterator[Watch]:
    """Yield what exposes the metrics of a query, from before it starts."""
    if arguments.metrics is not None:
        from skypane.prometheus.endpoint import MetricsServer  # noqa: PLC0415

        server = until_end.enter_context(MetricsServer(arguments.metrics))
        console.print(f"metrics   {server.url}", soft_wrap=True)
        yield server.watch
    if arguments.opentelemetry:
        from skypane.opentelemetry.registered_metrics import register_metrics  # noqa: PLC0415

        yield register_metrics().watch  # not closed: exporters read the last values when Python ends


def _call_all(watches: list[Watch], handle: sp.StreamHandle, name: str) -> None:
    for watch in watches:
        watch(handle, name=name)


def _run(
    job: JobFile,
    arguments: Namespace,
    console: CommandConsole,
    started: Callable[[sp.StreamHandle], None] = lambda _: None,
) -> int:
    from skypane.jobs import building, description  # noqa: PLC0415
    from skypane.reporting import live  # noqa: PLC0415

    with live.starting(console) as step:
        step("starting Spark" if job.spark.remote is None else "connecting to the Spark Connect server")
        spark = building.session(job)
        step("checking the job against Spark and its source")
        ready = building.build(job, spark)
    if arguments.dry_run:
        settings = description.settings(job)
        width = max(12, *(len(name) + 2 for name, _ in settings))
        for name, value in settings:
            console.print(f"{name:<{width}}{value}", soft_wrap=True)
        if isinstance(ready, building.BatchJob) or _show_changes(ready, _begin(arguments), console):
            console.print("the job is valid; nothing was read or written")
            return 0
        return 1
    if isinstance(ready, building.BatchJob):
        ready.write()
        _print_outputs(job, console)
        return 0
    return _stream(job, ready, arguments, console, started)


def _begin(arguments: Namespace) -> Literal["at_offsets"] | None:
    return None if arguments.begin is None else "at_offsets"


def _show_changes(ready: sp.Job, begin: Literal["at_offsets"] | None, console: CommandConsole) -> bool:
    """Print how the job differs from the query of its checkpoint; return False if it could not continue from it."""
    change = ready.changes(begin)
    for effect, difference in change.lines:
        console.print(f"{effect:<12}{difference}", soft_wrap=True)
    if change.refused:
        console.print("the job cannot continue from its checkpoint: restore the query, or use another checkpoint")
    return not change.refused


def _print_outputs(job: JobFile, console: CommandConsole) -> None:
    for one in job.each_query:
        if one.output.path is not None:
            console.print(f"answers   {one.output.path}   {one.output.format}", soft_wrap=True)


def _stream(
    job: JobFile,
    ready: sp.Job,
    arguments: Namespace,
    console: CommandConsole,
    started: Callable[[sp.StreamHandle], None],
) -> int:
    from skypane.jobs import running  # noqa: PLC0415
    from skypane.reporting import live, report  # noqa: PLC0415
    from skypane.reporting.query_view import QueryView, rows_so_far  # noqa: PLC0415

    log = running.run_log(job)
    resumed = running.begin_log(job, log)
    view = QueryView(job.name, read_before=rows_so_far(log.batches()), resumed=resumed)
    try:
        ended = running.run_stream(
            job,
            ready,
            live.display(view, console),
            log,
            seconds=arguments.seconds,
            drain="now" if arguments.now else arguments.drain,
            begin=_begin(arguments),
            started=started,
        )
    except (SkypaneError, BrokenPipeError) as error:
        if arguments.report is not None:
            _write_report(running.snapshot(job, log, f"The run has ended with an error: {error}."), arguments, console)
        raise
    snapshot = running.snapshot(job, log)
    for text in report.lines(snapshot):
        console.print(text, soft_wrap=True)
    _write_report(snapshot, arguments, console)
    _print_outputs(job, console)
    if not ended:
        console.print("interrupted; run the same command to resume")
    return 0 if ended else 130


def _write_report(snapshot: Snapshot, arguments: Namespace, console: CommandConsole) -> None:
    from skypane.reporting import report  # noqa: PLC0415

    if arguments.report is not None:
        arguments.report.write_text(report.render(snapshot), encoding="utf-8")
        console.print(f"report    {arguments.report}", soft_wrap=True)
