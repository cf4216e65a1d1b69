"""Every figure is measured, judged, drawn and written, on a stream too short for its claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checkout import ROOT

from skypane.cli.main import main
from skypane.types import ConfigError
from skypane_papers import page, registry
from skypane_papers.figure import TABLE, Cause, Claim, Figure, Finding, Measured, Plot, in_each, measure
from skypane_papers.spread import spread


@cache
def quick(name: str) -> Measured:
    return measure(name, registry.figure(name), quick=True)


@pytest.mark.parametrize("name", registry.names())
def test_every_figure_is_measured_judged_and_drawn(name: str, tmp_path: Path):
    figure, measured = registry.figure(name), quick(name)
    assert len(measured.rows) > 1
    for plot in figure.plots:
        assert {plot.x, plot.y, *plot.where} | ({plot.by} if plot.by else set()) <= set(measured.rows.columns)
        assert np.isfinite(measured.rows[plot.y].to_numpy(float)).any()
    assert len(measured.findings) == len(figure.claims) > 0
    assert all(finding.ours for findings in measured.findings for finding in findings)
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
    (tiny(Finding("4", holds=True, given=("whole numbers",))), "holds with whole numbers"),
    (tiny(Finding("5", holds=False), cause=CAUSE), "differs: fingers were counted twice (shown by the table above)"),
    (tiny(Finding("5", holds=False), contradiction="page 2 says five"), "the paper contradicts itself: page 2 says five"),
    (tiny(Finding("5", holds=False)), "open"),
])  # fmt: skip
def test_the_page_lists_claim_finding_and_verdict_side_by_side(figure: Figure, verdict: str):
    ((finding,),) = measure("x", figure).findings
    assert f"| twice two is four | {finding.ours} | {verdict} |" in page.text(measure("x", figure))


@pytest.mark.parametrize(("held", "expected"), [
    ((True, True), Finding("a: 1; b: 2", holds=True)),
    ((False, True), Finding("a: 1; b: 2", holds=True, given=("b",))),
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


def with_seeds(values: Sequence[int], **of_claim: Any) -> Figure:
    """Return a figure whose seeds have these values; its claim holds with those of at most 2, on conditions if 1 or 2."""

    def judge(rows: pd.DataFrame) -> Finding:
        value = int(rows["a"].iloc[0])
        given = {1: ("ease", "care"), 2: ("care",)}.get(value, ())
        return Finding(f"{value} of 9, {100 * value:,} %", value <= 2, given)

    def rows(_: bool, *, seed: int) -> pd.DataFrame:
        return pd.DataFrame({"a": [values[seed]], "b": [0.5], "c": [f"{values[seed]} / 3"]})

    claim = Claim("at most 2", judge, **of_claim)
    return Figure("x", "made", rows, (claim,), (Plot("", "t", "a", "b"),), seeds=len(values))


@pytest.mark.parametrize(("values", "of_claim", "verdict"), [
    ((0, 0, 0), {}, "holds"),
    ((2, 2, 2), {}, "holds with care"),
    ((1, 1, 1), {}, "holds with ease or care"),
    ((1, 2, 1), {}, "holds with 3 of 3 seeds and care; 2 of 3 seeds and ease"),
    ((1, 1, 3), {}, "holds with 2 of 3 seeds and ease or care; else open"),
    ((0, 2, 0), {}, "holds with 2 of 3 seeds; 3 of 3 seeds and care"),
    ((3, 0, 4), {}, "holds with 1 of 3 seeds; else open"),
    ((0, 0, 4), {"cause": CAUSE},
     "holds with 2 of 3 seeds; else differs: fingers were counted twice (shown by the table above)"),
    ((3, 3, 5), {}, "open"),
    ((3, 3, 5), {"contradiction": "page 2 says five"}, "the paper contradicts itself: page 2 says five"),
])  # fmt: skip
def test_a_verdict_counts_the_seeds_with_which_a_claim_holds(
    values: tuple[int, ...], of_claim: dict[str, Any], verdict: str
):
    measured = measure("x", with_seeds(values, **of_claim))
    assert page.verdicts(measured).splitlines()[-1].endswith(f"| {verdict} |")


def test_values_that_vary_with_the_seed_are_shown_from_least_to_most():
    told = page.text(measure("x", with_seeds((3, 1, 12))))
    assert "*3 seeds; " in told
    assert "| 1..12 | 0.5 | 1..12 / 3 |" in told
    assert "| at most 2 | 1..12 of 9, 100..1,200 % |" in told


@pytest.mark.parametrize(
    ("value", "cell"), [(999.7, "1,000"), (999.4, "999"), (-1234.5, "-1,234"), (0.12345, "0.123"), (math.nan, "-")]
)
def test_a_cell_has_three_digits_or_all_of_a_whole_number(value: float, cell: str):
    assert f"| {cell} |" in page.table([pd.DataFrame({"a": [value]})])


def test_a_quick_run_has_one_seed():
    assert [len(measure("x", with_seeds((1, 2, 3)), quick=quick).seeds) for quick in (True, False)] == [1, 3]


def test_the_rows_of_all_seeds_are_written(tmp_path: Path):
    first, *_ = page.write(measure("x", with_seeds((3, 1, 12))), tmp_path)
    assert pd.read_csv(first)[["a", "seed"]].to_numpy().tolist() == [[3, 0], [1, 1], [12, 2]]


@given(st.lists(st.lists(st.integers(-10_000, 10_000), min_size=2, max_size=2), min_size=1, max_size=4))
def test_texts_that_differ_in_numbers_alone_become_one_with_the_range_of_each(pairs: list[list[int]]):
    ends = [(min(column), max(column)) for column in zip(*pairs, strict=True)]
    left, right = (f"{low:,}" if low == high else f"{low:,}..{high:,}" for low, high in ends)
    assert spread([f"G8 {a:,}, {b:,}%" for a, b in pairs]) == f"G8 {left}, {right}%"


@pytest.mark.parametrize(("texts", "expected"), [
    (("n* = 7, 8, 9", "n* = 7, 9, 8"), "n* = 7, 8..9, 8..9"),
    (("1.5-2.5", "1.5-3.5"), "1.5-2.5..3.5"),
    (("1e-05", "0.3"), "1e-05..0.3"),
    (("a: 1; b: x 2", "a: 3; b: y 2"), "a: 1..3; b: x 2 or b: y 2"),
    (("a: 1", "a: 3; b: 2"), "a: 1 or a: 3; b: 2"),
    (("G8 3 K", "G7 3 K"), "G8 3 K or G7 3 K"),
    (("LLW 3", "RR 3", "LLW 3"), "LLW 3 or RR 3"),
])  # fmt: skip
def test_what_is_a_number_and_other_texts_stand_side_by_side_each_once(texts: tuple[str, ...], expected: str):
    assert spread(texts) == expected


SEEDED = [name for name in registry.names() if registry.figure(name).seeds > 1]


@pytest.mark.parametrize("name", SEEDED)
def test_another_seed_measures_something_else(name: str):
    (first,), is_quick = quick(name).seeds, True
    assert not registry.figure(name).measure(is_quick, seed=1).equals(first.rows)


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
