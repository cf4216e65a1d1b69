"""`skypane generate`: write a synthetic workload to a parquet file."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, Namespace, RawDescriptionHelpFormatter, _SubParsersAction
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.cli.output import say
from skypane.types import ConfigError

if TYPE_CHECKING:
    from skypane.workloads import Stream

_USAGE = "skypane generate WORKLOAD [--parameter value ...] (--rows N | --seconds S) [--seed N] --out FILE"


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser(
        "generate",
        usage=_USAGE,
        help="write a synthetic stream (bursts, disorder, skew, many sources) to a parquet file",
    )
    parser.add_argument("workload", nargs="?", help="name of the workload; without it, all names are listed")
    # The parameters depend on the workload, so a second parser reads them.
    parser.add_argument("parameters", nargs=REMAINDER, help="see skypane generate WORKLOAD --help")
    return parser


def run(arguments: Namespace) -> int:
    """Write the file and print its row count and columns."""
    # Importing kernels takes a second, and --help should not wait for it.
    from skypane.workloads import ARRIVALS, SCENES  # noqa: PLC0415

    if arguments.workload is None:
        say("\n".join([*ARRIVALS, *SCENES]))
        return 0
    if arguments.workload not in {*ARRIVALS, *SCENES}:
        from skypane.workloads import workload  # noqa: PLC0415

        workload(arguments.workload)  # raises ConfigError, which lists the names
    options, rest = _parser(arguments.workload).parse_known_args(arguments.parameters)
    _write(_made(arguments.workload, options, pairs(rest)), options.out)
    return 0


def _parser(name: str) -> ArgumentParser:
    """Return the parser of the options that follow a workload's name."""
    from skypane.workloads import SCENES  # noqa: PLC0415
    from skypane.workloads.parameters import accepted  # noqa: PLC0415

    lines = [f"parameters of {name}: {', '.join(accepted(SCENES[name]))}"] if name in SCENES else _composed(name)
    parser = ArgumentParser(
        prog=f"skypane generate {name}",
        usage=_USAGE.replace("WORKLOAD", name),
        description="\n".join(lines),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--rows", type=int, help="maximum number of tuples")
    parser.add_argument("--seconds", type=float, help="maximum length in seconds of event time")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random numbers (0)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the parquet file to write")
    return parser


def _composed(name: str) -> list[str]:
    """Return help lines on the parameters of a workload that is composed of parts."""
    from skypane.workloads import ARRIVALS, DELAYS, POINTS  # noqa: PLC0415
    from skypane.workloads.parameters import accepted  # noqa: PLC0415
    from skypane.workloads.registry import NamedWorkload  # noqa: PLC0415

    def listed(named: NamedWorkload) -> str:
        return ", ".join(name for name in accepted(named.config) if name not in named.settled) or "none"

    lines = [
        f"parameters of {name}: {listed(ARRIVALS[name])}",
        "",
        "parameters of all workloads that are composed of parts:",
    ]
    lines += ["  d, keys, keys_exponent, keys_move_every, keys_move_by, sources, source_exponent"]
    lines += [f"  presence_{parameter}" for parameter in ("join_within", "stay", "stall_every", "stall_for")]
    lines += [f"  points={points}: points_... {listed(named)}" for points, named in POINTS.items()]
    lines += [f"  delay={delay}: delay_... {listed(named)}" for delay, named in DELAYS.items()]
    return lines


def pairs(words: list[str]) -> dict[str, str]:
    """Return a dictionary of `--name value` and `--name=value` pairs; dashes within a name become underscores."""
    parameters: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not name.startswith("--") or len(name) == len("--"):
            raise ConfigError(f"parameters must be given as --name value, got {word!r}")
        if not equals:
            next_word = next(rest, None)
            if next_word is None:
                raise ConfigError(f"parameter {name} has no value; give it as {name} VALUE")
            value = next_word
        parameters[name.removeprefix("--").replace("-", "_")] = value
    return parameters


def _made(name: str, options: Namespace, parameters: dict[str, str]) -> Stream:
    from skypane.workloads import workload  # noqa: PLC0415

    limits = {}
    if options.rows is not None:
        limits["rows"] = options.rows
    if options.seconds is not None:
        limits["length"] = timedelta(seconds=options.seconds)
    if not limits:
        raise ConfigError("--rows and --seconds are both missing; give at least one of them")
    return workload(name, **parameters, **limits, seed=options.seed)


def _write(made: Stream, out: Path) -> None:
    """Write the stream to `out`, with a progress bar if stderr is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    from skypane.cli.command_console import CommandConsole  # noqa: PLC0415
    from skypane.runtime.generating import write  # noqa: PLC0415
    from skypane.wording import count  # noqa: PLC0415

    console = CommandConsole(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(out.name, total=made.rows)
        row_count = write(made, out, lambda done: bar.update(task, completed=done))
    say(f"{count(row_count)} rows, columns {', '.join(made.schema.names)}, in order of arrival, written to {out}")
