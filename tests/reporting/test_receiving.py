from __future__ import annotations

import io

from rich.console import Console

from skypane.reporting.receiving import Shown, rows, settings
from skypane.runtime.receiving.inputs import Receipts
from skypane.runtime.receiving.receiver import Receiver
from skypane.runtime.receiving.seen import Seen

GIVEN = {"folder": "received", "inputs": [
    {"name": "a", "listen": "localhost:1", "acknowledge": True},
    {"name": "b", "connect": "there:1", "tls": True},
    {"name": "c", "mqtt": "mqtt://there", "topic": "t/+", "by_topic": True, "password": "$C_PASSWORD"},
    {"name": "d", "http": "http://there/now?key=swordfish", "every": "90 seconds"},
]}  # fmt: skip


def test_what_will_be_received_is_told_without_what_may_be_secret():
    said = dict(settings(Receipts.of(GIVEN)))
    assert said["a"] == "lines that clients send to localhost:1, acknowledged"
    assert said["b"] == "lines that there:1 sends, encrypted"
    assert said["c"] == "messages of t/+ from mqtt://there, as client skypane-c, each topic an input"
    assert said["d"] == "what http://there/now answers, every 1.5 min"
    assert said["kept"] == "for ever"


def test_a_port_that_is_open_to_the_network_is_told():
    given = {"folder": "received", "inputs": [{"name": "a", "listen": "0.0.0.0:1"}]}
    assert dict(settings(Receipts.of(given)))["a"] == "lines that clients send to 0.0.0.0:1, open to whoever reaches it"


def test_a_row_says_how_an_input_stands():
    clock = [0.0]
    seen = Seen("a", now=lambda: clock[0])
    assert rows([seen], {}) == [("a", "waiting", "0", "0", "0", "", "")]
    seen.wrote(b"one\ntwo\n")
    clock[0] = 4.2
    assert rows([seen], {"a": 12.4}) == [("a", "receiving", "2", "12", "8", "4.2 s", "")]
    seen.unfinished, seen.again = 1, 3
    seen.failed("it does not answer")
    assert rows([seen], {})[0][-1] == "it does not answer; 1 line without an end; 3 sent again"


def test_a_log_has_a_line_now_and_then_with_what_fails(tmp_path):
    written = io.StringIO()
    receiver = Receiver({"folder": tmp_path, "inputs": GIVEN["inputs"][:2]})
    shown = Shown(receiver, Console(file=written, width=200))
    receiver._seen["a"] = Seen("a")
    receiver._seen["a"].wrote(b"one\n" * 1_500)
    receiver._seen["b"] = Seen("b")
    receiver._seen["b"].failed("it does not answer")
    shown.look()
    shown.look()
    (line,) = written.getvalue().splitlines()
    assert line.startswith("[0:00] 1,500 lines of 2 inputs; ")
    assert line.endswith("; b: it does not answer")
