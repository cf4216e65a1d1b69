"""`skypane compact FOLDER COPY`: copy a folder of answers with its files joined to fewer, larger ones."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace, _SubParsersAction
from typing import Final

from skypane.cli.output import say
from skypane.wording import count, counted

_MIB: Final = 1 << 20


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser("compact", help="copy a folder of answers with its files joined to larger ones")
    parser.add_argument("folder", metavar="FOLDER", help="folder or URI that a query writes; it is only read")
    parser.add_argument("copy", metavar="COPY", help="folder or URI of the copy, which does not exist yet")
    parser.add_argument(
        "--mib", type=_mib, default=128, metavar="MIB", help="size to which files are joined, in MiB (default 128)"
    )
    return parser


def run(arguments: Namespace) -> int:
    """Make the copy, and print what it was made of."""
    from skypane.runtime.spark.document_store import DocumentStore  # noqa: PLC0415 - imports PySpark
    from skypane.runtime.spark.sinks.compacting import compact  # noqa: PLC0415

    source, copy = (
        DocumentStore.at(where, name) for name, where in (("FOLDER", arguments.folder), ("COPY", arguments.copy))
    )
    done = compact(source, copy, arguments.mib * _MIB)
    say(f"{counted(done.files, 'files')} with {counted(done.rows, 'rows')} became {count(done.copied)} in {copy.root}")
    return 0


def _mib(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)
