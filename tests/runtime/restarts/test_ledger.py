from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs
from tests.rows import flipped
from tests.runtime.interleaving import Interleaving

from skypane.runtime.spark.document_store import DRAFT, DocumentStore
from skypane.runtime.spark.engine.ledger import KEEP, Ledger, Manifest
from skypane.runtime.spark.engine.ownership import Ownership
from skypane.runtime.spark.engine.query_definition import QueryDefinition
from skypane.types import CheckpointError

DEFINITION = {"query": {"k": 3, "by": ["a"]}, "window": {"length": 10, "slide": 5}, "time": "t", "source": None}


def manifest(batch_id: int) -> Manifest:
    return Manifest(
        batch_id=batch_id,
        progress={"punctuation": 10 * batch_id, "newest": None},
        fingerprint={"rows": batch_id, "times": 2**64 - 1},
        operator={"panes": {"-1": [["f.arrow", 0, 7]], "12": [["f.arrow", 1, 2], ["g.arrow", 0, 0]]}, "next_window": 3},
        control={"workers": {"plq": 2, "wlq": 1}},
        metrics={"rows": batch_id},
        drains=0,
    )


def claimed(store: DocumentStore, definition: dict[str, Any] = DEFINITION) -> Ledger:
    """Return the ledger as a driver that starts reads it."""
    ledger = Ledger(store)
    ledger.claim(QueryDefinition(definition))
    return ledger


def name_of(store: DocumentStore, definition: dict[str, Any] = DEFINITION) -> str:
    return Ledger(store).claim(QueryDefinition(definition))


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    return DocumentStore.at(str(tmp_path / "skypane"))


def files(store: DocumentStore) -> list[str]:
    return store.child("ledger").names()


def test_a_drain_may_be_the_first_batch(store: DocumentStore):
    ledger = claimed(store)
    ledger.begin_drain(0)
    assert ledger.drain_begun


def test_a_new_ledger_is_empty(store: DocumentStore):
    ledger = Ledger(store)
    assert ledger.latest() is None
    assert ledger.history(10) == []


def test_the_newest_manifest_is_found_again(store: DocumentStore):
    ledger = claimed(store)
    for batch_id in range(12):  # ten follows nine: names sort as numbers
        ledger.commit(manifest(batch_id))
        assert ledger.latest() == manifest(batch_id)
    again = Ledger(store)
    assert again.latest() == manifest(11)
    assert again.history(3) == ledger.history(3) == [{"rows": 9}, {"rows": 10}, {"rows": 11}]
    assert again.history(0) == []
    assert len(again.history(1_000)) == 12


def test_old_manifests_are_forgotten(store: DocumentStore):
    ledger = claimed(store)
    for batch_id in range(KEEP + 3):
        ledger.commit(manifest(batch_id))
    assert [int(name.removesuffix(".json")) for name in files(store)] == list(range(3, KEEP + 3))
    assert len(ledger.history(1_000)) == len(Ledger(store).history(1_000)) == KEEP


@pytest.mark.parametrize("is_driver", [True, False])
@pytest.mark.parametrize("read", [lambda ledger: ledger.history(1_000), lambda ledger: ledger.after(-1)])
def test_manifests_that_are_removed_while_all_are_read_are_left_out(
    store: DocumentStore,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Ledger], list[dict[str, Any]]],
    is_driver: bool,
):
    """A program reads the last batches in another thread, or in another process, while the driver commits more."""
    driver, later = claimed(store), [KEEP, KEEP + 1]
    for batch_id in range(KEEP):
        driver.commit(manifest(batch_id))
    reader, read_json = driver if is_driver else Ledger(store), DocumentStore.read_json

    def after_commits(one: DocumentStore, name: str) -> Any:
        batches, later[:] = later[:], []
        for batch_id in batches:
            driver.commit(manifest(batch_id))
        return read_json(one, name)

    monkeypatch.setattr(DocumentStore, "read_json", after_commits)
    assert read(reader) == [{"rows": rows} for rows in range(2, KEEP)]


