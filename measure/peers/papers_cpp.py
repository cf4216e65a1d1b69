"""The C++ program of paper 1, which its authors have published, where it is built: one program for each number of criteria.

A program `bt-ppq/pf_skyline-D` in the folder of others' programs listens on a port, receives rows of D + 2 doubles (criteria, time of
the event, time of arrival, in microseconds), and answers windows until the sender closes the connection. It is built for
this processor and in FastFlow's blocking mode: on two cores it was half as fast without either of them, and a quarter as fast without both.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from measure.peers.commands import Command
from measure.peers.places import MissingError, folder, wanted
from measure.results.record import Times
from skypane.types import FloatArray

_CHUNK: Final = 1 << 20
_PATIENCE: Final = 30.0
"""Seconds in which a program has to listen."""
_DROPPED: Final = re.compile(r"Dropped: (\d+)/(\d+) tuples")


class Answered(NamedTuple):
    """A run: its time from the first row on, and how many rows the program dropped as late."""

    times: Times
    dropped: int


def program(criteria: int) -> Path:
    """Return the program for so many criteria; raise MissingError if it is not there."""
    what = (
        f"put the program pf_skyline of paper 1 there, compiled with -O3 -march=native -DBLOCKING_MODE -DDIM={criteria}"
    )
    return wanted(folder() / "bt-ppq" / f"pf_skyline-{criteria}", what)


def built(criteria: Sequence[int]) -> list[int]:
    """Return the numbers of criteria for which there is a program."""
    return [each for each in criteria if _is_there(each)]


def _is_there(criteria: int) -> bool:
    try:
        program(criteria)
    except MissingError:
        return False
    return True


def run(rows: FloatArray, criteria: int, length: int, slide: int, scratch: Path) -> Answered:
    """Send rows (n, criteria + 2) to the program with one worker for panes and one for windows; return when it has ended.

    Length and slide are milliseconds. Raises RuntimeError if it does not listen, stops reading, fails, or lacks rows at its end.
    """
    (scratch / "log").mkdir(parents=True, exist_ok=True)  # where it writes its figures
    port = _free_port()
    options = {"p": port, "d": 0, "w": length, "s": slide, "n": 1, "m": 1}
    arguments = [text for name, value in options.items() for text in (f"-{name}", str(value))]
    with Command(
        [program(criteria), *arguments], scratch, b"1\n"
    ) as command:  # it reads a utilisation that it does not use with one worker
        with closing(_connected(port, command)) as connection:
            command.begin()
            _send(rows.astype("<f8", order="C", copy=False).data.cast("B"), connection, command)
        times = command.ended()
    found = _DROPPED.search(command.output())
    if found is None or int(found[2]) != len(rows):
        raise RuntimeError(f"{program(criteria)} has not received {len(rows)} rows: {command.output()[-400:]}")
    return Answered(times, int(found[1]))


def _connected(port: int, command: Command) -> socket.socket:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            if time.monotonic() > until or not command.runs:
                raise RuntimeError(f"{command.name} does not listen: {command.output()[-400:]}") from None
            time.sleep(0.01)


def _send(data: memoryview, connection: socket.socket, command: Command) -> None:
    try:
        for at in range(0, len(data), _CHUNK):
            connection.sendall(data[at : at + _CHUNK])
    except OSError as error:
        raise RuntimeError(f"{command.name} reads no more ({error}): {command.output()[-400:]}") from error


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port: int = server.getsockname()[1]
    return port
