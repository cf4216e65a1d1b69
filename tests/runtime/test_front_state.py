"""The state of a continuous skyline in a checkpoint: which partials the front is rebuilt from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.runtime.continuous_streams import PLAN, SCHEMA
from tests.runtime.streams import late_rows

from skypane.operators.fronts import update_schema
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.front_program import ContinuousProgram, ContinuousState
from skypane.runtime.spark.engine.partials import PARTIALS, attempt_name
from skypane.types import CheckpointError


@pytest.fixture
def program(tmp_path: Path) -> ContinuousProgram:
    store = DocumentStore.at(str(tmp_path)).child(PARTIALS)
    store.make()
    intake = SimpleNamespace(schema=SCHEMA, partials=store)
    return ContinuousProgram(PLAN, cast("Any", intake), update_schema(PLAN.query, SCHEMA))


def snapshot_with_rows(program: ContinuousProgram) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return progress and state of a front that has taken some rows, as JSON values."""
    rows = PLAN.query.lift(pa.concat_tables(late_rows(3, batches=2)).combine_chunks())
    refs = partials.write(program._intake.partials, attempt_name(0, 0), [rows])
    pane = PLAN.windows.pane_at(int(PLAN.query.times(rows).max())) + 1
    first = program.init()
    state = ContinuousState(first.waiting, tuple(refs), SCHEMA.empty_table())
    return dict(PLAN.progress.snapshot(first.progress)), state.snapshot() | {"next_window": pane}


def test_a_front_is_rebuilt_from_its_partials(program: ContinuousProgram) -> None:
    progress, operator = snapshot_with_rows(program)
    state = program.restore(progress, operator)
    assert state.current.num_rows > 0
    assert state.snapshot()["front_partials"] == operator["front_partials"]


def test_a_checkpoint_of_version_0_2_is_read_and_written_with_the_new_key(program: ContinuousProgram) -> None:
    progress, operator = snapshot_with_rows(program)
    before = {("told" if key == "front_partials" else key): value for key, value in operator.items()}
    state = program.restore(progress, before)
    assert state.current.equals(program.restore(progress, operator).current)
    assert state.snapshot()["front_partials"] == before["told"]
    assert "told" not in state.snapshot()


def test_a_state_without_the_partials_of_the_front_is_refused(program: ContinuousProgram) -> None:
    progress, operator = snapshot_with_rows(program)
    del operator["front_partials"]
    with pytest.raises(CheckpointError, match="the front in the checkpoint cannot be read: KeyError"):
        program.restore(progress, operator)
