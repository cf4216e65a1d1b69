"""`skypane receive INPUTS.yaml`: write data that cannot be requested again to segments, which queries read."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skypane.cli import log_format

if TYPE_CHECKING:
    from skypane.cli.command_console import CommandConsole
    from skypane.runtime.receiving.receiver import Receiver

LOOK = 0.5
"""Seconds between updates of the view."""


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser(
        "receive", help="receive from sockets, MQTT brokers and HTTP addresses, and write segments that jobs read"
    )
    parser.add_argument("inputs", type=Path, metavar="INPUTS", help="YAML file with the fields folder and inputs")
    parser.add_argument(
        "--dry-run", action="store_true", help="check the file and that all secrets are set, and receive nothing"
    )
    parser.add_argument(
        "--order", choices=["by time"], help="also merge all inputs into one log, by-time, in the order of event time"
    )
    parser.add_argument("--time", metavar="FIELD", help="field of the event time, for --order")
    parser.add_argument(
        "--idle-after", metavar="DURATION", help="how long a line waits for inputs that send nothing (1 minute)"
    )
    log_format.add_option(parser)
    return parser


def run(arguments: Namespace) -> int:
    """Receive until Ctrl-C or SIGTERM, then write and acknowledge everything that was accepted."""
    from skypane.cli.command_console import CommandConsole  # noqa: PLC0415 - as in run
    from skypane.jobs.document import data_of, text_of  # noqa: PLC0415
    from skypane.reporting.receiver_view import settings  # noqa: PLC0415
    from skypane.runtime.receiving.open_logs import more_files  # noqa: PLC0415
    from skypane.runtime.receiving.receiver import Receiver  # noqa: PLC0415

    more_files()
    given = data_of(text_of(arguments.inputs, "the list of inputs"), str(arguments.inputs))
    receiving = Receiver(_with_options(given, arguments))
    console = CommandConsole()
    for name, value in settings(receiving.receipts):
        console.print(f"{name:<12}{value}", soft_wrap=True)
    if arguments.dry_run:
        console.print("the list of inputs is valid; nothing was received")
        return 0
    log_format.begin(arguments.log or "text")
    _follow(receiving, console)
    return 0


def _with_options(given: Any, arguments: Namespace) -> Any:
    """Return the list of inputs with the options of the command line, which replace those of the file."""
    named = ("order", "time", "idle_after")
    options = {name: value for name in named if (value := getattr(arguments, name)) is not None}
    return {**given, **options} if isinstance(given, dict) else given


def _follow(receiving: Receiver, console: CommandConsole) -> None:
    from skypane.reporting.receiver_view import ReceiverView  # noqa: PLC0415

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with receiving, ReceiverView(receiving, console) as shown:
        console.print("receiving; press Ctrl-C to stop")
        while not stop.wait(LOOK):
            shown.look()
    shown.ended()
