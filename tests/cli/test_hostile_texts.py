"""Texts of others on the console are data: shown as they are, never as markup, and no control character reaches a terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import pyarrow as pa
import pytest
from rich.console import Console
from rich.table import Table
from tests.reporting.made import batch

from skypane.cli import doctor
from skypane.cli.command_console import CommandConsole
from skypane.cli.machine_checks import Finding
from skypane.cli.output import say
from skypane.naming import printable
from skypane.reporting import live
from skypane.reporting.query_view import QueryView
from skypane.reporting.receiver_view import ReceiverView
from skypane.runtime.receiving.receiver import Receiver
from skypane.runtime.receiving.receiver_status import ReceivedInput

PARTS: Final = (
    "[/b]", "[red]", "[/red]", "[link=http://evil]", "[/link]", "[conceal]", "[a, b]", "[@click=app.quit]", "\\[", "[[", "]", ":warning:",
    "\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;ZXZpbA==\x07", "\x9b2J", "\x00", "\x08", "\r", "\x7f", "\u202e", "\u2066", "\u200f",
    "Zürich", "x", " ", "東京", "%s", "{0}", "<b>", "'", '"',
)  # fmt: skip
_ALLOWED = re.compile(r"\x1b\[[0-9;]*m")
"""What rich writes itself: styles."""


def drawn(seed: int) -> str:
    random = Random(seed)
    return "".join(random.choice(PARTS) for _ in range(random.randrange(1, 5))).strip() or "x"


def _on(console: Console, thing: Any) -> str:
    console.file = io.StringIO()
    console.print(thing)
    return console.file.getvalue()


def _panel(**known: str) -> str:
    front = pa.table(
        {"window_end": pa.array([0], pa.timestamp("us", "UTC")), known.get("column", "shop"): [known.get("value", "x")]}
    )
    view = QueryView(known.get("title", "job")).after(batch(), front)
    return _on(Console(force_terminal=True, width=400), live.panel(view, 1.0))


def _received(text: str) -> str:
    receiver = Receiver({"folder": "in", "inputs": [{"name": "a", "listen": "localhost:7001"}]})
    receiver._seen["a"] = ReceivedInput("a")
    receiver._seen["a"].failed(text)
    receiver._merge = SimpleNamespace(
        status=SimpleNamespace(waits_for=text, lines=1, waiting=1, rejected={}, reason="")
    )  # type: ignore[assignment]
    return _on(Console(force_terminal=True, width=600), ReceiverView(receiver, Console(file=io.StringIO())).table())


def _table(text: str) -> str:
    table = Table(text, title=text, caption=text)
    table.add_row(text)
    return _on(CommandConsole(), table)


PLACES: Final[dict[str, Callable[[str], str]]] = {
    "value": lambda text: _panel(value=text),
    "column": lambda text: _panel(column=text),
    "title": lambda text: _panel(title=text),
    "remark of a receiver": _received,
    "line": lambda text: _on(CommandConsole(), f"answers   {text}"),
    "table": _table,
    "check": lambda text: doctor._coloured(Finding(text, text, text)),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_text_is_shown_as_it_is_and_controls_as_escapes(place: str):
    for seed in range(150):
        text = drawn(seed)
        shown = _ALLOWED.sub("", PLACES[place](text))
        assert printable(shown) == shown, (text, shown)
        assert printable(text) in re.sub(r"\s*\n\s*", "", shown) or printable(text) in shown, (text, shown)


def test_the_output_of_commands_and_the_log_of_batches_have_it_too(capsys: pytest.CaptureFixture[str]):
    for seed in range(150):
        text = drawn(seed)
        say(text)
        written = io.StringIO()
        with live.display(QueryView(text), Console(file=written)) as shown:
            shown.batch(batch())
        for found in (capsys.readouterr().out, written.getvalue()):
            assert printable(text) in found
            assert printable(found) == found
