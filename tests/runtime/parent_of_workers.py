"""PySpark's parent of Python workers, for drivers that are forked (forked.py): it is forked from the process that they are from.

Spark starts this program; it passes on its files and its environment, and lives as long as what is forked with them.
"""

from __future__ import annotations

import json
import os
import signal
import socket

SOCKET = "SKYPANE_TEST_FORKS"
"""The variable that has the path of the socket on which forks are requested."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as PySpark's parent of workers, it goes on when a terminal sends it
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(os.environ[SOCKET])
        socket.send_fds(line, [b"\n"], [0, 1, 2])
        line.sendall(json.dumps(dict(os.environ)).encode())
        line.shutdown(socket.SHUT_WR)
        line.recv(1)


if __name__ == "__main__":
    main()
