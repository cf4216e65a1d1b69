"""The notebooks of docs with their outputs: `python -m measure.notebooks docs` runs the texts in docs/notebooks.

A text, in Markdown as Jupytext reads it, is what people edit and review. The file that is written beside it, of Jupyter's
own format, is what Jupyter, hosts of code and the site show. `python -m measure.notebooks docs late-data` runs one alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

_LONGEST: Final = 1_800
"""Seconds that a cell may take."""
_METADATA: Final = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
"""What is the same on every machine: a kernel adds the version of its Python."""


def text_notebook(page: Path) -> NotebookNode:
    """Return the notebook of a text, without outputs; its cells have their numbers as ids, so that no two runs differ."""
    notebook: NotebookNode = jupytext.read(page)
    notebook.metadata = _METADATA
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell.metadata = {}
    return notebook


def executed(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run a notebook in a folder, where it may leave files; return it with its outputs, without the log of Java and Spark.

    Raises nbclient's CellExecutionError, with the cell, if one fails.
    """
    settings = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=_LONGEST, record_timing=False, coalesce_streams=True, resources=settings)
    done: NotebookNode = client.execute(env=_activated(folder))
    for cell in done.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in map(_without_colours, cell.outputs) if output.get("name") != "stderr"]
    done.metadata = _METADATA
    return done


def _without_colours(output: NotebookNode) -> NotebookNode:
    """Return an output without the codes by which IPython resets the colours of a terminal after a command."""
    if output.get("name") == "stdout":
        output.text = output.text.replace("\x1b[0m", "")
    return output


def _activated(folder: Path) -> dict[str, str]:
    """Return the variables of a terminal in which the environment of this Python is active, with temporary files in a folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "TMPDIR": str(folder), "IPYTHONDIR": str(folder)}


def pages(docs: Path) -> list[Path]:
    """Return the texts of the notebooks."""
    return sorted((docs / "notebooks").glob("*.md"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the notebooks, and write each beside its text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("docs", type=Path)
    parser.add_argument("names", nargs="*", help="the notebooks to run (all)")
    given = parser.parse_args(arguments)
    known = {page.stem: page for page in pages(given.docs)}
    if unknown := [name for name in given.names if name not in known]:
        parser.error(
            f"no notebook {', '.join(unknown)} in {given.docs / 'notebooks'}, which has {', '.join(known) or 'none'}"
        )
    for name in given.names or known:
        print(name, flush=True)
        with TemporaryDirectory() as folder:
            done = executed(text_notebook(known[name]), Path(folder))
        nbformat.write(done, known[name].with_suffix(".ipynb"))  # type: ignore[no-untyped-call]
    return 0


if __name__ == "__main__":
    sys.exit(main())
