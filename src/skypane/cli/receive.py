"""`skypane receive INPUTS.yaml`: what cannot be asked for again, written down for queries to read."""

from __future__ import annotations

import logging
import signal
import threading
from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from skypane.runtime.receiving.receiver import Receiver

LOOK = 0.5
"""Seconds between looks at what was received."""


def add_parser(verbs: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the verb's parser."""
    parser = verbs.add_parser(
        "receive", help="write what sockets, brokers and addresses say to segments that jobs read"
    )
    parser.add_argument("inputs", type=Path, metavar="INPUTS", help="a YAML file with folder and inputs")
    parser.add_argument("--dry-run", action="store_true", help="check the file, and that all secrets are set")
    return parser


def run(arguments: Namespace) -> int:
    """Receive until told to stop, by Ctrl-C or SIGTERM: what was taken is written and acknowledged then."""
    from rich.console import Console  # noqa: PLC0415 - as in run

    from skypane.jobs.document import data_of, text_of  # noqa: PLC0415
    from skypane.reporting.receiving import settings  # noqa: PLC0415
    from skypane.runtime.receiving.open_logs import more_files  # noqa: PLC0415
    from skypane.runtime.receiving.receiver import Receiver  # noqa: PLC0415

    more_files()
    receiving = Receiver(data_of(text_of(arguments.inputs, "the list of inputs"), str(arguments.inputs)))
    console = Console(highlight=False)
    for name, value in settings(receiving.receipts):
        console.print(f"{name:<12}{value}", soft_wrap=True, markup=False)
    if arguments.dry_run:
        console.print("the list is sound: nothing has been received")
        return 0
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO)
    _follow(receiving, console)
    return 0


def _follow(receiving: Receiver, console: Console) -> None:
    from skypane.reporting.receiving import Shown  # noqa: PLC0415

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with receiving, Shown(receiving, console) as shown:
        console.print("receiving; Ctrl-C stops")
        while not stop.wait(LOOK):
            shown.look()
    shown.ended()
