"""What a notebook's cell shows of a job, a query and its batches: a line or a small table, whatever is in them."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.reporting.made import batch
from tests.runtime.streams import late_rows, start_knowing, stream_job, write_batches

import skypane as sp
from skypane import notebook

MOST_LINES, MOST_CHARACTERS = 12, 200


class Cells(HTMLParser):
    """Reads a table of two columns; whatever is not a table breaks it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: dict[str, list[str]] = {"caption": [], "th": [], "td": []}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {"table", "caption", "tbody", "tr", "th", "td"}
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)
        if tag in self.cells:
            self.cells[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.cells[self.open[-1]][-1] += data

    @property
    def pairs(self) -> dict[str, str]:
        return dict(zip(self.cells["th"], self.cells["td"], strict=True))


def shown(value: object) -> dict[str, str]:
    """Return what a cell shows as a table, which must fit it."""
    pairs = Cells(value._repr_html_()).pairs  # type: ignore[attr-defined]
    assert 0 < len(pairs) <= MOST_LINES
    assert all(0 < len(text) <= MOST_CHARACTERS for text in pairs.values())
    assert "\n" not in repr(value)
    return pairs


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "a & b", "</td></table>", '"', "x" * 5_000, "ü\n"])
def test_nothing_in_a_table_is_taken_for_html_or_breaks_the_cell(text: str):
    cells = Cells(notebook.table(text, [(text, text)]))
    (value,) = cells.cells["td"]
    assert value == text or (value.startswith(text[:100]) and len(value) <= MOST_CHARACTERS)
    assert cells.cells["caption"] == [text]


def test_a_batch_is_a_line_and_a_table():
    metrics = batch(
        batch_id=3, rows=12_345, late_rows=67, quarantined={"null x": 1, "future": 2}, windows=4, slack=90_000_000
    )
    assert repr(metrics) == "<batch 3 (1.00 s): 12,345 rows, 67 late rows, 3 rows quarantined, 4 windows answered>"
    pairs = shown(metrics)
    assert (pairs["rows"], pairs["late rows"], pairs["rows quarantined"]) == ("12,345", "67", "3")
    assert "0:01:30" in pairs["slack"]
    assert shown(batch())["slack"] == "not known yet"


def job_of(spark: SparkSession, folder: Path, batches: int, **options: Any) -> sp.Job:
    rows = late_rows(3, batches=batches)
    write_batches(folder / "in", rows)
    return stream_job(spark, folder, sp.Skyline("price MIN, rating MAX"), rows[0].schema, window="50 s", **options)


def test_a_job_and_its_query_are_shown_before_during_and_after(spark: SparkSession, tmp_path: Path):
    workers = sp.WorkerOptions(plq_workers=3, wlq_workers=2)
    job = job_of(spark, tmp_path, batches=2, output=sp.Memory(), workers=workers)
    before = shown(job)
    assert before["query"] == "skyline of price MIN, rating MAX"
    assert before["checkpoint"] == str(tmp_path / "checkpoint")
    assert repr(job).startswith("<skypane job, not started: query: skyline of")
    during: list[dict[str, str]] = []
    handle = start_knowing(job, lambda handle, _: during.append(shown(handle)), trigger="available now")
    assert handle.await_termination(300)
    after = shown(handle)
    assert [pairs["state"] for pairs in during] == ["running"] * 2
    assert during[0]["last batch"].startswith("batch 0 (")
    assert after["batch 0"].startswith("batch 0 (")
    assert [len(axes.lines[0].get_ydata()) for axes in handle.plot().axes] == [2] * 3
    assert (after["state"], after["workers"]) == ("stopped", "3 for panes, 2 for windows")
    assert repr(handle).startswith("<skypane query, state: stopped;")


def test_a_failed_query_states_the_reason(spark: SparkSession, tmp_path: Path):
    def refuse(*_: object) -> None:
        raise ValueError("the sink is full")

    handle = job_of(spark, tmp_path, batches=1, output=refuse).start(trigger="available now")
    with pytest.raises(sp.SkypaneError, match="the sink is full"):
        handle.await_termination(300)
    pairs = shown(handle)
    assert (pairs["state"], pairs["last batch"]) == ("failed", "none yet")
    assert "the sink is full" in pairs["error"]
