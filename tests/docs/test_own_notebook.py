"""The cells for a notebook of your own, from the page's text, in a kernel: they answer as the page states, and the display follows."""

from __future__ import annotations

from pathlib import Path

import nbformat
from measure.notebooks import executed
from nbformat import NotebookNode
from tests.docs.notebook_outputs import DOCS, table
from tests.page_steps import programs

WINDOWS = """
hours = sp.skyline(offers, "price MIN, hours MAX", time="seen", window="1 hour")
hours.orderBy("window_start", "price").toPandas()
"""
ENDS = """
from threading import enumerate as threads
for thread in threads():
    if thread.name == "skypane display":
        thread.join()
spark.stop()
"""


def test_each_cell_answers_as_the_page_states_and_the_display_shows_the_end(tmp_path: Path):
    cells = [*programs((DOCS / "notebooks.md").read_text(encoding="utf-8")), WINDOWS, ENDS]
    done = executed(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), tmp_path)
    static, stream, _, answers, windows, _ = done.cells
    assert sorted(models(static)) == ["A", "B"]
    assert models(windows) == ["B", "A", "D"]
    assert models(answers) == ["B", "A", "E"]
    (shown,) = [output.data["text/html"] for output in stream.outputs if output.output_type == "display_data"]
    assert "stopped" in shown
    assert "batch 1" in shown


def models(cell: NotebookNode) -> list[str]:
    """Return the column `model` of the DataFrame that a cell ends with."""
    names, *rows = table(cell)
    return [row[names.index("model")] for row in rows]
