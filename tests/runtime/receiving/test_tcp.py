"""Lines over real sockets: whole, in order, in the log when they are acknowledged."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.runtime.receiving.logs import lines, receiver, until

from skypane.runtime.receiving import tcp
from skypane.runtime.receiving.receiver import Receiver
from skypane.types import ConfigError


def dialled(port: int) -> socket.socket:
    """Return a connection to a receiver, which may be about to listen."""
    connection: list[socket.socket] = []

    def there() -> bool:
        with suppress(ConnectionRefusedError):
            connection.append(socket.create_connection(("127.0.0.1", port), 5))
        return bool(connection)

    until(there, "nobody listens")
    return connection[0]


def sent(port: int, first: int, enough: int, line: Callable[[int], bytes]) -> int:
    """Send the lines of numbers from `first` on until so many are acknowledged; return the first one that is not."""
    with dialled(port) as connection, connection.makefile("rb") as answers:
        sender = threading.Thread(target=_send, args=(connection, map(line, range(first, first + 20_000))))
        sender.start()
        safe = next(count for answer in answers if (count := int(answer)) >= enough)
        connection.shutdown(socket.SHUT_RDWR)
        sender.join()
    return first + safe


def _send(connection: socket.socket, texts: Iterable[bytes]) -> None:
    with suppress(OSError):  # the receiver is gone, or enough is acknowledged
        for text in texts:
            connection.sendall(text)


def listening(folder: Path, port: int, *, acknowledge: bool = False) -> dict[str, object]:
    return {"folder": str(folder / "received"),
            "inputs": [{"name": "in", "listen": f"127.0.0.1:{port}", "acknowledge": acknowledge}]}  # fmt: skip


def test_lines_of_many_clients_are_whole_and_each_client_s_in_order(tmp_path, port):
    def send(client: int) -> None:
        with dialled(port) as connection:
            for at in range(50):
                text = f"{client},{at}\n".encode()
                connection.sendall(text[:2])
                connection.sendall(text[2:])

    with Receiver(listening(tmp_path, port)) as receiving:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(send, range(8)))
        until(lambda: receiving.seen[0].lines == 400, "lines are missing")
    found = [tuple(map(int, line.split(","))) for line in lines(tmp_path / "received" / "in")]
    for client in range(8):
        assert [at for of, at in found if of == client] == list(range(50))


def test_a_full_disk_is_logged_once_and_shown_and_nothing_is_acknowledged(tmp_path, port, monkeypatch, caplog):
    real = os.fsync
    with Receiver(listening(tmp_path, port, acknowledge=True)) as receiving:
        dialled(port).close()
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        for _ in range(2):
            with dialled(port) as connection:
                connection.sendall(b"1\n")
                assert connection.recv(9) == b""
        assert "No space left on device" in receiving.seen[0].reason
        assert caplog.text.count("input in: cannot be written: No space left on device") == 1
        monkeypatch.setattr(os, "fsync", real)
        with dialled(port) as connection:
            connection.sendall(b"2\n")
            assert connection.recv(9) == b"1\n"
    assert lines(tmp_path / "received" / "in") == ["2"]


def test_a_line_without_its_end_is_none_and_is_counted(tmp_path, port):
    with Receiver(listening(tmp_path, port)) as receiving:
        with dialled(port) as connection:
            connection.sendall(b"whole\n12")
        until(lambda: receiving.seen[0].unfinished == 1, "the connection has not ended")
        with dialled(port) as connection:
            connection.sendall(b"34\n")
        until(lambda: receiving.seen[0].lines == 2, "lines are missing")
    assert lines(tmp_path / "received" / "in") == ["whole", "34"]


def test_connections_without_lines_are_closed_and_others_are_not(tmp_path, port, monkeypatch):
    monkeypatch.setattr(tcp, "LONGEST", 1_000)
    with Receiver(listening(tmp_path, port)) as receiving, dialled(port) as good, dialled(port) as bad:
        bad.sendall(b"x" * 2_000)
        assert bad.recv(1) == b""
        assert "2,000 bytes without a line end" in receiving.seen[0].reason
        good.sendall(b"line\n")
        until(lambda: receiving.seen[0].lines == 1, "lines are missing")
    assert lines(tmp_path / "received" / "in") == ["line"]


def test_one_client_more_takes_the_place_of_one_that_is_silent(tmp_path, port, caplog):
    given = listening(tmp_path, port, acknowledge=True)
    given["inputs"][0]["most_clients"] = 3  # type: ignore[index]
    with Receiver(given), ExitStack() as until_end, dialled(port) as good:
        idle = []
        for at in range(1, 20):
            idle.append(until_end.enter_context(dialled(port)))
            good.sendall(b"line\n")
            assert good.recv(9) == b"%d\n" % at
        assert {one.recv(1) for one in idle[:-3]} == {b""}
    assert caplog.text.count("there are more than 3 clients") == 1
    assert lines(tmp_path / "received" / "in") == ["line"] * 19


def test_what_was_acknowledged_is_there_after_a_kill_while_it_writes(tmp_path, port):
    """A client sends on from what was acknowledged, to a receiver that is killed by SIGKILL, and to the next one."""

    def line(at: int) -> bytes:
        return f"{at:06}{'x' * (at % 50)}\n".encode()

    given = listening(tmp_path, port, acknowledge=True) | {"segment_bytes": 4096}
    with receiver(given, tmp_path) as process:
        safe = sent(port, 0, 500, line)
        process.kill()
    with Receiver(given):
        safe = sent(port, safe, 2_000, line)
    found = lines(tmp_path / "received" / "in")
    assert all(re.fullmatch(r"\d{6}x*", line) for line in found)  # none is torn
    counts = Counter(int(line[:6]) for line in found)
    assert set(range(safe)) <= counts.keys()
    # What comes twice was written, and killed before it could be acknowledged.
    assert [int(line[:6]) for line in dict.fromkeys(found)] == list(range(len(counts)))
    assert len(list((tmp_path / "received" / "in").glob("*.segment"))) > 2


def test_a_server_that_hangs_up_is_connected_to_again(tmp_path, monkeypatch):
    monkeypatch.setattr("skypane.runtime.receiving.receiver.FIRST_WAIT", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        given = {"folder": tmp_path / "received", "inputs": [{"name": "in", "connect": f"127.0.0.1:{port}"}]}
        with Receiver(given) as receiving:
            for text in (b"one\nno end", b"two\n"):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(text)
            until(lambda: receiving.seen[0].lines == 2, "lines are missing")
            assert receiving.seen[0].failures >= 1
            assert receiving.seen[0].unfinished == 1
    assert lines(tmp_path / "received" / "in") == ["one", "two"]


def test_one_that_never_answers_holds_up_no_other(tmp_path, port, monkeypatch):
    monkeypatch.setattr(tcp, "_PATIENCE", 0.2)
    # A listener whose queue is full answers no one.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf, socket.create_server(("127.0.0.1", 0)) as silent:
        address = deaf.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)  # noqa: FBT003 - positional only
            filler.connect_ex(address)
        given = listening(tmp_path, port)
        given["inputs"] += [{"name": "deaf", "connect": f"127.0.0.1:{address[1]}"},  # type: ignore[operator]
                            {"name": "silent", "connect": f"127.0.0.1:{silent.getsockname()[1]}"}]  # fmt: skip
        with Receiver(given) as receiving, dialled(port) as connection:
            connection.sendall(b"line\n")
            seen = {one.name: one for one in receiving.seen}
            until(lambda: seen["in"].lines == 1, "lines are missing")
            until(lambda: seen["deaf"].reason == "it does not answer", "it is not reported")
            until(lambda: seen["silent"].state == "receiving", "it is not connected")
        for filler in fillers:
            filler.close()
    assert seen["silent"].lines == 0
    assert seen["silent"].silent is None


def test_two_receivers_of_one_folder_refuse_each_other(tmp_path, port):
    given = listening(tmp_path, port)
    with Receiver(given), pytest.raises(ConfigError, match="is locked by another receiver"):
        Receiver(given).start()


def test_a_port_that_is_open_to_the_network_is_reported_at_the_start(tmp_path, port, caplog, monkeypatch):
    monkeypatch.setattr(tcp, "address", lambda _text, _name: ("127.0.0.1", port))  # a test opens nothing to the network
    given = {"folder": str(tmp_path), "inputs": [{"name": "in", "listen": f"0.0.0.0:{port}"}]}
    with Receiver(given):
        assert f"input in: any client that reaches 0.0.0.0:{port} may send to it" in caplog.text
