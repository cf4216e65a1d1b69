"""`skypane reproduce`: the papers' figures, measured again, with what the paper claims beside it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path

from skypane.types import ConfigError


def add_parser(verbs: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the verb's parser."""
    parser = verbs.add_parser(
        "reproduce",
        help="measure a figure of a paper again: table, data, plot, and whether its claims hold here",
        description="Each takes about a minute; `all` measures every figure.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as paper1-figure-8; see --list")
    parser.add_argument("--list", action="store_true", help="name all figures")
    parser.add_argument("--output", type=Path, default=Path("figures"), metavar="FOLDER", help="for files (./figures)")
    parser.add_argument("--format", default="csv", metavar="csv|parquet", help="of the rows (csv)")
    parser.add_argument("--quick", action="store_true", help="seconds instead of a minute: too short for the claims")
    parser.add_argument(
        "--traces",
        type=Path,
        metavar="FOLDER",
        help="published arrivals_*.txt of paper 5, in place of generated streams",
    )
    return parser


def run(arguments: Namespace) -> int:
    """Print each figure's table and verdicts; the exit code tells of failures, not of claims that do not hold."""
    from skypane.reproduce import page, registry  # noqa: PLC0415 - imports kernels and pandas
    from skypane.reproduce.figure import measure  # noqa: PLC0415

    if arguments.list:
        for name in registry.names():
            print(f"{name:24} {registry.figure(name).title}")
        return 0
    if arguments.traces is not None and not any(arguments.traces.glob("arrivals_*.txt")):
        raise ConfigError(f"--traces: there are no arrivals_*.txt in {arguments.traces}")
    if not arguments.names:
        raise ConfigError("which figure? name one, or `all`; `skypane reproduce --list` names them")
    for name in registry.names() if arguments.names == ["all"] else arguments.names:
        measured = measure(name, registry.figure(name), quick=arguments.quick, traces=arguments.traces)
        files = page.write(measured, arguments.output, arguments.format)
        print(page.text(measured))
        print(f"\nwritten: {', '.join(map(str, files))}\n")
    return 0
