"""Every figure is measured, judged, drawn and written, on a stream too short for its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skypane.cli.main import main
from skypane.types import ConfigError
from skypane_papers import page, registry
from skypane_papers.figure import TABLE, Cause, Claim, Figure, Finding, Plot, in_each, measure


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


def tiny(finding: Finding, **of_claim: Any) -> Figure:
    claim = Claim("twice two is four", lambda _: finding, **of_claim)
    rows = pd.DataFrame({"a": [1, 2], "b": [1.5, 2.5], "c": ["u", "v"]})
    return Figure("sums", "two rows", lambda _: rows, (claim,), (Plot("", "t", "a", "b", by="c", bars=True),))


HOLDS = tiny(Finding("4", holds=True))
CAUSE = Cause("fingers were counted twice", TABLE)


@pytest.mark.parametrize(("figure", "verdict"), [
    (HOLDS, "holds"),
    (tiny(Finding("4", holds=True, given="whole numbers")), "holds with whole numbers"),
    (tiny(Finding("5", holds=False), cause=CAUSE), "differs: fingers were counted twice (shown by the table above)"),
    (tiny(Finding("5", holds=False), contradiction="page 2 says five"), "the paper contradicts itself: page 2 says five"),
    (tiny(Finding("5", holds=False)), "open"),
])  # fmt: skip
def test_the_page_lists_claim_finding_and_verdict_side_by_side(figure: Figure, verdict: str):
    (finding,) = measure("x", figure).findings
    assert f"| twice two is four | {finding.ours} | {verdict} |" in page.text(measure("x", figure))


@pytest.mark.parametrize(("held", "expected"), [
    ((True, True), Finding("a: 1; b: 2", holds=True)),
    ((False, True), Finding("a: 1; b: 2", holds=True, given="b")),
    ((False, False), Finding("a: 1; b: 2", holds=False)),
])  # fmt: skip
def test_a_claim_is_judged_in_each_setting_and_names_those_with_which_it_holds(
    held: tuple[bool, bool], expected: Finding
):
    rows = pd.DataFrame({"setting": ["x", "y"], "value": [1, 2]})
    judge = in_each(
        "setting", {"a": "x", "b": "y"}, lambda part: Finding(str(part["value"].sum()), held[part.index[0]])
    )
    assert judge(rows) == expected


ROOT = Path(__file__).parents[2]
CAUSES = [
    (name, claim.cause.shown) for name in registry.names() for claim in registry.figure(name).claims if claim.cause
]


@pytest.mark.parametrize(("name", "shown"), CAUSES)
def test_a_cause_is_shown_by_a_table_another_figure_or_a_file(name: str, shown: str):
    assert shown == TABLE or (shown in registry.names() and shown != name) or (ROOT / shown).is_file()


def test_a_quick_run_states_that_it_judges_nothing():
    assert "too short for the claims" in page.text(measure("x", HOLDS, quick=True))


@pytest.mark.parametrize(("form", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_rows_are_written_as_they_were_measured(form: str, read, tmp_path: Path):
    measured = measure("x", HOLDS)
    first, *_ = page.write(measured, tmp_path, form)
    pd.testing.assert_frame_equal(read(first), measured.rows)


def test_the_list_names_every_figure_with_what_it_shows(capsys: pytest.CaptureFixture[str]):
    assert main(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == registry.names()
    assert any(line.startswith("paper1-figure-8 ") and "splitting policies" in line for line in lines)


@pytest.mark.parametrize(("arguments", "message"), [
    (["paper1-figure-99"], "unknown figure 'paper1-figure-99'; `skypane reproduce --list` lists paper1-"),
    ([], "NAME is missing; give a figure or `all`"),
])  # fmt: skip
def test_what_cannot_be_reproduced_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert main(["reproduce", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_rows_in_another_format_are_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="csv or parquet, got 'xls'"):
        page.write(measure("x", HOLDS), tmp_path, "xls")