def test_a_manifest_that_is_missing_among_others_is_damage(store: DocumentStore):
    ledger = claimed(store)
    for batch_id in range(KEEP):
        ledger.commit(manifest(batch_id))
    (Path(store.root) / "ledger" / "000000000000.json").unlink()
    with pytest.raises(CheckpointError, match=r"000000000000\.json is damaged"):
        ledger.history(KEEP)


def test_a_manifest_without_windows_or_panes_is_whole(store: DocumentStore):
    empty = replace(manifest(0), operator={"panes": {}, "next_window": None})
    claimed(store).commit(empty)
    assert Ledger(store).latest() == empty


def test_what_a_killed_commit_has_left_is_cleared_away_unread(store: DocumentStore):
    ledger = claimed(store)
    ledger.commit(manifest(4))
    assert isinstance(ledger.ownership, Ownership)
    drafts = Path(ledger.ownership.drafts.root)
    (drafts / f"{DRAFT}000000000005.json.abc").write_text("{", encoding="ascii")
    assert claimed(store).latest() == manifest(4)
    assert files(store) == ["000000000004.json"]
    assert store.names() == ["definition.json"]
    assert not drafts.exists()
    assert [list(folder.iterdir()) for folder in drafts.parent.iterdir()] == [[]]


def test_reading_a_ledger_changes_nothing(store: DocumentStore):
    claimed(store).commit(manifest(4))
    before = sorted(Path(store.root).rglob("*"))
    assert Ledger(store).latest() == manifest(4)
    with pytest.raises(CheckpointError, match="is not claimed"):
        Ledger(store).commit(manifest(5))
    assert sorted(Path(store.root).rglob("*")) == before


def test_a_fenced_driver_cannot_commit(store: DocumentStore):
    first = claimed(store)
    first.commit(manifest(0))
    second = claimed(store)
    assert second.latest() == manifest(0)
    with pytest.raises(CheckpointError, match="another driver has started on the checkpoint"):
        first.ownership.check()
    with pytest.raises(CheckpointError, match="another driver has started on the checkpoint"):
        first.commit(manifest(1))
    assert files(store) == ["000000000000.json"]
    second.commit(manifest(1))
    third = claimed(store)
    for loser in (first, second):
        with pytest.raises(CheckpointError, match="another driver"):
            loser.commit(manifest(2))
        with pytest.raises(CheckpointError, match="another driver"):
            loser.begin_drain(2)
    assert not third.drain_begun
    third.commit(manifest(2))


def test_drivers_are_fenced_on_a_file_system_that_cannot_move_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bucket, move = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), DocumentStore.move

    def files_only(self: DocumentStore, name: str, target: DocumentStore, target_name: str) -> None:
        assert name not in self.folders(), "the specified key does not exist"
        move(self, name, target, target_name)

    monkeypatch.setattr(DocumentStore, "_fs", property(lambda self: (bucket, self.place.path)))
    monkeypatch.setattr(DocumentStore, "move", files_only)
    store = DocumentStore("hdfs://host/skypane")
    first = claimed(store)
    first.commit(manifest(0))
    second = claimed(store)
    with pytest.raises(CheckpointError, match="another driver"):
        first.commit(manifest(1))
    second.commit(manifest(1))
    assert claimed(store).latest() == manifest(1)


def test_a_driver_that_sleeps_within_a_commit_is_fenced(store: DocumentStore, monkeypatch: pytest.MonkeyPatch):
    """It has looked, and written its draft: all that is left is to move it."""
    first = claimed(store)
    move, taken = DocumentStore.move, list[Ledger]()

    def asleep(self: DocumentStore, name: str, target: DocumentStore, target_name: str) -> None:
        if target.root.endswith("/ledger") and not taken:
            taken.append(claimed(store))
        move(self, name, target, target_name)

    monkeypatch.setattr(DocumentStore, "move", asleep)
    with pytest.raises(CheckpointError, match="another driver"):
        first.commit(manifest(0))
    assert taken[0].latest() is None
    assert files(store) == []


