"""Every figure is measured, judged, drawn and written, on a stream too short for its claims."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skypane.cli.main import main
from skypane.types import ConfigError
from skypane_papers import page, registry
from skypane_papers.figure import Claim, Figure, Finding, Plot, measure


@pytest.mark.parametrize("name", registry.names())
def test_every_figure_is_measured_judged_and_drawn(name: str, tmp_path: Path):
    figure = registry.figure(name)
    measured = measure(name, figure, quick=True)
    assert len(measured.rows) > 1
    for plot in figure.plots:
        assert {plot.x, plot.y, *plot.where} | ({plot.by} if plot.by else set()) <= set(measured.rows.columns)
        assert np.isfinite(measured.rows[plot.y].to_numpy(float)).any()
    assert len(measured.findings) == len(figure.claims) > 0
    assert all(finding.ours for finding in measured.findings)
    written = page.write(measured, tmp_path)
    assert [file.name for file in written if file.suffix == ".svg"] == [
        f"{name}{plot.name}.svg" for plot in figure.plots
    ]
    assert all(file.stat().st_size for file in written)


def tiny(*, holds: bool) -> Figure:
    claim = Claim("twice two is four", lambda rows: Finding(f"{rows['b'].sum():.0f}", holds), "for a reason")
    rows = pd.DataFrame({"a": [1, 2], "b": [1.5, 2.5], "c": ["u", "v"]})
    return Figure("sums", "two rows", lambda _: rows, (claim,), (Plot("", "t", "a", "b", by="c", bars=True),))


@pytest.mark.parametrize(("holds", "line"), [
    (True, "| twice two is four | 4 | yes |"),
    (False, "| twice two is four | 4: for a reason | no |"),
])  # fmt: skip
def test_the_page_lists_claim_finding_and_verdict_side_by_side(holds: bool, line: str):
    assert line in page.text(measure("x", tiny(holds=holds)))


def test_a_quick_run_states_that_it_judges_nothing():
    assert "too short for the claims" in page.text(measure("x", tiny(holds=True), quick=True))


@pytest.mark.parametrize(("form", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_rows_are_written_as_they_were_measured(form: str, read, tmp_path: Path):
    measured = measure("x", tiny(holds=True))
    first, *_ = page.write(measured, tmp_path, form)
    pd.testing.assert_frame_equal(read(first), measured.rows)


def test_the_list_names_every_figure_with_what_it_shows(capsys: pytest.CaptureFixture[str]):
    assert main(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == registry.names()
    assert any(line.startswith("paper1-figure-8 ") and "splitting policies" in line for line in lines)


@pytest.mark.parametrize(("arguments", "message"), [
    (["paper1-figure-99"], "unknown figure 'paper1-figure-99'; `skypane reproduce --list` lists paper1-figure-"),
    ([], "NAME is missing; give a figure or `all`"),
])  # fmt: skip
def test_what_cannot_be_reproduced_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert main(["reproduce", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_rows_in_another_format_are_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="csv or parquet, got 'xls'"):
        page.write(measure("x", tiny(holds=True)), tmp_path, "xls")
