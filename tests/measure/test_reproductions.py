"""The page of figures: which are measured beside each other, its date, and runs that are continued."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from measure.reproductions import __main__ as reproductions
from measure.reproductions.document import UNKNOWN, Part, parts, write
from measure.reproductions.running import Running, Told, split
from measure.reproductions.stamp import stamp

from skypane.types import ConfigError
from skypane_papers import registry

ORDER = ("a", "b", "c")
EMPTY = "# Page\n\n<!-- measured -->\n<!-- /measured -->\n\n<!-- figures -->\n{}\n<!-- /figures -->\n\nthe end\n"
QUICK = ("paper1-figure-7", "paper5-figure-3", "paper1-figure-5", "paper4-figure-6")
"""The first measures time."""


def page(folder: Path, text: str = "") -> Path:
    document = folder / "reproductions.md"
    document.write_text(EMPTY.format(text), encoding="utf-8")
    return document


def part(name: str, on: str) -> Part:
    return Part(f"## {name}: figure {name}\n\nregime\n\n| a |", f"Measured on {on}.")


def test_the_line_of_most_parts_is_the_head_and_others_have_their_own(tmp_path: Path):
    document = page(tmp_path)
    known = {"a": part("a", "Monday"), "b": part("b", "Sunday"), "c": part("c", "Monday")}
    write(document, known, ORDER)
    text = document.read_text(encoding="utf-8")
    assert "<!-- measured -->\nMeasured on Monday.\n<!-- /measured -->" in text
    assert text.count("Monday") == 1
    assert "## b: figure b\n\n*Measured on Sunday.*\n\nregime" in text
    assert parts(document) == known
    assert text.endswith("the end\n")


def test_parts_without_a_day_state_that_and_never_give_the_head(tmp_path: Path):
    document = page(tmp_path, "\n\n".join(part(name, "").text for name in "ab"))
    assert [one.stamp for one in parts(document).values()] == [UNKNOWN, UNKNOWN]
    write(document, parts(document) | {"c": part("c", "Monday")}, ORDER)
    text = document.read_text(encoding="utf-8")
    assert "<!-- measured -->\nMeasured on Monday." in text
    assert text.count(f"*{UNKNOWN}*") == 2


def test_a_new_days_line_takes_the_head_as_soon_as_most_parts_have_it(tmp_path: Path):
    document = page(tmp_path)
    for name in ORDER:
        write(document, parts(document) | {name: part(name, "Sunday")}, ORDER)
    for name, head in zip(ORDER, ("Sunday", "Monday", "Monday"), strict=True):
        write(document, parts(document) | {name: part(name, "Monday")}, ORDER)
        assert f"<!-- measured -->\nMeasured on {head}." in document.read_text(encoding="utf-8")


def test_the_line_has_the_day_the_machine_and_the_versions_and_no_name_of_a_host():
    line = stamp(date(2026, 3, 9))
    assert re.fullmatch(
        r"Measured on 9 March 2026: .+, \d+ cores, Python [\d.]+, NumPy \S+, Numba \S+, skypane \S+\.", line
    )


def test_figures_that_measure_time_are_apart():
    beside, alone = split(registry.names())
    assert sorted(beside + alone) == sorted(registry.names())
    assert {name for name in registry.names() if name.startswith("paper2-")} <= set(alone)
    assert {"paper1-figure-9", "paper3-section-6-4-4", "paper4-cost-model"} <= set(alone)
    assert {"paper1-figure-8", "paper5-table-4"} <= set(beside)


def test_figures_that_measure_time_come_last_and_processes_change_nothing():
    beside, timing = set(QUICK[1:]), QUICK[0]
    for jobs in (1, 2):
        told = list(Running(jobs, quick=True).over(QUICK))
        assert {one.name for one in told[:-1]} == beside
        assert told[-1].name == timing
        texts = {one.name: one.text for one in told[:-1]}
        assert texts == {one.name: one.text for one in Running(quick=True).over(QUICK[1:])}


def test_a_run_writes_each_figure_and_continues_with_those_that_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    document = page(tmp_path)
    reproductions.main([str(tmp_path), *QUICK[1:3], "--quick"])
    assert list(parts(document)) == [name for name in registry.names() if name in QUICK[1:3]]
    assert {one.stamp for one in parts(document).values()} == {stamp()}
    capsys.readouterr()
    reproductions.main([str(tmp_path), *QUICK, "--quick", "--resume", "--only", "simulated"])
    assert re.fullmatch(r"1 of 1: paper4-figure-6, \d+ s, \d+ s of CPU\n", capsys.readouterr().err)
    assert set(parts(document)) == set(QUICK[1:])


def test_a_figure_that_fails_does_not_stop_the_others(tmp_path: Path):
    (tmp_path / "arrivals_elastic.txt").write_text("no rates\n", encoding="utf-8")
    told: list[Told] = []
    with pytest.raises(ExceptionGroup) as failed:
        told.extend(Running(2, quick=True, traces=tmp_path).over(("paper5-table-3", *QUICK[1:3])))
    assert failed.value.exceptions[0].__notes__ == ["paper5-table-3"]
    assert sorted(one.name for one in told) == sorted(QUICK[1:3])


def test_a_run_needs_a_process():
    with pytest.raises(ConfigError, match="jobs must be at least 1, got 0"):
        Running(jobs=0)
