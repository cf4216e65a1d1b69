"""The notebooks of docs as they are stored, and what their cells show."""

from __future__ import annotations

import html
import re
from typing import Any, Final

import nbformat
from nbformat import NotebookNode
from tests.checkout import ROOT

DOCS: Final = ROOT / "docs"
_ROW = re.compile(r"<tr[^>]*>(.*?)</tr>", re.DOTALL)
_VALUE = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.DOTALL)


def stored(name: str) -> NotebookNode:
    """Return a notebook with its outputs."""
    notebook: NotebookNode = nbformat.read(DOCS / "notebooks" / f"{name}.ipynb", as_version=4)
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: NotebookNode) -> str:
    """Return the text that a cell prints."""
    return "".join(output.text for output in cell.outputs if output.get("name") == "stdout")


def table(cell: NotebookNode) -> list[list[str]]:
    """Return the rows of the DataFrame that a cell ends with, the first one with the names of the columns; without one, nothing."""
    data: list[Any] = [
        output.data.get("text/html", "") for output in cell.outputs if output.output_type == "execute_result"
    ]
    rows = [_VALUE.findall(row) for row in _ROW.findall("".join(data))]
    return [[html.unescape(value) for value in row] for row in rows]


def by_name(cell: NotebookNode) -> dict[str, list[float]]:
    """Return the numbers of a table by the name that each row begins with."""
    rows = [row for row in table(cell) if any(re.fullmatch(r"-?[\d.]+", value) for value in row[1:])]
    return {name: list(map(float, values)) for name, *values in rows}


def figures(cell: NotebookNode) -> int:
    """Return how many plots a cell shows."""
    return sum("image/png" in output.get("data", {}) for output in cell.outputs)
