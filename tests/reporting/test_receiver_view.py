from __future__ import annotations

import io
from types import SimpleNamespace

from rich.console import Console

from skypane.reporting.receiver_view import ReceiverView, rows, settings
from skypane.runtime.receiving.input_list import ReceivedInputs
from skypane.runtime.receiving.receiver import Receiver
from skypane.runtime.receiving.receiver_status import MergeStatus, ReceivedInput

GIVEN = {"folder": "received", "inputs": [
    {"name": "a", "listen": "localhost:1", "acknowledge": True},
    {"name": "b", "connect": "there:1", "tls": True},
    {"name": "c", "mqtt": "mqtt://there", "topic": "t/+", "by_topic": True, "password": "$C_PASSWORD"},
    {"name": "d", "http": "http://there/now?key=swordfish", "every": "90 seconds"},
]}  # fmt: skip


def test_what_will_be_received_is_reported_without_what_may_be_secret():
    listed = dict(settings(ReceivedInputs.of(GIVEN)))
    assert listed["a"] == "lines that clients send to localhost:1, acknowledged"
    assert listed["b"] == "lines that there:1 sends, encrypted"
    assert listed["c"] == "messages of t/+ from mqtt://there, as client skypane-c, one input per topic"
    assert listed["d"] == "answers of http://there/now, requested every 1.5 min"
    assert listed["kept"] == "forever"


def test_a_port_that_is_open_to_the_network_is_reported():
    given = {"folder": "received", "inputs": [{"name": "a", "listen": "0.0.0.0:1"}]}
    assert dict(settings(ReceivedInputs.of(given)))["a"] == "lines that clients send to 0.0.0.0:1, open to any client"


def test_a_row_shows_the_state_of_an_input():
    clock = [0.0]
    seen = ReceivedInput("a", now=lambda: clock[0])
    assert rows([seen], {}) == [("a", "waiting", "0", "0", "0", "", "")]
    seen.wrote(b"one\ntwo\n")
    clock[0] = 4.2
    assert rows([seen], {"a": 12.4}) == [("a", "receiving", "2", "12", "8", "4.2 s", "")]
    seen.unfinished, seen.again = 1, 3
    seen.failed("it does not answer")
    assert rows([seen], {})[0][-1] == "it does not answer; 1 line without an end; 3 sent again"


def test_a_merge_is_shown_with_what_it_waits_for_and_what_it_rejects(tmp_path):
    given = {"folder": tmp_path, "order": "by time", "time": "at", "inputs": GIVEN["inputs"][:2]}
    receiver = Receiver(given)
    assert dict(settings(receiver.receipts))["by-time"].startswith("all inputs in the order of at; a line waits for")
    receiver._merge = SimpleNamespace(status=MergeStatus(1_200, 7, "b", {("a", "late"): 3}, "cannot merge: no space"))  # type: ignore[assignment]
    line = ReceiverView(receiver, Console(file=io.StringIO())).line()
    assert "1,200 lines merged by time, 7 wait, waiting for b; rejected of a: 3 late; cannot merge: no space" in line


def test_a_log_has_a_line_now_and_then_with_what_fails(tmp_path):
    written = io.StringIO()
    receiver = Receiver({"folder": tmp_path, "inputs": GIVEN["inputs"][:2]})
    shown = ReceiverView(receiver, Console(file=written, width=200))
    receiver._seen["a"] = ReceivedInput("a")
    receiver._seen["a"].wrote(b"one\n" * 1_500)
    receiver._seen["b"] = ReceivedInput("b")
    receiver._seen["b"].failed("it does not answer")
    shown.look()
    shown.look()
    (line,) = written.getvalue().splitlines()
    assert line.startswith("[0:00] 1,500 lines of 2 inputs; ")
    assert line.endswith("; b: it does not answer")
