"""What comes to the driver in a batch: it depends on tasks and panes, and not on rows and keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from measure.driver_share import Share, share


def counted(folder: Path, *, tasks: int = 4, rows: int = 4_000, keys: int = 10, panes: int = 3) -> Share:
    return share(tasks, rows, keys, panes, folder / f"{tasks}-{rows}-{keys}-{panes}")


@pytest.mark.long
def test_the_driver_gets_a_reference_for_each_task_and_pane_however_many_rows_and_keys_there_are(tmp_path: Path):
    few = counted(tmp_path)
    assert (few.partials, few.partial_rows, few.merged_rows) == (12, 120, 0)
    many = counted(tmp_path, rows=40_000, keys=10_000)
    assert many.partials == 12
    assert many.partial_rows > 100 * few.partial_rows
    assert many.reports == pytest.approx(few.reports, rel=0.1)
    assert many.manifest == pytest.approx(few.manifest, rel=0.1)
    assert counted(tmp_path, tasks=8).partials == counted(tmp_path, panes=6).partials == 24


@pytest.mark.long
def test_partials_of_a_pane_with_very_many_are_merged_if_they_have_few_rows(tmp_path: Path):
    merged = counted(tmp_path, tasks=20)
    assert (merged.partials, merged.merged_rows) == (60, merged.partial_rows)
    assert merged.manifest < counted(tmp_path, tasks=15).manifest
