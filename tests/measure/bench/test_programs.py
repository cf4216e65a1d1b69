"""Which programs `make bench` runs, in which order, and how long it says that they will take."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure.bench import running
from measure.bench.programs import LEFT_OUT, Program, chosen, every, modules, schedule
from measure.bench.running import Estimate, ProgramError, missing, result_of, to_continue, words
from measure.results.speed import QUOTED, TURNS
from tests.checkout import ROOT
from tests.measure.results.runs import MACHINE, result, run

PROGRAMS = [Program("a", "a", turns=3), Program("b", "b"), Program("c", "c")]


def test_all_programs_run_unless_their_reason_is_stated():
    assert {program.name for program in chosen([])} == {program.name for program in every()} - LEFT_OUT.keys()
    assert [program.name for program in chosen(["limits", "sketches"])] == ["limits", "sketches"]
    with pytest.raises(KeyError, match="nothing"):
        chosen(["nothing"])


@pytest.mark.parametrize("name", modules())
def test_a_program_takes_its_arguments_and_returns_what_it_has_found(name):
    """As `make bench` calls it."""
    source = (ROOT / "measure" / "bench" / f"{name}.py").read_text(encoding="utf-8")
    (main,) = (one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef) and one.name == "main")
    assert ast.unparse(main.args) == "argv: Sequence[str] | None=None"
    assert main.returns is not None
    assert ast.unparse(main.returns) in {"Found", "record.Found"}
    assert "--quick" in source


def test_what_readme_quotes_is_run_several_times():
    assert {program.module: program.turns for program in every() if program.turns > 1} == dict.fromkeys(QUOTED, TURNS)
    assert {program.turns for program in chosen([], quick=True)} == {1}


@given(st.lists(st.integers(1, 4), max_size=6))
def test_turns_of_a_program_lie_apart_and_none_is_lost(turns):
    programs = [Program(str(number), "m", turns=count) for number, count in enumerate(turns)]
    steps = schedule(programs)
    assert sorted((program.name, turn) for program, turn in steps) == sorted(
        (program.name, turn) for program in programs for turn in range(1, program.turns + 1)
    )
    assert [turn for _, turn in steps] == sorted(turn for _, turn in steps)


def test_a_run_lacks_what_it_has_not_and_what_was_disturbed():
    steps = schedule(PROGRAMS)
    known = run(result("a"), result("b", others=0.5), result("a", turn=3))
    assert [(program.name, turn) for program, turn in missing(known, steps)] == [("b", 1), ("c", 1), ("a", 2)]
    assert [program.name for program, _ in missing(replace(known, anyway=True), steps)] == ["c", "a"]
    assert [program.name for program, _ in missing(replace(known, quick=True), steps)] == ["c", "a"]


def test_a_run_is_continued_where_it_ended():
    file, known = Path("new.json"), run(result("a"), began="2026-11-27T10:00:00+00:00")
    older = run(began="2026-11-26T10:00:00+00:00")
    new = run(began="2026-11-27T12:00:00+00:00")
    assert to_continue({Path("old.json"): older, file: known}, new, schedule(PROGRAMS)) == (file, known)


@pytest.mark.parametrize(
    "new",
    [
        run(began="2026-11-28T10:30:00+00:00"),
        replace(run(began="2026-11-27T12:00:00+00:00"), machine=MACHINE | {"cores": "4 cores"}),
        replace(run(began="2026-11-27T12:00:00+00:00"), versions={"skypane": "0.3.0"}),
        run(began="2026-11-27T12:00:00+00:00", quick=True),
        run(began="2026-11-27T12:00:00+00:00", anyway=True),
    ],
    ids=["a day later", "another machine", "other versions", "other sizes", "beside other work"],
)
def test_another_run_is_not_continued(new):
    known = run(result("a"), began="2026-11-27T10:00:00+00:00")
    assert to_continue({Path("one.json"): known}, new, schedule(PROGRAMS)) is None


def test_a_run_that_has_everything_is_not_continued():
    known = run(result("b"), result("c"))
    new = run(began="2026-11-27T15:00:00+00:00")
    assert to_continue({Path("one.json"): known}, new, schedule(PROGRAMS[1:])) is None
    assert to_continue({}, new, schedule(PROGRAMS)) is None


def test_what_has_never_run_is_counted_and_not_guessed():
    earlier = run(replace(result("a"), seconds=120.0), replace(result("b"), seconds=30.0))
    steps = schedule(PROGRAMS)
    assert Estimate.of([earlier], quick=False).left(steps) == (
        "about 2 min left, and 3 of unknown time, never run before"
    )
    assert Estimate.of([earlier], quick=False).left(schedule(PROGRAMS[1:2])) == "about 30 s left"
    assert Estimate.of([earlier], quick=True).left(steps) == "5 of unknown time, never run before"
    assert Estimate({}).left([]) == "nothing left"


def test_the_newest_time_of_a_program_counts():
    runs = [run(replace(result("a"), seconds=120.0)), run(replace(result("a"), seconds=10.0))]
    assert Estimate.of(runs, quick=False).known == {("a", True): 10.0}


def test_a_further_turn_has_a_separate_time():
    earlier = Estimate({}).with_result(replace(result("a", turn=2), seconds=20.0))
    assert earlier.left(schedule(PROGRAMS[:1])) == "about 40 s left, and 1 of unknown time, never run before"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (99.6, "100 s"), (100, "2 min"), (3_599, "1 h 0 min")])
def test_times_in_words(seconds, text):
    assert words(seconds) == text


@pytest.mark.parametrize(("which", "count"), [({}, 1), ({"anyway": True}, 0), ({"quick": True}, 0)])
def test_a_disturbed_result_is_a_trouble_unless_it_is_published_or_of_small_sizes(which, count, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "result_of", lambda step, *_, **__: result(step[0].name, others=0.5))
    steps = schedule(PROGRAMS[1:2])
    done, troubles = running.measure(run(**which), tmp_path / "run.json", steps, Estimate({}), tmp_path, lambda _: None)
    assert troubles == ["b: other programs had 50% of the CPU time, more than 5%"][:count]
    assert [one.name for one in done.results] == ["b"]


@pytest.mark.long
def test_a_program_that_fails_is_named_with_its_output(tmp_path):
    log = tmp_path / "logs" / "sketches.log"
    with pytest.raises(ProgramError, match=f"sketches ended with 2; its output is in {log}"):
        result_of((Program("sketches", "sketches", ["--nothing"]), 1), log, quick=False)
    assert b"unrecognized arguments: --nothing" in log.read_bytes()
