"""What the engine reads of Spark's record of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import spark_files
from skypane.types import CheckpointError, Micros


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


BEGAN = Micros(1_767_225_600_123_000)


def came(last_row: int, promised: float | None = None) -> spark_files.Arrival:
    """Return what is known of batch 3."""
    return spark_files.Arrival(BEGAN, Micros(last_row), promised)


def began(folder: Path, batch: int, millis: int) -> None:
    """Let Spark have begun another batch at this time."""
    shared = f'{{"batchWatermarkMs":0,"batchTimestampMs":{millis},"conf":{{}}}}'
    (folder / "offsets" / str(batch)).write_text(f"v1\n{shared}\n0")


def files(folder: Path, name: str, *written: tuple[int, int]) -> None:
    """Write the log of source 0: for each file the offset that has added it, and when it was written."""
    log = folder / "sources" / "0"
    log.mkdir(parents=True, exist_ok=True)
    lines = [f'{{"path":"file:///in/{at}","timestamp":{time},"batchId":{of}}}' for at, (of, time) in enumerate(written)]
    (log / name).write_text("\n".join(["v1", *lines]))


@pytest.mark.parametrize("name", ["7", "7.compact"])
def test_the_last_row_of_files_came_when_the_newest_was_written(tmp_path, name: str):
    store = record(tmp_path, '{"logOffset":7}')
    began(tmp_path, 2, 1_767_225_599_000)
    files(
        tmp_path, name, *((6, 1_767_225_600_100) for _ in range(2_000)), (7, 1_767_225_599_500), (7, 1_767_225_600_001)
    )
    assert spark_files.arrival(store, 3) == came(1_767_225_600_001_000)


@pytest.mark.parametrize("written", [1_767_225_598_999, 1_600_000_000_000, 1_767_225_600_124])
def test_a_file_that_is_older_than_the_batch_before_or_newer_than_its_own_came_with_the_batch(tmp_path, written: int):
    store = record(tmp_path, '{"logOffset":7}')
    began(tmp_path, 2, 1_767_225_599_000)
    files(tmp_path, "7", (7, written), (7, 1_767_225_600_001))
    assert spark_files.arrival(store, 3) == came(BEGAN)


def test_the_last_row_of_several_sources_is_the_latest_and_unknown_if_that_of_one_is(tmp_path):
    seen = '{"at":{},"seen":1767225600000000}'
    (tmp_path / "known").mkdir()
    store = record(tmp_path / "known", seen, "-", '{"at":{},"seen":1767225599000000}')
    assert spark_files.arrival(store, 3) == came(1_767_225_600_000_000)
    for number, other in enumerate(["5", '{"logOffset":3}', '{"topic":{"0":17}}', '{"seen":"late"}']):
        (tmp_path / str(number)).mkdir()
        assert spark_files.arrival(record(tmp_path / str(number), seen, other), 3) == came(BEGAN), other
    assert spark_files.arrival(store, 4) is None, "Spark has not begun it"


def test_the_shortest_bound_of_the_sources_is_promised(tmp_path):
    store = record(tmp_path, '{"at":{},"promised":5.0}', "7", '{"at":{},"promised":2.5}', '{"at":{}}')
    assert spark_files.arrival(store, 3) == came(BEGAN, 2.5)
