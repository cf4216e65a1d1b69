"""`skypane generate`: a workload made to order, as a parquet file."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, Namespace, RawDescriptionHelpFormatter, _SubParsersAction
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.types import ConfigError

if TYPE_CHECKING:
    from skypane.workloads import Stream

_USAGE = "skypane generate WORKLOAD [--parameter value ...] (--rows N | --seconds S) [--seed N] --out FILE"


def add_parser(verbs: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the verb's parser."""
    parser = verbs.add_parser(
        "generate",
        usage=_USAGE,
        help="write a stream made to order (bursts, disorder, skew, many sources) to a parquet file",
    )
    parser.add_argument("workload", nargs="?", help="its name; without one, the names are listed")
    # What a workload takes is known only once its name is.
    parser.add_argument("parameters", nargs=REMAINDER, help="see skypane generate WORKLOAD --help")
    return parser


def run(arguments: Namespace) -> int:
    """Write the file; say what lies in it."""
    # Importing kernels takes a second; no --help should wait.
    from skypane.workloads import ARRIVALS, SCENES  # noqa: PLC0415

    if arguments.workload is None:
        print("\n".join([*ARRIVALS, *SCENES]))
        return 0
    if arguments.workload not in {*ARRIVALS, *SCENES}:
        from skypane.workloads import workload  # noqa: PLC0415

        workload(arguments.workload)  # says which names there are
    options, rest = _parser(arguments.workload).parse_known_args(arguments.parameters)
    _write(_made(arguments.workload, options, pairs(rest)), options.out)
    return 0


def _parser(name: str) -> ArgumentParser:
    """Return the parser of what follows a workload's name."""
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
    parser.add_argument("--rows", type=int, help="how many tuples, at most")
    parser.add_argument("--seconds", type=float, help="how many seconds of event time, at most")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another stream of the same kind (0)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the parquet file to write")
    return parser


def _composed(name: str) -> list[str]:
    """Return what the parameters of a workload are that is composed of parts."""
    from skypane.workloads import ARRIVALS, DELAYS, POINTS  # noqa: PLC0415
    from skypane.workloads.parameters import accepted  # noqa: PLC0415
    from skypane.workloads.registry import Named  # noqa: PLC0415

    def listed(named: Named) -> str:
        return ", ".join(name for name in accepted(named.config) if name not in named.settled) or "none"

    lines = [f"parameters of {name}: {listed(ARRIVALS[name])}", "", "of all workloads that are composed of parts:"]
    lines += ["  d, keys, keys_exponent, keys_move_every, keys_move_by, sources, source_exponent"]
    lines += [f"  presence_{parameter}" for parameter in ("join_within", "stay", "stall_every", "stall_for")]
    lines += [f"  points={points}: points_... {listed(named)}" for points, named in POINTS.items()]
    lines += [f"  delay={delay}: delay_... {listed(named)}" for delay, named in DELAYS.items()]
    return lines


def pairs(words: list[str]) -> dict[str, str]:
    """Return `--name value` and `--name=value` as a dictionary; dashes within a name are underscores."""
    parameters: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not name.startswith("--") or len(name) == len("--"):
            raise ConfigError(f"need parameters as --name value, got {word!r}")
        if not equals:
            next_word = next(rest, None)
            if next_word is None:
                raise ConfigError(f"parameter {name} lacks its value")
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
        raise ConfigError("say how many --rows, or how many --seconds")
    return workload(name, **parameters, **limits, seed=options.seed)


def _write(made: Stream, out: Path) -> None:
    """Write with a bar of progress, where there is a terminal and an end is known."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    from skypane.runtime.generating import write  # noqa: PLC0415
    from skypane.wording import count  # noqa: PLC0415

    console = Console(highlight=False, stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(out.name, total=made.rows)
        row_count = write(made, out, lambda done: bar.update(task, completed=done))
    print(f"{count(row_count)} rows, columns {', '.join(made.schema.names)}, in order of arrival: {out}")
