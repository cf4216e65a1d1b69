"""A real server of PostgreSQL for tests, run by the programs of Debian's package `postgresql`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
from tests.servers.ports import free_ports

USER: Final = "writer"
PASSWORD: Final = "unheard-of"  # noqa: S105 - for a server that runs during a test only
DATABASE: Final = "postgres"
_FOLDERS: Final = Path("/usr/lib/postgresql")
"""Where Debian keeps programs that are not on the path."""


class NoServerError(Exception):
    """Why there is no server of PostgreSQL here."""


def programs() -> Path:
    """Return the folder of the server's programs; NoServerError if there is none."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else sorted(_FOLDERS.glob("*/bin"))
    if not folders or not (folders[-1] / "postgres").exists():
        raise NoServerError("there is no initdb on the path, nor in /usr/lib/postgresql: apt-get install postgresql")
    return folders[-1]


class Server:
    """A server that runs, with its data in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (self.port,) = free_ports(1)
        self.url = f"postgresql://127.0.0.1:{self.port}/{DATABASE}"
        #: options of a client that logs in, as a sink takes them
        self.login = {"user": USER, "password": "$SKYPANE_TEST_PASSWORD"}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Make a database, start the server, and wait until it answers."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        data = str(self.folder / "data")
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(self.folder, "nobody", "nogroup")
            shutil.chown(secret, "nobody", "nogroup")
        made = ["initdb", "-D", data, "-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "-N"]
        subprocess.run(self._command(made), check=True, stdout=subprocess.DEVNULL, cwd=self.folder, timeout=120)
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=20"]
        options = [word for one in settings for word in ("-c", one)]
        with (self.folder / "log").open("ab") as log:
            command = self._command(["postgres", "-D", data, "-p", str(self.port), *options])
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.ask("SELECT 1")
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    log_text = (self.folder / "log").read_text()[-2000:]
                    raise RuntimeError(f"the server does not start: {log_text}") from None
            else:
                return

    def stop(self) -> None:
        """Stop it without waiting for its clients."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Take connections in the block, but answer none."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows."""
        with psycopg.connect(self.url, user=USER, password=PASSWORD, connect_timeout=30) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []

    def _command(self, words: list[str]) -> list[str]:
        command = [str(programs() / words[0]), *words[1:]]
        return (
            ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]
            if os.geteuid() == 0
            else command
        )


@contextmanager
def server() -> Iterator[Server]:
    """A server for as long as the block lasts."""
    # Its user may be another one, who cannot enter the folder of this run's temporary files.
    with tempfile.TemporaryDirectory(prefix="skypane-postgresql-", dir="/tmp") as folder:
        one = Server(Path(folder))
        try:
            one.start()
            yield one
        finally:
            one.stop()
