"""What a process that hangs waits for."""

from __future__ import annotations

import re
import socket
import subprocess
import sys

from tests.waits import waits

DEAF = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.recv(5, socket.MSG_PEEK | socket.MSG_WAITALL)
print("up", flush=True)
sys.stdin.read()
"""


def test_a_line_for_each_connection_and_each_thread():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen(
            [sys.executable, "-c", DEAF, str(server.getsockname()[1])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as deaf,
    ):  # fmt: skip
        connection, there = server.accept()
        with connection:
            connection.sendall(b"hello")
            assert deaf.stdout is not None
            assert deaf.stdout.readline() == "up\n"
            lines = waits(deaf.pid)
            deaf.communicate()
    assert re.search(
        rf"^{deaf.pid} connection of port {there[1]} to .*: 5 bytes unread, 0 unsent$", lines, re.MULTILINE
    )
    assert re.search(rf"^{deaf.pid} thread {deaf.pid} \(.*\) is in state [RSD], waits in ", lines, re.MULTILINE)


def test_a_process_that_has_ended_has_no_threads_and_no_connections():
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    assert waits(ended.pid) == ""
