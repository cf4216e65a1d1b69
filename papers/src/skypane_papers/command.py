"""`skypane reproduce`: measure the papers' figures again and compare them with the papers' claims."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path

from skypane.types import ConfigError


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser(
        "reproduce",
        help="measure a figure of a paper again, write its table, data and plots, and check the paper's claims",
        description="Each figure takes one to several minutes; the name `all` stands for every figure.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="figure such as paper1-figure-8; see --list")
    parser.add_argument("--list", action="store_true", help="list all figures")
    parser.add_argument(
        "--output", type=Path, default=Path("figures"), metavar="FOLDER", help="folder for all files (./figures)"
    )
    parser.add_argument("--format", default="csv", metavar="csv|parquet", help="format of the rows (csv)")
    parser.add_argument(
        "--quick", action="store_true", help="run for seconds instead of a minute, which is too short for the claims"
    )
    parser.add_argument(
        "--traces",
        type=Path,
        metavar="FOLDER",
        help="folder of the published arrivals_*.txt of paper 5, used instead of generated streams",
    )
    return parser


def run(arguments: Namespace) -> int:
    """Print each figure's table and verdicts; return 0 even if claims do not hold."""
    from skypane_papers import page, registry  # noqa: PLC0415 - imports kernels and pandas
    from skypane_papers.figure import measure  # noqa: PLC0415

    if arguments.list:
        for name in registry.names():
            print(f"{name:24} {registry.figure(name).title}")
        return 0
    if arguments.traces is not None and not any(arguments.traces.glob("arrivals_*.txt")):
        raise ConfigError(f"--traces: {arguments.traces} has no files arrivals_*.txt")
    if not arguments.names:
        raise ConfigError("NAME is missing; give a figure or `all` (`skypane reproduce --list` lists them)")
    for name in registry.names() if arguments.names == ["all"] else arguments.names:
        measured = measure(name, registry.figure(name), quick=arguments.quick, traces=arguments.traces)
        files = page.write(measured, arguments.output, arguments.format)
        print(page.text(measured))
        print(f"\nfiles written: {', '.join(map(str, files))}\n")
    return 0
