"""How far inputs are read in a batch, and by which task: with real files, without Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.runtime.many import read_batches
from tests.runtime.many.read_batches import NOTHING, N, batches, first_batches, grow, kept

from skypane.runtime.spark.sources.many import growing_inputs
from skypane.runtime.spark.sources.many.growing_inputs import FileInput
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.types import CheckpointError


def planner(folder: Path, readers: int = 2, on_loss: str = "fail") -> Planner:
    return Planner(lambda: [FileInput(f"{folder}/*.csv")], readers, on_loss)


def rows(start: Offsets, end: Offsets) -> dict[str, int]:
    found = {Path(name).stem: (to - start.at.get(name, 0)) // 8 for name, to in end.at.items()}
    return {name: count for name, count in found.items() if count}


def test_a_hot_input_starves_no_one(tmp_path):
    grow(tmp_path, hot=100_000, a=5, b=40)
    plan = planner(tmp_path)
    first = plan.latest(NOTHING, 100)
    assert rows(NOTHING, first) == {"a": 5, "b": 40, "hot": 55}
    grow(tmp_path, a=3)
    assert rows(first, plan.latest(first, 100)) == {"a": 3, "hot": 97}


def test_every_input_is_read_within_three_batches_of_a_budget_of_a_third(tmp_path):
    names = [f"s{at:02}" for at in range(30)]
    grow(tmp_path, **dict.fromkeys(names, 50))
    plan = planner(tmp_path)
    *_, (_, place) = first_batches(plan, 10, 3)
    assert set(rows(NOTHING, place)) == set(names)


def test_tasks_stay_even_while_zipf_rates_jump_and_inputs_fall_silent(tmp_path):
    """The fastest inputs are too large to be moved: it is the slow ones that even out."""
    rng = np.random.default_rng(0)
    plan, place = planner(tmp_path), NOTHING
    for batch in range(24):
        means = 2000 / np.arange(1, 61) * np.where(rng.random(60) < 0.2, 0, 1) * (5 if batch % 5 == 4 else 1)
        grow(tmp_path, **{f"s{at:02}": count for at, count in enumerate(rng.poisson(means).tolist())})
        after = plan.latest(place, None)
        loads = [sum(part.end - part.start for part in task) for task in plan.assigned(place, after)]
        assert max(loads) <= sum(loads) / 2 * 1.04
        place = after


@pytest.mark.parametrize("budget", [None, 10])
def test_without_new_lines_there_is_no_batch_and_an_unfinished_line_is_not_new(tmp_path, budget: int | None):
    grow(tmp_path, a=2)
    plan = planner(tmp_path)
    place = plan.latest(NOTHING, budget)
    assert rows(NOTHING, place) == {"a": 2}
    for text, new in (("unfini", False), ("shed\n", True)):
        with (tmp_path / "a.csv").open("a") as file:
            file.write(text)
        assert (plan.latest(place, budget) != place) == new


def test_that_no_input_exists_is_reported_once_with_what_was_looked_for(tmp_path, caplog: pytest.LogCaptureFixture):
    plan = planner(tmp_path)
    for _ in range(3):
        assert plan.latest(NOTHING, None) == NOTHING
    (message,) = caplog.messages
    assert message == f"no input exists yet: {tmp_path}/*.csv; check the names, or wait until one does"
    grow(tmp_path, a=2)
    assert rows(NOTHING, plan.latest(NOTHING, None)) == {"a": 2}
    assert len(caplog.messages) == 1


def test_of_many_inputs_that_do_not_exist_some_are_named(tmp_path, caplog: pytest.LogCaptureFixture):
    read_batches.planner(*(f"{tmp_path}/{at:02}.csv" for at in range(20))).latest(NOTHING, None)
    (message,) = caplog.messages
    assert f"{tmp_path}/07.csv, ...; check the names" in message
    assert "08.csv" not in message


def test_inputs_join_leave_and_come_back_where_they_were(tmp_path):
    grow(tmp_path, a=2, b=2)
    plan = planner(tmp_path)
    place = plan.latest(NOTHING, None)
    (tmp_path / "b.csv").rename(tmp_path / "b.away")
    grow(tmp_path, a=1, new=4)
    second = plan.latest(place, None)
    assert rows(place, second) == {"a": 1, "new": 4}
    (tmp_path / "b.away").rename(tmp_path / "b.csv")
    grow(tmp_path, b=1)
    assert rows(second, plan.latest(second, None)) == {"b": 1}


def test_a_file_that_was_cut_is_an_error_or_begun_again_and_counted(tmp_path):
    grow(tmp_path, a=5)
    place = planner(tmp_path).latest(NOTHING, None)
    (tmp_path / "a.csv").write_text("again\n")
    with pytest.raises(CheckpointError, match=r"a\.csv has 6 bytes, but 40 were read.*on_loss=\"skip\""):
        planner(tmp_path).latest(place, None)
    plan = planner(tmp_path, on_loss="skip")
    after = plan.latest(place, None)
    assert (after.at[f"{tmp_path}/a.csv"], after.lost) == (6, 1)
    for planned in (plan, planner(tmp_path, on_loss="skip")):
        ((part,),) = planned.assigned(place, kept(after))
        assert (part.start, part.end) == (0, 6)


def test_few_tasks_read_many_inputs_evenly(tmp_path):
    grow(tmp_path, **{f"s{at:03}": 20 + at % 7 * 10 for at in range(200)})
    plan = planner(tmp_path)
    end = plan.latest(NOTHING, None)
    tasks = plan.assigned(NOTHING, end)
    loads = [sum(part.end - part.start for part in task) for task in tasks]
    assert len(tasks) == 2
    assert max(loads) <= 1.07 * sum(loads) / 2
    assert sorted(part.input.name for task in tasks for part in task) == sorted(end.at)


def test_a_batch_is_the_same_rows_for_another_driver(tmp_path):
    grow(tmp_path, a=50, b=7, c=30)
    plan = planner(tmp_path)
    end = plan.latest(NOTHING, 60)
    again = planner(tmp_path).assigned(NOTHING, kept(end))
    assert {part for task in again for part in task} == {part for task in plan.assigned(NOTHING, end) for part in task}


def test_what_comes_after_the_end_was_set_is_not_read(tmp_path):
    grow(tmp_path, a=10)
    plan = planner(tmp_path)
    plan.stop_here(NOTHING)
    grow(tmp_path, a=10, b=10)
    *_, (_, place) = batches(plan, 6)
    assert rows(NOTHING, place) == {"a": 10}


def test_a_batch_that_has_begun_needs_its_inputs(tmp_path):
    grow(tmp_path, a=1)
    plan = planner(tmp_path)
    end = plan.latest(NOTHING, None)
    (tmp_path / "a.csv").unlink()
    with pytest.raises(CheckpointError, match="is missing, but a started batch needs it up to 8"):
        planner(tmp_path).assigned(NOTHING, end)
    ((part,),) = plan.assigned(NOTHING, end)
    with pytest.raises(CheckpointError, match=r"a\.csv ends before byte 8, which a started batch needs"):
        list(growing_inputs.read([part], N))


def test_a_listed_file_may_come_later(tmp_path):
    plan = read_batches.planner(tmp_path / "later.csv")
    assert plan.latest(NOTHING, 5) == NOTHING
    grow(tmp_path, later=3)
    assert rows(NOTHING, plan.latest(NOTHING, 5)) == {"later": 3}
