"""The notebooks of docs: the two files of each agree, the text states what the outputs show, and a new run shows the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from measure.notebooks import executed, main, pages, text_notebook
from nbformat import NotebookNode
from tests.docs.notebook_outputs import DOCS, code_cells, figures, printed, stored, table
from tests.parameters import slow_but

NAMES = [page.stem for page in pages(DOCS)]
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|\b[A-Z][a-z]+ \d+\b")
"""Code, addresses and dates: numbers in them are names."""
_NUMBER = re.compile(r"(?<![\w.])\d[\d,_]*(?:\.\d+)?")


def test_each_notebook_is_run():
    assert {file.stem for file in (DOCS / "notebooks").glob("*.ipynb")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_file_with_outputs_has_the_cells_of_the_text(name: str):
    text = text_notebook(DOCS / "notebooks" / f"{name}.md")
    assert [(cell.id, cell.cell_type, cell.source) for cell in stored(name).cells] == [
        (cell.id, cell.cell_type, cell.source) for cell in text.cells
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_ten_to_fifteen_cells_with_plots_and_leads_on(name: str):
    notebook = stored(name)
    assert 10 <= len(notebook.cells) <= 15
    assert notebook.cells[0].source.startswith("# ")
    assert "\n## Where to go next\n" in f"\n{notebook.cells[-1].source}"
    assert sum(map(figures, code_cells(notebook))) >= 2
    shown = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert [output for output in shown if output.output_type == "error" or output.get("name") == "stderr"] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_number_of_the_text_is_typed_or_shown_by_a_cell(name: str):
    assert list(_unfounded(stored(name))) == []


def test_a_number_that_no_cell_has_is_found():
    notebook = stored("elastic-workers")
    notebook.cells[-1].source += " 123,456.5 rows on July 98"
    assert list(_unfounded(notebook)) == ["123,456.5"]


def test_a_notebook_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main([str(DOCS), "late-dat"])
    assert "no notebook late-dat in " in capsys.readouterr().err


@pytest.mark.parametrize("name", slow_but([name for name in NAMES if name != "late-data"], NAMES, slow=()))
def test_a_run_of_a_notebook_shows_what_is_stored(name: str, tmp_path: Path):
    assert _shown(executed(text_notebook(DOCS / "notebooks" / f"{name}.md"), tmp_path)) == _shown(stored(name))


def _shown(notebook: NotebookNode) -> list[tuple[str, list[list[str]], int]]:
    """Return what each cell prints, its table, and how many plots it has: how they look depends on fonts."""
    return [(printed(cell), table(cell), figures(cell)) for cell in code_cells(notebook)]


def _unfounded(notebook: NotebookNode) -> Iterator[str]:
    """Yield the numbers of the text that are neither in the code nor in what it shows, rounded or as a share in percent."""
    known: set[float] = set()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            values = " ".join(value for row in table(cell) for value in row)
            known |= {_value(number) for number in _NUMBER.findall(f"{cell.source} {printed(cell)} {values}")}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for number in _NUMBER.findall(_CODE.sub("", cell.source)):
                places = len(number.partition(".")[2])
                if _value(number) not in {round(value, places) for part in known for value in (part, 100 * part)}:
                    yield number


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("_", ""))
