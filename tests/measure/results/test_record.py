"""A run is what its file says, and a comparison computes what it states."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
from measure.results.record import Comparison, Table, Times, every, found_in, read, to_json
from tests.measure.results.runs import COMPARISON, TABLE, result, run


def test_a_run_is_read_as_it_was_written(tmp_path):
    written = run(result(found=[TABLE, COMPARISON]), result("two", others=0.25))
    file = tmp_path / "runs" / "one.json"
    written.write(file)
    again = tmp_path / "again.json"
    read(file).write(again)
    assert again.read_bytes() == file.read_bytes()
    assert json.loads(json.dumps(asdict(read(file)))) == json.loads(json.dumps(asdict(written)))
    assert [each.name for each in file.parent.iterdir()] == ["one.json"]


def test_what_a_program_returns_survives_its_process():
    sent = json.dumps(to_json([TABLE, COMPARISON]))
    back = found_in(json.loads(sent))
    assert json.dumps(to_json(back)) == sent
    table, comparison = back
    assert isinstance(table, Table)
    assert isinstance(comparison, Comparison)
    assert comparison.rate("heapq.merge") == 500_000


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"results": [], "machine": {}, "versions": {}, "began": "", "more": 1}']
)
def test_a_file_that_is_not_a_run_is_named(text, tmp_path):
    (tmp_path / "one.json").write_text(text)
    with pytest.raises(ValueError, match=r"one\.json is not a run of benchmarks that this version reads: "):
        every(tmp_path)


def test_runs_come_oldest_first_whatever_their_files_are_named(tmp_path):
    run(began="2026-11-28T00:00:00+00:00").write(tmp_path / "a.json")
    run(began="2026-11-27T00:00:00+00:00").write(tmp_path / "b.json")
    assert [file.name for file in every(tmp_path)] == ["b.json", "a.json"]
    assert every(tmp_path / "nothing") == {}


def test_rates_are_medians_of_rows_by_wall_seconds():
    assert COMPARISON.rates("columnar merge") == [2e6, 4e6, 2.5e6]
    assert COMPARISON.rate("columnar merge") == 2.5e6
    assert COMPARISON.wall("columnar merge") == 0.4
    assert COMPARISON.cpu("columnar merge") == 0.5
    assert COMPARISON.rate("heapq.merge") == 500_000  # of its own rows


def test_a_ratio_is_above_one_where_ours_is_faster_and_below_where_it_loses():
    assert COMPARISON.ratio("heapq.merge") == 5
    assert COMPARISON.ratio("PriorityQueue") == 0.25
    assert COMPARISON.ratio(COMPARISON.ours) == 1


def test_cpu_seconds_that_were_not_measured_in_each_round_are_not_stated():
    assert COMPARISON.cpu("PriorityQueue") is None
    half = replace(COMPARISON, sides={"columnar merge": [Times(1, 2), Times(1)]})
    assert half.cpu("columnar merge") is None


@pytest.mark.parametrize(
    ("sides", "problem"),
    [
        ({"other": [Times(1)]}, "'mine' is not among the sides"),
        ({"mine": [Times(1)], "other": []}, "no round of other"),
    ],
)
def test_what_cannot_be_compared_is_refused(sides, problem):
    with pytest.raises(ValueError, match=problem):
        Comparison("a subject", "a case", 1, "mine", sides)


def test_a_result_replaces_that_of_the_same_program_and_turn():
    before = run(result("one"), result("two"), result("one", turn=2))
    after = before.added(result("one", found=[TABLE]))
    assert [(each.name, each.turn, len(each.tables)) for each in after.results] == [
        ("two", 1, 0), ("one", 2, 0), ("one", 1, 1),
    ]  # fmt: skip
    assert len(before.results) == 3


def test_the_stamp_has_day_machine_and_version():
    assert run().stamp == "*Measured on 27 November 2026: Some CPU, 2 cores; skypane 0.2.0.*"
