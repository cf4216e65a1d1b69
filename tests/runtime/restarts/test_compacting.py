"""A copy of a folder of answers with its files joined: the same rows in the same order, and the query goes on in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.rolling_stream import ROWS, Rolling
from tests.stores.memory import in_memory

from skypane.cli.main import main
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.sinks.compacting import compact
from skypane.runtime.spark.sinks.folder_owner import OWNER
from skypane.types import CheckpointError, ConfigError, SkypaneError

KINDS = (pa.schema([("a", pa.int64())]), pa.schema([("a", pa.int64()), ("b", pa.string())]))
numbers = iter(range(1_000_000))


@pytest.fixture(autouse=True, scope="module")
def _memory() -> Iterator[None]:
    with in_memory():
        yield


def written(folder: DocumentStore, batches: list[tuple[int, list[int]]]) -> None:
    """Write batches, each of a kind of schema, with so many rows in each of its files."""
    folder.make()
    row = iter(range(1_000_000))
    for number, (kind, files) in enumerate(batches):
        for place, count in enumerate(files):
            columns = {name: [next(row) for _ in range(count)] for name in KINDS[kind].names}
            table = pa.table(columns).cast(KINDS[kind])
            folder.write_parquet(f"part-{number:012d}-{place:05d}.parquet", KINDS[kind], [table])
    folder.write_json(OWNER, {"query": "q", "holds": "part"})


def rows_in(folder: DocumentStore) -> list[dict[str, object]]:
    """Return the rows of a folder, in the order of its files."""
    files = [name for name in folder.names() if name.endswith(".parquet")]
    return [row for name in files for row in pq.read_table(pa.BufferReader(folder.read(name))).to_pylist()]


def digests(folder: DocumentStore) -> dict[str, str]:
    return {name: hashlib.sha256(folder.read(name)).hexdigest() for name in folder.names()}


folders = st.lists(st.tuples(st.integers(0, 1), st.lists(st.integers(0, 4), min_size=1, max_size=3)), max_size=8)


@pytest.mark.parametrize("scheme", ["", "s3://bucket"])
@given(batches=folders, size=st.sampled_from([1, 200, 1_000, 1 << 30]))
def test_a_copy_has_the_same_rows_in_the_same_order(
    scheme: str, tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[int, list[int]]], size: int
):
    place = f"{scheme or tmp_path_factory.mktemp('compact')}/{next(numbers)}"
    source, copy = DocumentStore.at(f"{place}/out"), DocumentStore.at(f"{place}/copy")
    written(source, batches)
    before = digests(source)
    done = compact(source, copy, size)
    assert digests(source) == before
    assert rows_in(copy) == rows_in(source)
    assert done.rows == len(rows_in(source))
    assert done.files == len(before) - 1
    assert done.copied == len(copy.names()) - 1 <= done.files
    assert copy.read(OWNER) == source.read(OWNER)
    assert copy.folders() == []
    newest = [name for name in before if name.startswith(f"part-{len(batches) - 1:012d}-")]
    assert {name: digests(copy)[name] for name in newest} == {name: before[name] for name in newest}
    if size == 1 << 30 and len({kind for kind, _ in batches}) == 1:
        assert len(copy.names()) - 1 - len(newest) <= 1, "all but the newest batch are in one file"


def test_a_query_continues_in_the_copy(tmp_path: Path):
    job = Rolling(str(tmp_path), dict.fromkeys(range(30), 2))
    with job.programs():
        engine = job.engine(None)
        for number in range(20):
            engine(ROWS, number)
        assert main(["compact", str(tmp_path / "out"), str(tmp_path / "copy")]) == 0
        (tmp_path / "out").rename(tmp_path / "before")
        (tmp_path / "copy").rename(tmp_path / "out")
        assert len(list((tmp_path / "out").glob("*.parquet"))) == 2
        engine = job.engine(None)
        for number in range(20, 25):
            engine(ROWS, number)
        assert job.read() == job.expected(25)


def test_a_batch_that_was_not_committed_is_recognised_in_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    job = Rolling(str(tmp_path), dict.fromkeys(range(30), 2))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with job.programs():
        engine = job.engine(None)
        for number in range(5):
            engine(ROWS, number)
        with monkeypatch.context() as patch:
            patch.setattr(type(engine.ledger), "commit", killed)
            with pytest.raises(KeyboardInterrupt):
                engine(ROWS, 5)
        compact(DocumentStore.at(f"{tmp_path}/out"), DocumentStore.at(f"{tmp_path}/copy"), 1 << 30)
        (tmp_path / "out").rename(tmp_path / "before")
        (tmp_path / "copy").rename(tmp_path / "out")
        job.engine(None)(ROWS, 5)
        assert job.read() == job.expected(6)


def test_the_command_prints_the_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    written(DocumentStore.at(str(tmp_path / "out")), [(0, [1, 2]), (0, [3]), (0, [4])])
    assert main(["compact", str(tmp_path / "out"), str(tmp_path / "copy"), "--mib", "1"]) == 0
    assert capsys.readouterr().out == f"4 files with 10 rows became 2 in {tmp_path / 'copy'}\n"


def test_rejected_rows_are_not_joined(tmp_path: Path):
    """A joined file would have rows that were readmitted, and rows that were not, under one number."""
    late = DocumentStore.at(str(tmp_path / "late"))
    written(late, [(0, [1]), (0, [1])])
    late.write_json(OWNER, {"query": "q", "holds": "late"})
    with pytest.raises(ConfigError, match=r"late holds rejected rows: .* give late= a roll"):
        compact(late, DocumentStore.at(str(tmp_path / "copy")), 1)


@pytest.mark.parametrize("end", ["write_parquet", "move", "write_json"])
def test_a_copy_that_was_not_completed_cannot_be_taken_for_a_whole_one(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    out, copy = DocumentStore.at(str(tmp_path / "out")), DocumentStore.at(str(tmp_path / "copy"))
    written(out, [(0, [1]), (0, [1]), (0, [1])])

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(DocumentStore, end, full)
        with pytest.raises(SkypaneError, match=r"the copy in .*copy cannot be completed \(no space left on device\)"):
            compact(out, copy, 1 << 30)
    assert not copy.has(OWNER)
    copy.clear()
    compact(out, copy, 1 << 30)
    assert rows_in(copy) == rows_in(out)


def test_what_cannot_be_copied_is_refused(tmp_path: Path):
    out, copy = DocumentStore.at(str(tmp_path / "out")), DocumentStore.at(str(tmp_path / "copy"))

    def assert_refused(message: str, target: DocumentStore = copy, error: type[Exception] = ConfigError) -> None:
        with pytest.raises(error, match=message):
            compact(out, target, 1)

    assert_refused("is not the folder of a query's answers")
    written(out, [(0, [1]), (0, [1])])
    copy.make()
    (tmp_path / "copy" / "mine").touch()
    assert_refused("copy is not empty")
    (tmp_path / "copy" / "mine").rename(tmp_path / "mine")
    assert_refused("mine cannot be a folder", DocumentStore.at(str(tmp_path / "mine")))
    assert_refused("out/joined is in the folder that is copied", out.child("joined"))
    assert_refused("out is in the folder that is copied", DocumentStore.at(str(tmp_path / "copy" / ".." / "out")))
    out.write_json(OWNER, {"query": "q", "holds": "front"})
    assert_refused("holds a current front")
    out.write_json(OWNER, {"query": "q", "holds": "part"})
    (tmp_path / "out" / "part-000000000002-00000.csv").touch()
    assert_refused(r"part-000000000002-00000\.csv is not parquet")
    (tmp_path / "out" / "part-000000000002-00000.csv").rename(tmp_path / "out" / "part-000000000002-00000.parquet")
    assert_refused(r"part-000000000002-00000\.parquet cannot be read", error=CheckpointError)
    assert copy.names() == []