@pytest.mark.parametrize("begun", [False, True])
def test_a_driver_is_fenced_while_it_reads_who_is_in_charge(
    store: DocumentStore, begun: bool, monkeypatch: pytest.MonkeyPatch
):
    """A listing need not show what is moved while it is made, so it may show nothing at all."""
    if begun:
        claimed(store).commit(manifest(0))
    folders, ledgers = DocumentStore.folders, list[Ledger]()

    def overtaken(self: DocumentStore) -> list[str]:
        before = folders(self)
        if not ledgers:
            ledgers.append(Ledger(store))
            ledgers.extend(claimed(store) for _ in range(2))
        return sorted({*before} & {*folders(self)})

    monkeypatch.setattr(DocumentStore, "folders", overtaken)
    ledgers.append(claimed(store))
    committed = []
    for ledger in ledgers[1:]:
        with suppress(CheckpointError):
            ledger.commit(manifest(1))
            committed.append(ledger.ownership.driver)
    assert committed == [max(ledger.ownership.driver for ledger in ledgers[1:])], "names tell who came last"


def test_one_of_many_drivers_that_start_at_once_is_in_charge(store: DocumentStore):
    barrier = threading.Barrier(8)

    def start(_: int) -> list[Ledger]:
        barrier.wait()
        with suppress(CheckpointError):
            return [claimed(store)]
        return []

    def commit(ledger: Ledger) -> bool:
        with suppress(CheckpointError):
            ledger.commit(manifest(0))
            return True
        return False

    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(start, range(8)))
    assert sum(commit(ledger) for ledgers in started for ledger in ledgers) == 1


@given(st.data())
def test_no_batch_is_committed_twice_however_drivers_interleave(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
):
    """Three drivers start and commit, one operation on files at a time, in any order: a new checkpoint or an old one."""
    store = DocumentStore.at(str(tmp_path_factory.mktemp("interleaved")))
    first = data.draw(st.integers(0, 2), label="batches before")
    for batch_id in range(first):
        claimed(store).commit(manifest(batch_id))
    committed = list[tuple[int, str]]()

    def drive() -> None:
        with suppress(CheckpointError):
            ledger = claimed(store)
            for _ in range(2):
                last = ledger.latest()
                batch_id = 0 if last is None else last.batch_id + 1
                ledger.commit(manifest(batch_id))
                committed.append((batch_id, ledger.ownership.driver))

    Interleaving(lambda count: data.draw(st.integers(0, count - 1))).run(drive, drive, drive)
    committed.sort()
    assert [batch_id for batch_id, _ in committed] == list(range(first, first + len(committed)))
    assert len(committed) >= 2, "the last to start is in charge"
    assert [driver for _, driver in committed] == sorted(driver for _, driver in committed)
    assert files(store) == [f"{batch_id:012d}.json" for batch_id in range(first + len(committed))]


def test_a_wrong_start_takes_nothing_over(store: DocumentStore):
    right = claimed(store)
    right.commit(manifest(0))
    with pytest.raises(CheckpointError, match="another query"):
        claimed(store, DEFINITION | {"time": "other"})
    right.commit(manifest(1))
    Path(store.child("ledger").path("000000000001.json")).write_text("damaged", encoding="ascii")
    with pytest.raises(CheckpointError, match="is damaged"):
        claimed(store)
    right.ownership.check()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda text: text[: len(text) // 2],
    "empty": lambda _: b"",
    "a list": lambda _: b"[]",
    "no text": lambda _: b"\xff\x00garbage",
    "without fields": lambda _: b"{}",
}
OF_MANIFEST = DAMAGES | {"another document": lambda text: text.replace(b'"rows": 7', b'"rows": 8')}


@pytest.mark.parametrize("damage", OF_MANIFEST.values(), ids=OF_MANIFEST.keys())
def test_a_damaged_manifest_is_named(store: DocumentStore, damage: Callable[[bytes], bytes]):
    claimed(store).commit(manifest(7))
    file = Path(store.child("ledger").path("000000000007.json"))
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CheckpointError, match=f"^manifest {file} is damaged .*: restore it from a copy"):
        Ledger(store).latest()


