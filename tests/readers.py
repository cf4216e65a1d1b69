"""Readers who type what pages show, in forks of one warm Python and with one Java: each has a Spark of its own in it, and an empty folder.

A page's text is unchanged, also what Spark does with it. Java has been started for all of them: PySpark connects to a Java
whose port is in its environment. As its working folder never changes, they work in one folder, which is emptied for each. A
command `skypane` of a page runs in the process that the page is typed into, with the Spark that this has.

Run as drivers of tests/runtime/forked.py, main() is Java's keeper, or a reader.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import IO, Any, Final

import pyspark.sql.streaming  # noqa: F401 - forks have it, and all that a page imports
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
from tests import typed
from tests.java import inside_java
from tests.page_steps import Step, activated
from tests.runtime.forked import Parent

import skypane.public  # noqa: F401
from skypane.cli.main import main as command
from skypane.runtime.spark.machine.java import ensure_java
from skypane.runtime.spark.machine.session import JAVA_OPTIONS, defaults

_MOST: Final = 65_536
"""Bytes of a command."""
_COMMAND: Final = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    socket.send_fds(line, [json.dumps(sys.argv[1:]).encode()], [1, 2])
    sys.exit(line.recv(1)[0])
"""
"""What is `skypane` for the shell of a page: it passes its words and its outputs on, and ends as the command does."""


class Readers:
    """The Java of some readers, the process that they are forked from, and the folder in which one after the other works."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "here"
        self._temporary = folder / "temporary"
        self._errors = (folder / "errors").open("w+b")
        for made in (self.folder, self._temporary):
            made.mkdir()
        self._parent = Parent("tests.readers")
        self._keeper = self._parent.fork(str(self.folder), self._temporary, self._errors)
        self.java: dict[str, str] = json.loads(self._keeper.stdout.readline())
        """The variables with which a process finds Java."""

    def typed(self, steps: list[Step], _: Path) -> list[str]:
        """Return what a reader's blocks print; the environment is that of this process now."""
        reader = self._parent.fork("", self._temporary, self._errors)
        request = [str(self.folder), activated() | self.java | {"TMPDIR": str(self._temporary)}]
        with reader.stdin, reader.stdout:
            print(
                json.dumps(request), json.dumps([step[:3] for step in steps]), sep="\n", file=reader.stdin, flush=True
            )
            reader.stdin.close()
            outputs = reader.stdout.read()
        assert reader.wait() == 0, self._last_errors()
        printed: list[str] = json.loads(outputs)
        return printed

    def _last_errors(self) -> str:
        """Return the last lines, each cut: a plan of Spark, whose lines have thousands of characters, hides the cause above it."""
        end = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, end - 200_000))
        return "\n".join(line.decode(errors="replace")[:400] for line in self._errors.read().splitlines()[-150:])

    def leave(self) -> None:
        """Stop what a reader has left in Java, and empty the folder for the next one."""
        print("leave", file=self._keeper.stdin, flush=True)
        assert self._keeper.stdout.readline() == "left\n", self._last_errors()
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def close(self) -> None:
        self._keeper.stdin.close()
        self._keeper.wait()
        self._keeper.stdout.close()
        self._parent.close()
        self._errors.close()


def main() -> None:
    if sys.argv[1]:
        _keep(Path(sys.argv[1]))
    else:
        _read()


def _keep(folder: Path) -> None:
    """Start Java, say where it is, stop the Spark of each reader who leaves, and end it when nobody comes any more."""
    ensure_java()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    own = {JAVA_OPTIONS: defaults()[JAVA_OPTIONS], "spark.driver.memory": "2g"}
    daemon = {"spark.python.daemon.module": "tests.runtime.parent_of_workers"}
    conf = SparkConf(loadDefaults=False).setAll(list({**own, **daemon, **inside_java()}.items()))
    gateway: Any = launch_gateway(conf, {"cwd": folder, "stdout": sys.stderr})
    found = gateway.java_parameters
    variables = {"PYSPARK_GATEWAY_PORT": str(found.port), "PYSPARK_GATEWAY_SECRET": found.auth_token}
    print(json.dumps(variables | {"SPARK_LOCAL_IP": "127.0.0.1"}), flush=True)
    for _ in sys.stdin:
        _stop(gateway.jvm)
        print("left", flush=True)
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def _stop(jvm: Any) -> None:
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    running = sessions.getDefaultSession()
    if running.isDefined():
        for query in running.get().streams().active():
            query.stop()
        running.get().stop()
    sessions.clearActiveSession()
    sessions.clearDefaultSession()


def _read() -> None:
    folder, environment = json.loads(sys.stdin.readline())
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, "")
    with tempfile.TemporaryDirectory() as place, _commands(Path(place)) as line:
        typed.main(lambda code, output: _by_bash(code, output, line))


@contextmanager
def _commands(place: Path) -> Iterator[socket.socket]:
    """Be `skypane` for shells: yield the socket to which each command comes."""
    address, program = place / "socket", place / "skypane"
    program.write_text(_COMMAND.format(python=sys.executable, address=str(address)))
    program.chmod(0o700)
    os.environ["PATH"] = f"{place}{os.pathsep}{os.environ['PATH']}"
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(address))
        line.listen()
        yield line


def _by_bash(code: str, output: IO[str], line: socket.socket) -> int:
    """As typed.by_bash does, but run each command `skypane` here; the shell has ended when nobody has its end of a pipe."""
    ended, theirs = os.pipe()
    with subprocess.Popen(["/bin/bash", "-euc", code], stdout=output, pass_fds=[theirs]) as shell:
        os.close(theirs)
        while ended not in (ready := select.select([line.fileno(), ended], [], [])[0]):
            assert line.fileno() in ready
            _run(line)
        os.close(ended)
    return shell.returncode


def _run(line: socket.socket) -> None:
    connection, _ = line.accept()
    with connection:
        words, files, _, _ = socket.recv_fds(connection, _MOST, 2)
        out, errors = (os.fdopen(file, "w") for file in files)
        with out, errors, redirect_stdout(out), redirect_stderr(errors):
            code = _code(json.loads(words))
        connection.send(bytes([code]))


def _code(words: list[str]) -> int:
    try:
        return command(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
