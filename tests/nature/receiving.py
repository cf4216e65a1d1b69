"""A receiver in a process of its own, and a client of it that sends on from what was acknowledged, as docs/admission.md says."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

import yaml
from tests.nature.nursery import CONTEXT

NAME: Final = "device"


def receive(listing: Path, log: Path) -> None:
    """Be `skypane receive`."""
    from skypane.cli.main import main  # noqa: PLC0415 - the process that it is forked from loads it

    with log.open("ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    main(["receive", str(listing)])


class Receiver:
    """The receiver of a stream: it writes to `folder`, and is started again when it is gone."""

    def __init__(self, folder: Path, port: int, log: Path) -> None:
        self._listing, self._log = log.with_suffix(".yaml"), log
        inputs = [{"name": NAME, "listen": f"127.0.0.1:{port}", "acknowledge": True}]
        self._listing.write_text(yaml.safe_dump({"folder": str(folder), "segment_bytes": 65_536, "inputs": inputs}))
        self.start()

    def start(self) -> None:
        self.process = CONTEXT.Process(target=receive, args=(self._listing, self._log), daemon=True)
        self.process.start()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


class Client:
    """Sends lines, and remembers how many of them are on disk: never waits."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._line: socket.socket | None = None
        self._lines: list[bytes] = []
        self._base = self._sent = 0
        self.acknowledged = 0

    def send(self, lines: list[bytes]) -> None:
        self._lines += lines

    @property
    def is_done(self) -> bool:
        """Whether all lines were acknowledged."""
        return self.acknowledged == len(self._lines)

    def go_on(self) -> None:
        """Connect if need be, send the rows to send, and read what is on disk."""
        try:
            if self._line is None:
                self._line = socket.create_connection(("127.0.0.1", self._port), 1)
                self._base = self._sent = self.acknowledged
            if self._sent < len(self._lines):
                self._line.sendall(b"".join(self._lines[self._sent :]))
                self._sent = len(self._lines)
            self._hear(self._line)
        except OSError:
            self.close()

    def _hear(self, line: socket.socket) -> None:
        line.settimeout(0.001)
        with suppress(TimeoutError):
            received = line.recv(65_536)
            if not received:
                raise ConnectionResetError
            while not received.endswith(b"\n"):
                line.settimeout(1)
                received += line.recv(65_536)
            self.acknowledged = self._base + int(received.split()[-1])
        line.settimeout(1)

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
