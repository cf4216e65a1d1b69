"""What a real server answers: each answer once, however it is requested, through kills in between."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from http.client import HTTPMessage as Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.request import Request

import pytest
from tests.runtime.receiving.logs import lines, shown_in, until
from tests.runtime.receiving.test_tcp import dialled

from skypane.addresses import HIDDEN
from skypane.runtime.receiving import http, line_splitting, message_lines
from skypane.runtime.receiving.log import SegmentLog
from skypane.runtime.receiving.message_lines import values_of
from skypane.runtime.receiving.receiver import Receiver
from skypane.runtime.receiving.receiver_status import ReceivedInput
from skypane.types import ConfigError


class Server(ThreadingHTTPServer):
    """Answers what a test sets, and remembers the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body, self.code, self.headers = b"[]", 200, dict[str, str]()
        self.cut = 0
        self.phrase: str | None = None
        self.requests: list[dict[str, str]] = []
        self.codes: list[int] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/now?key=swordfish"

    def respond_with(self, body: bytes, code: int = 200, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): text for name, text in headers.items()}
        self.body, self.code = body, code

    def answered(self, more: int = 2) -> None:
        """Wait until it has had so many requests from now."""
        before = len(self.codes)
        until(lambda: len(self.codes) >= before + more, "no request comes")


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        server.requests.append({name.lower(): text for name, text in self.headers.items()})
        body, code, headers = server.body, server.code, server.headers
        if code == 200 and "ETag" in headers and self.headers["If-None-Match"] == headers["ETag"]:
            code = 304
        self.send_response(code, server.phrase)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", "0" if code == 304 else str(len(body)))
        self.end_headers()
        if code != 304:
            self.wfile.write(body[: len(body) - server.cut])
        server.codes.append(code)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that it has there
        del format, args


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setattr("skypane.runtime.receiving.receiver.FIRST_WAIT", 0.01)
    monkeypatch.setattr("skypane.runtime.receiving.receiver.LONGEST_WAIT", 0.02)
    with serving() as running:
        yield running


def polling(folder: Path, server: Server, **more: Any) -> dict[str, Any]:
    one = {"name": "prices", "http": server.url, "every": "10 ms", "timeout": "2 seconds"}
    return {"folder": str(folder), "inputs": [one | more]}


@contextmanager
def polled(folder: Path, server: Server, **more: Any) -> Iterator[ReceivedInput]:
    """Run a receiver that requests the server's answer; yield what is seen of its input."""
    with Receiver(polling(folder, server, **more)) as receiving:
        yield receiving.seen[0]


def test_each_answer_that_differs_is_appended_once_over_restarts(tmp_path, server):
    log = tmp_path / "prices"
    server.respond_with(b'[{"n": 1}, {"n": 2}]')
    for _ in range(2):
        with Receiver(polling(tmp_path, server)):
            server.answered(3)
    assert lines(log) == ['{"n": 1}', '{"n": 2}']
    with Receiver(polling(tmp_path, server)):
        server.respond_with(b'{"n": 3,\n "price": 1.10000000000000000001}', ETag='"a"')
        server.answered(3)
        assert server.codes[-1] == 304
    with Receiver(polling(tmp_path, server)):
        server.answered()
        assert set(server.codes[-2:]) == {304}  # what the server knew it by is remembered
        server.respond_with(b'{"n": 4}', ETag='"b"')
        server.answered()
    assert lines(log) == ['{"n": 1}', '{"n": 2}', '{"n": 3,  "price": 1.10000000000000000001}', '{"n": 4}']


@pytest.mark.parametrize("written", [0, 9, 12, 18])
def test_a_receiver_that_was_killed_within_an_answer_adds_the_rest_of_it(tmp_path, server, monkeypatch, written: int):
    """The note is there, and so much of the answer."""
    body = b'[{"n": 1}, {"n": 2}]'
    wanted = values_of(body)
    server.respond_with(body, ETag='"a"')
    with monkeypatch.context() as killed:
        killed.setattr(SegmentLog, "append", lambda _log, _lines: (_ for _ in ()).throw(OSError("killed here")))
        with Receiver(polling(tmp_path, server)):
            server.answered()
    (segment,) = (tmp_path / "prices").glob("*.segment")
    segment.write_bytes(wanted[:written])
    with Receiver(polling(tmp_path, server)):
        server.answered()
    assert lines(tmp_path / "prices") == ['{"n": 1}', '{"n": 2}']


