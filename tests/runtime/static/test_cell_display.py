"""A cell that shows a query, in a real kernel of Jupyter: its HTML is written again, also while other cells run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from tests.runtime.scenarios import lines_of

pytestmark = pytest.mark.long

SHOWN = """
from threading import Event, enumerate as threads
from skypane.runtime import cell_display
cell_display.EVERY = 0.01
looks, over = [], Event()
def html():
    looks.append(over.is_set())
    return f"<b>{'over' if over.is_set() else 'runs'}</b>"
cell_display.show_until(over.is_set, html, str)
"""
JOINS = """
for thread in threads():
    if thread.name == "skypane display":
        thread.join()
"""
ENDS = f"over.set(){JOINS}assert looks[0] is False and looks[-1] is True"


def outputs(*cells: str) -> list[Any]:
    """Return what each cell of a notebook shows."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    return [cell.outputs for cell in NotebookClient(notebook, timeout=600).execute().cells]


def test_the_html_of_a_cell_is_that_of_the_end_and_there_once():
    first, _, last = outputs(SHOWN, "1 + 1", ENDS)
    assert [output.data["text/html"] for output in first] == ["<b>over</b>"]
    assert last == []


STREAMS = """
import skypane as sp
rows = sp.session().readStream.schema("at timestamp, price double").json({folder!r} + "/in")
job = sp.stream(rows, "price MIN", time="at", window="1 day", checkpoint={folder!r} + "/state", output={folder!r} + "/out")
handle = job.start(trigger="available now")
handle.display()
"""
STOPS = f"from threading import enumerate as threads\nhandle.await_termination(){JOINS}sp.session().stop()"


@pytest.mark.slow
def test_a_query_is_shown_until_it_has_ended(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text('{"at": "2025-01-01T09:00:00Z", "price": 1}')
    shown, _ = outputs(STREAMS.format(folder=str(tmp_path)), STOPS)
    (html,) = [output.data["text/html"] for output in shown if output.output_type == "display_data"]
    assert "stopped" in html
    assert "batch 0" in html


WITHOUT = """
import sys
sys.modules["IPython"] = None  # as if it were not installed
from skypane.runtime.cell_display import show_until
from skypane.types import ConfigError
try:
    show_until(lambda: True, str, str)
except ConfigError as error:
    print(error)
"""


SHOWS = """
from threading import enumerate as threads
from skypane.runtime.cell_display import show_until
show_until(lambda: False, lambda: "<b>x</b>", lambda: "the text")
assert [thread.name for thread in threads()].count("skypane display") == 0
"""
TERMINAL = """
from IPython.terminal.interactiveshell import TerminalInteractiveShell
TerminalInteractiveShell.instance()
"""


@pytest.mark.parametrize(
    ("program", "shown"), [(WITHOUT, "display() is for notebooks"), (SHOWS, "the text"), (TERMINAL + SHOWS, "the text")]
)
def test_elsewhere_it_ends_with_a_line(program: str, shown: str, tmp_path: Path):
    (line,) = lines_of("-c", program, env=os.environ | {"IPYTHONDIR": str(tmp_path)})
    assert line.startswith(shown)
