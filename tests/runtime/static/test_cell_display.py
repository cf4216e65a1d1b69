"""A cell that shows a query, in a real kernel of Jupyter: its HTML is written again, also while other cells run."""

from __future__ import annotations

import os
from pathlib import Path

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
ENDS = """
over.set()
for thread in threads():
    if thread.name == "skypane display":
        thread.join()
assert looks[0] is False and looks[-1] is True
"""


def test_the_html_of_a_cell_is_that_of_the_end_and_there_once():
    cells = [nbformat.v4.new_code_cell(source) for source in (SHOWN, "1 + 1", ENDS)]
    done = NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=120).execute()
    first, _, last = (cell.outputs for cell in done.cells)
    assert [output.data["text/html"] for output in first] == ["<b>over</b>"]
    assert last == []


STREAMS = """
import skypane as sp
rows = sp.session().readStream.schema("at timestamp, price double").json({folder!r} + "/in")
job = sp.stream(rows, "price MIN", time="at", window="1 day", checkpoint={folder!r} + "/state", output={folder!r} + "/out")
handle = job.start(trigger="available now")
handle.display()
"""
STOPS = """
from threading import enumerate as threads
handle.await_termination()
for thread in threads():
    if thread.name == "skypane display":
        thread.join()
sp.session().stop()
"""


@pytest.mark.slow
def test_a_query_is_shown_until_it_has_ended(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text('{"at": "2025-01-01T09:00:00Z", "price": 1}')
    cells = [nbformat.v4.new_code_cell(source) for source in (STREAMS.format(folder=str(tmp_path)), STOPS)]
    done = NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=600).execute()
    (html,) = [output.data["text/html"] for output in done.cells[0].outputs if output.output_type == "display_data"]
    assert "stopped" in html
    assert "batch 0" in html


WITHOUT = """
import sys
from importlib.abc import MetaPathFinder
class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "IPython":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
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
