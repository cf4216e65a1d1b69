"""What the engine reads of Spark's record of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import spark_files
from skypane.types import CheckpointError


def record(folder: Path, *offsets: str) -> DocumentStore:
    (folder / "offsets").mkdir()
    shared = '{"batchWatermarkMs":0,"batchTimestampMs":1767225600123,"conf":{}}'
    (folder / "offsets" / "3").write_text("\n".join(["v1", shared, *offsets]))
    return DocumentStore.at(folder)


def test_rows_wait_since_the_least_time_that_a_source_of_the_batch_records(tmp_path):
    store = record(
        tmp_path, '{"at":{},"waiting":{"ts":500}}', "7", "-", '{"at":{},"waiting":{"ts":400,"sent":1}}', "{}"
    )
    assert spark_files.waiting_since(store, 3, "ts") == 400
    assert spark_files.waiting_since(store, 3, "sent") == 1
    assert spark_files.waiting_since(store, 3, "time") is None
    assert spark_files.began(store, 3) == 1_767_225_600_123_000


@pytest.mark.parametrize("offset", ["-", "0", '{"at":{"a":1}}', '{"waiting":7}', '{"waiting":{"ts":"late"}}'])
def test_other_offsets_record_no_time(tmp_path, offset: str):
    assert spark_files.waiting_since(record(tmp_path, offset), 3, "ts") is None


def test_a_record_that_is_gone_or_torn_is_an_error_that_names_it(tmp_path):
    store = record(tmp_path, '{"at":')
    for batch in (3, 4):
        with pytest.raises(CheckpointError, match=f"offsets/{batch}"):
            spark_files.waiting_since(store, batch, "ts")