@given(st.data())
def test_no_bit_of_a_manifest_can_flip_unseen(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    store = DocumentStore.at(str(tmp_path_factory.mktemp("flipped")))
    claimed(store).commit(manifest(7))
    file = Path(store.child("ledger").path("000000000007.json"))
    whole = file.read_bytes()
    file.write_bytes(flipped(whole, data.draw(st.integers(0, 8 * len(whole) - 1))))
    with pytest.raises(CheckpointError, match="is damaged"):
        Ledger(store).latest()


def test_the_same_query_may_continue_under_the_same_name(store: DocumentStore):
    name = name_of(store)
    assert name_of(store, dict(reversed(DEFINITION.items()))) == name
    other = DocumentStore.at(store.path("other"))
    assert name_of(other) != name, "another checkpoint is another query"


def test_a_definition_with_tuples_is_recognised_after_json(store: DocumentStore):
    """A user-defined query may describe itself with what JSON turns into something else."""
    described: dict[str, Any] = {"columns": ("a", "b"), "limits": {1: 2.0}}
    assert name_of(store, described) == name_of(store, described)


@pytest.mark.parametrize(("change", "difference"), [
    ({"time": "ts"}, "time was 't', is 'ts'"),
    ({"window": {"length": 10, "slide": 2}}, "window.slide was 5, is 2"),
    ({"query": {"k": 4, "by": []}}, "query.by was ['a'], is []; query.k was 3, is 4"),
    ({"query": {"k": 3, "by": ["a"], "largest": True}}, "query.largest was None, is True"),
    ({"source": {"name": "s"}}, "source was None, is {'name': 's'}"),
])  # fmt: skip
def test_another_query_is_refused_with_each_difference(store: DocumentStore, change: dict[str, Any], difference: str):
    claimed(store)
    with pytest.raises(CheckpointError) as refused:
        claimed(store, DEFINITION | change)
    said = str(refused.value)
    assert f"belongs to another query: {difference}. Use another checkpoint" in said
    assert "The numbers of a progress policy (delay, budget, bounds), splitting, workers and sinks may" in said
    claimed(store)  # the definition there has not changed


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "7"])
def test_a_damaged_definition_is_named(store: DocumentStore, text: str):
    claimed(store)
    file = Path(store.path("definition.json"))
    file.write_text(text, encoding="ascii")
    with pytest.raises(CheckpointError, match=f"^{file} is damaged"):
        claimed(store)


@given(st.data())
def test_no_bit_of_a_definition_can_flip_unseen(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    store = DocumentStore.at(str(tmp_path_factory.mktemp("flipped")))
    claimed(store)
    file = Path(store.path("definition.json"))
    whole = file.read_bytes()
    file.write_bytes(flipped(whole, data.draw(st.integers(0, 8 * len(whole) - 1))))
    with pytest.raises(CheckpointError, match=f"^{file} is damaged"):
        claimed(store)


def test_a_definition_that_is_gone_beside_a_ledger_is_missed(store: DocumentStore):
    claimed(store).commit(manifest(0))
    store.remove(["definition.json"])
    with pytest.raises(CheckpointError, match=r"definition\.json is gone, while the ledger beside it has batches"):
        claimed(store)


def test_another_version_of_the_format_is_distinguished_from_damage(store: DocumentStore):
    claimed(store)
    store.write_json("definition.json", store.read_json("definition.json") | {"format": 1})
    with pytest.raises(CheckpointError, match="is of format 1, and this version of skypane reads format 2"):
        claimed(store)


def test_what_may_change_is_noted_again(store: DocumentStore):
    name = Ledger(store).claim(QueryDefinition(DEFINITION, {"delay": 1}))
    ledger, later = Ledger(store), QueryDefinition(DEFINITION, {"delay": 2})
    assert ledger.claim(later) == name
    assert QueryDefinition.free_of(store) == {"delay": 1}, "sinks may have a batch by it"
    assert later.settle(store, ledger.ownership, -1) == name
    assert QueryDefinition.free_of(store) == {"delay": 2}


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may write anywhere: be somebody else for a while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_checkpoint_that_cannot_be_written_is_reported():
    with tempfile.TemporaryDirectory() as folder:
        store = DocumentStore.at(folder).child("skypane")
        claimed(store).commit(manifest(0))
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with as_nobody():
            assert Ledger(store).latest() == manifest(0), "it can be looked at"
            with pytest.raises(PermissionError):
                claimed(store)
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o755)