def test_a_failed_request_is_reported_and_repeated(tmp_path, server):
    with polled(tmp_path, server) as seen:
        server.respond_with(b"", 503, Retry_After="0")
        until(lambda: seen.reason == "it answers 503 Service Unavailable", "it is not reported")
        server.cut = 3
        server.respond_with(b'{"n": 1}')
        until(lambda: seen.reason == "its response is cut short by 3 bytes", "it is not reported")
        server.cut = 0
        until(lambda: seen.lines == 1, "lines are missing")
        assert seen.reason == ""
    assert lines(tmp_path / "prices") == ['{"n": 1}']


@pytest.mark.parametrize("expected", [
    b"HTTP/1.1 200 OK\r\nX-Pad: ", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n[", b"HTTP/1.1 200 OK\r\n\r\n[",
])  # fmt: skip
def test_an_answer_that_never_ends_is_reported(tmp_path, monkeypatch, expected: bytes):
    """Byte by byte, of its headers or of its body: no piece of it comes too late."""
    monkeypatch.setattr(http, "SLOWEST", 0.2)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(4) as clients:

        def drip(client: socket.socket) -> None:
            with client, suppress(OSError):
                client.sendall(expected)
                while not over.wait(0.02):
                    client.sendall(b"x")

        def serve() -> None:
            with suppress(OSError):
                while True:
                    clients.submit(drip, listening.accept()[0])

        clients.submit(serve)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        requests = {"name": "prices", "http": url, "every": "20 ms", "timeout": "5 seconds"}
        with Receiver({"folder": str(tmp_path), "inputs": [requests]}) as receiving:
            until(lambda: "its response takes longer than 1 s" in receiving.seen[0].reason, "it is not reported")
            assert receiving.seen[0].lines == 0
        over.set()
        listening.shutdown(socket.SHUT_RDWR)


def test_a_server_with_retry_after_gets_no_request_until_then(tmp_path, server):
    server.respond_with(b"", 429, Retry_After="3600")
    with polled(tmp_path, server) as seen:
        until(lambda: seen.failures == 1, "it is not reported")
        server.respond_with(b'{"n": 1}')
        assert seen.reason == "it answers 429 Too Many Requests"
    assert server.codes == [429]  # a stop does not wait for it


def test_a_long_answer_is_cut_in_a_separate_process_to_the_same_lines(tmp_path, server):
    wanted = [f'{{"n": {n}, "pad": "{"x" * 50}"}}' for n in range(2_000)]
    server.respond_with(("[" + ", ".join(wanted) + "]").encode())
    with polled(tmp_path, server) as seen:
        until(lambda: seen.lines == 2_000, "lines are missing")
        server.respond_with(b"[" * 100_000 + b"]" * 100_000)  # deeper than Python goes: left for who reads it
        until(lambda: seen.lines == 2_001, "lines are missing")
    assert lines(tmp_path / "prices")[:2_000] == wanted


def test_lines_of_others_are_acknowledged_while_a_long_answer_is_cut(tmp_path, server, port, monkeypatch):
    """The program that cuts waits for a word, for as long as it takes to see that nobody else does."""
    word, slow = tmp_path / "word", tmp_path / "slow.py"
    os.mkfifo(word)
    slow.write_text(
        f"import runpy\nopen({str(word)!r}).read()\nrunpy.run_path({message_lines.__file__!r}, run_name='__main__')\n"
    )
    monkeypatch.setattr(message_lines, "__file__", str(slow))
    server.respond_with(b"[" + b"1," * 20_000 + b"1]")
    given = polling(tmp_path, server)
    given["inputs"].append({"name": "in", "listen": f"127.0.0.1:{port}", "acknowledge": True})
    held = list[int]()

    def is_cut() -> bool:
        with suppress(OSError):  # nobody reads it yet
            held.append(os.open(word, os.O_WRONLY | os.O_NONBLOCK))
        return bool(held)

    with Receiver(given) as receiving:
        prices = {one.name: one for one in receiving.seen}["prices"]
        until(is_cut, "nobody cuts")
        with dialled(port) as connection:
            for number in range(1, 4):
                connection.sendall(b"line\n")
                assert connection.recv(9) == b"%d\n" % number
            assert prices.lines == 0
        os.close(held[0])
        until(lambda: prices.lines == 20_001, "lines are missing")


def test_an_answer_that_takes_too_long_or_too_much_is_reported_and_the_next_one_is_taken(tmp_path, server, monkeypatch):
    monkeypatch.setattr(line_splitting, "PATIENCE", 0.0)
    server.respond_with(b"[" + b"1," * 20_000 + b"1]")
    with polled(tmp_path, server) as seen:
        until(
            lambda: "its response of 40,003 bytes cannot be split into lines in 0 s" in seen.reason,
            "it is not reported",
        )
        server.respond_with(b"[1]")
        until(lambda: seen.lines == 1, "lines are missing")
    assert lines(tmp_path / "prices") == ["1"]


def test_an_answer_of_too_many_bytes_is_reported_and_nothing_of_it_is_taken(tmp_path, server, monkeypatch):
    monkeypatch.setattr(http, "LARGEST", 1_000)
    server.respond_with(b"[" + b"1," * 1_000 + b"1]")
    with polled(tmp_path, server) as seen:
        until(lambda: seen.reason == "its response is longer than 1,000 bytes", "it is not reported")
        server.respond_with(b"[2]")
        until(lambda: seen.lines == 1, "lines are missing")
    assert lines(tmp_path / "prices") == ["2"]


def test_texts_of_a_server_move_no_terminal(tmp_path, server, caplog):
    """Neither in the log nor where it is shown: what it calls its answer, its host, its columns."""
    server.phrase = "\x1b[2Jgone"
    server.respond_with(b"", 500)
    with polled(tmp_path, server, format="lines", header=True) as seen:
        until(lambda: "it answers 500" in seen.reason, "it is not reported")
        shown = [seen.reason]
        server.respond_with(b"", 302, Location="http://a\x1bc.example/")
        until(lambda: "redirect" in seen.reason, "it is not reported")
        shown.append(seen.reason)
        server.phrase = None
        server.respond_with(b"a\n1\n")
        until(lambda: seen.lines == 1, "lines are missing")
        server.respond_with(b"\x1b[31m\n1\n")
        until(lambda: "its columns changed from" in seen.reason, "it is not reported")
        shown.append(seen.reason)
    assert "\x1b" not in caplog.text + "".join(shown)
    assert r"\x1b[2Jgone" in shown[0]


def test_a_program_that_cuts_answers_has_a_bound_on_its_memory():
    given = b"[" + b'"' + b"x" * (1 << 20) + b'"]'
    script = Path(message_lines.__file__).read_text().replace("MEMORY = 2 << 30", "MEMORY = 1 << 20")
    done = subprocess.run([sys.executable, "-c", script, "json"], input=given, capture_output=True, check=False)
    assert done.returncode != 0
    assert done.stdout == b""


def test_a_redirect_to_another_host_is_refused_unless_it_is_requested(tmp_path, server):
    server.respond_with(b"", 302, Location="http://127.0.0.1:9/metadata")
    with polled(tmp_path, server) as seen:
        until(lambda: "it redirects to '127.0.0.1:9'" in seen.reason, "it is not reported")


@pytest.mark.parametrize(("url", "to", "follows"), [
    ("http://a.example/x", "http://a.example/y", True),
    ("http://a.example/x", "https://a.example/x", True),
    ("http://a.example/x", "http://a.example:8080/x", False),
    ("https://a.example/x", "http://a.example/x", False),
    ("http://a.example/x", "http://b.example/x", False),
])  # fmt: skip
def test_the_same_host_is_followed_and_may_become_encrypted(url: str, to: str, follows: bool):
    refused = nullcontext() if follows else pytest.raises(http.ResponseError, match="it redirects to")
    with refused:
        handler = http._Redirects(elsewhere=False)
        request = handler.redirect_request(Request(url), BytesIO(), 302, "", Message(), to)  # noqa: S310
        assert request is not None
        assert request.full_url == to


def test_a_retry_after_in_the_past_waits_as_long_as_any_failure(tmp_path, server, port, monkeypatch):
    monkeypatch.setattr("skypane.runtime.receiving.receiver.FIRST_WAIT", 3600.0)
    server.respond_with(b"", 503, Retry_After="Mon, 01 Jan 2001 00:00:00 GMT")
    with polled(tmp_path, server) as seen:
        until(lambda: seen.failures == 1, "it is not reported")
        # A while in which another request would come.
        with Receiver({"folder": str(tmp_path / "b"), "inputs": [{"name": "b", "listen": f"127.0.0.1:{port}"}]}):
            dialled(port).close()
    assert len(server.requests) == 1


def test_an_answer_of_other_columns_is_refused_until_it_is_put_right(tmp_path, server):
    server.respond_with(b"ts,price\n1,2\n")
    with polled(tmp_path, server, format="lines", header=True) as seen:
        until(lambda: seen.lines == 1, "lines are missing")
        server.respond_with(b"price,ts\n2,1\n")
        until(lambda: "its columns changed from 'ts,price' to 'price,ts'" in seen.reason, "it is not reported")
        server.respond_with(b"ts,price\r\n3,4\r\n")
        until(lambda: seen.lines == 2, "lines are missing")
    assert lines(tmp_path / "prices") == ["1,2", "3,4"]


def test_a_secret_goes_to_the_server_and_nowhere_else(tmp_path, server, caplog):
    with serving() as other:
        other.respond_with(b'{"n": 1}')
        server.respond_with(b"", 302, Location=other.url.partition("?")[0])
        secret = {"headers": {"Authorization": "$PRICES_TOKEN"}, "redirects": True}
        with Receiver(polling(tmp_path, server, **secret), {"PRICES_TOKEN": "Bearer 12345"}) as receiving:
            until(lambda: receiving.seen[0].lines == 1, "lines are missing")
            server.respond_with(b"", 500)
            until(lambda: receiving.seen[0].failures > 0, "it is not reported")
    assert server.requests[0]["authorization"] == "Bearer 12345"
    assert "authorization" not in other.requests[0]
    shown = shown_in(tmp_path, caplog)
    assert "12345" not in shown
    assert "swordfish" not in shown


@pytest.mark.parametrize(("value", "sign"), [
    ("Bearer 12345\n", "a line end at character 13"), ("Bearer 12345\r\nX-Evil: 1", "a line end at character 13"),
    ("Bearer 12345\x1b[2J", "U+001B at character 13"), ("\U0001f60012345", "U+1F600 at character 1"),
])  # fmt: skip
def test_a_secret_that_cannot_be_sent_is_refused_by_the_name_of_its_variable(tmp_path, server, value: str, sign: str):
    mqtt = {"name": "broker", "mqtt": "mqtt://localhost", "topic": "t", "password": "${TOKEN}"}
    http_ = polling(tmp_path, server, headers={"Authorization": "$TOKEN"})["inputs"][0]
    for one in (mqtt, http_):
        with pytest.raises(ConfigError) as refused:
            Receiver({"folder": str(tmp_path), "inputs": [one]}, {"TOKEN": value})
        assert f"is in the environment variable TOKEN, whose value of {len(value)} characters has" in str(refused.value)
        assert sign in str(refused.value)
        assert "12345" not in str(refused.value)


@pytest.mark.parametrize("value", ["Bearer s3cret'\"--", "Bearer s3cret\u00e9", "Bearer\ts3cret", "s3cret"])
def test_a_server_that_repeats_a_secret_does_not_bring_it_into_the_log(tmp_path, server, caplog, value: str):
    server.respond_with(b"", 503)
    given = polling(tmp_path, server, headers={"Authorization": "$TOKEN"})
    server.phrase = f"who is {value}"
    with Receiver(given, {"TOKEN": value}) as receiving:
        until(lambda: receiving.seen[0].failures > 0, "it is not reported")
        assert receiving.seen[0].reason == f"it answers 503 who is {HIDDEN}"
    assert "s3cret" not in shown_in(tmp_path, caplog)


@pytest.mark.parametrize(("body", "expected"), [
    ('[1, {"a": [1, 2]} , "x\\n]"]', ["1", '{"a": [1, 2]}', '"x\\n]"']),
    ("[]", []),
    ("  ", []),
    ('{"a": 1}', ['{"a": 1}']),
    ('{"a": 1}\n\n{"a": 2}\n', ['{"a": 1}', '{"a": 2}']),
    ("[1, 2", ["[1, 2"]),
    ("[1,]", ["[1,]"]),
    ("[1 2]", ["[1 2]"]),
    ("[1] 2", ["[1] 2"]),
    ("no json\nat all", ["no json", "at all"]),
])  # fmt: skip
def test_a_value_is_a_line_and_invalid_json_is_left_for_the_reader(body: str, expected: list[str]):
    assert values_of(body.encode()).decode().splitlines() == expected


@pytest.mark.parametrize(("text", "seconds"), [(None, None), ("7", 7), ("x", None), ("99999", 3600), ("-1", None),
                                               ("Thu, 01 Jan 1970 00:00:00 GMT", 0)])  # fmt: skip
def test_retry_after_is_read_as_seconds_or_a_date(text: str | None, seconds: float | None):
    assert http._retry_after(text) == seconds
