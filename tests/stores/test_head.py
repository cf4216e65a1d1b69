"""A checkpoint in an object store: the head, and who may change it."""

from __future__ import annotations

import pytest
from tests.runtime.restarts.test_ledger import DEFINITION as QUERY
from tests.runtime.restarts.test_ledger import claimed, manifest
from tests.stores.requests import before_each

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import query_definition
from skypane.runtime.spark.engine.checkpoint_head import DEFINITION, DRAIN, HEAD, read_document, read_head
from skypane.runtime.spark.engine.head_ownership import HeadOwnership
from skypane.runtime.spark.engine.ledger import KEEP, Ledger
from skypane.runtime.spark.engine.query_definition import QueryDefinition
from skypane.runtime.stores.object_store import ObjectStore, Stamp, same_version
from skypane.runtime.stores.store import ConflictError
from skypane.types import CheckpointError


@pytest.fixture
def store(memory: None) -> DocumentStore:
    del memory
    return DocumentStore("s3://bucket/checkpoint/skypane")


def test_the_head_has_the_newest_manifest_and_files_have_those_before(store: DocumentStore):
    ledger = claimed(store)
    for batch_id in range(3):
        ledger.commit(manifest(batch_id))
    found = read_head(store)
    assert found is not None
    assert sorted(found[0].documents) == ["definition.json", "ledger/000000000002.json"]
    assert store.child("ledger").names() == ["000000000000.json", "000000000001.json"]
    assert store.names() == [DEFINITION, HEAD]
    assert Ledger(store).latest() == manifest(2)
    assert [metrics["rows"] for metrics in Ledger(store).history(9)] == [0, 1, 2]


def test_a_fenced_driver_changes_nothing(store: DocumentStore):
    first = claimed(store)
    first.commit(manifest(0))
    second = claimed(store)
    assert second.latest() == manifest(0)
    before = read_head(store)
    for change in (
        first.ownership.check,
        lambda: first.commit(manifest(1)),
        lambda: first.begin_drain(1),
        lambda: first.ownership.remove(store.child("ledger"), ["000000000000.json"]),
    ):
        with pytest.raises(CheckpointError, match="another driver has started on the checkpoint"):
            change()
    assert read_head(store) == before
    second.commit(manifest(1))
    assert claimed(store).latest() == manifest(1)


def test_a_driver_that_is_fenced_between_its_check_and_its_commit_commits_nothing(store: DocumentStore):
    """A driver stands still right before the conditional write, for as long as it takes another to start and commit."""
    first = claimed(store)
    others: list[Ledger] = []

    def take_over(operation: str) -> None:
        if operation == "_put" and not others:
            others.append(Ledger(store))  # the requests of the other driver come here, too
            others[0] = claimed(store)
            others[0].commit(manifest(0))

    with before_each(take_over), pytest.raises(CheckpointError, match="taken it over"):
        first.commit(manifest(0))
    others[0].commit(manifest(1))
    assert Ledger(store).latest() == manifest(1)


@pytest.mark.parametrize("at", [1, 2])
def test_a_start_that_stands_still_while_it_looks_goes_by_a_batch_that_is_no_older_than_those_it_lists(
    store: DocumentStore, at: int
):
    """Another driver commits meanwhile: its last batch is in the head only, and those before are files by then."""
    other = claimed(store)
    other.commit(manifest(0))
    requests: list[str] = []

    def commit(operation: str) -> None:
        requests.append(operation)
        if len(requests) == at:
            for batch_id in (1, 2, 3):
                other.commit(manifest(batch_id))

    with before_each(commit):
        looking = Ledger(store)
    assert looking.latest() == manifest(3)


@pytest.mark.parametrize("at", range(8))
def test_two_first_starts_in_any_order_leave_one_driver_in_charge(store: DocumentStore, at: int):
    requests: list[str] = []

    def start(operation: str) -> None:
        requests.append(operation)
        if len(requests) == at + 1:
            claimed(store).commit(manifest(0))

    ledger = Ledger(store)
    with before_each(start):
        try:
            ledger.claim(QueryDefinition(QUERY))
            ledger.ownership.check()
        except CheckpointError as error:
            assert "taken it over" in str(error)  # noqa: PT017 - both ends are right
    assert len(requests) > at + 1
    assert Ledger(store).latest() == manifest(0)


def test_a_head_that_is_gone_is_named(store: DocumentStore):
    claimed(store)
    store.remove([HEAD])
    with pytest.raises(CheckpointError, match=r"head\.json is gone: restore the whole checkpoint"):
        Ledger(store).claim(QueryDefinition(QUERY))


@pytest.mark.parametrize(
    ("error", "is_written"),
    [(OSError("the connection was closed"), True), (ConflictError(HEAD), False)],
    ids=["the answer is lost", "another write is on its way"],
)
def test_a_commit_happens_once_and_fences_nobody_after_errors(
    store: DocumentStore, monkeypatch: pytest.MonkeyPatch, error: Exception, is_written: bool
):
    """S3 answers 409 while another write of the object is on its way, which may come to nothing."""
    ledger, put, left = claimed(store), ObjectStore._put, [error, error]

    def failing(folder: ObjectStore, name: str, content: bytes, mode: object) -> Stamp:
        if name != HEAD or not left:
            return put(folder, name, content, mode)
        if is_written:
            put(folder, name, content, mode)
        raise left.pop()

    monkeypatch.setattr(ObjectStore, "_put", failing)
    ledger.commit(manifest(0))
    assert len(left) == is_written, "what has been written is not written again"
    ledger.commit(manifest(1))
    assert left == []
    assert Ledger(store).latest() == manifest(1)


def test_a_checkpoint_that_is_removed_meanwhile_is_not_written_again(store: DocumentStore):
    ledger = claimed(store)
    store.clear()
    for change in (ledger.ownership.check, lambda: ledger.commit(manifest(0))):
        with pytest.raises(CheckpointError):
            change()
    assert store.names() == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"e_tag": "a"}, {"e_tag": "a"}, True),
        ({"e_tag": "a"}, {"e_tag": "a", "version": "null"}, True),
        ({"e_tag": "a"}, {"e_tag": "b"}, False),
        ({"e_tag": "a", "version": "1"}, {"e_tag": "a", "version": "2"}, False),
        ({"e_tag": "a"}, {"version": "1"}, False),
        ({}, {}, False),
    ],
)
def test_versions_are_the_same_if_all_parts_that_both_answers_have_are(one: Stamp, other: Stamp, same: bool):
    assert same_version(one, other) is same


def test_names_of_drivers_follow_their_order(store: DocumentStore):
    drivers = [claimed(store).ownership.driver for _ in range(4)]
    assert drivers == sorted(drivers)
    assert len(set(drivers)) == 4


def test_a_damaged_head_is_refused(store: DocumentStore):
    claimed(store).commit(manifest(0))
    assert store.objects is not None
    store.objects.put(HEAD, store.read(HEAD)[:-9])
    with pytest.raises(CheckpointError, match=r"head\.json is damaged"):
        Ledger(store)


def test_old_manifests_are_removed_many_at_a_time(store: DocumentStore):
    ledger = claimed(store)
    for batch_id in range(KEEP + 45):
        ledger.commit(manifest(batch_id))
    assert KEEP <= len(Ledger(store).history(1_000)) < KEEP + 21


def test_a_checkpoint_of_a_version_without_a_head_continues(store: DocumentStore):
    """Its newest manifest and its definition are files, and its driver has a folder."""
    ledger = claimed(store)
    ledger.commit(manifest(0))
    found = read_head(store)
    assert found is not None
    store.write_json(DRAIN, {"batch_id": 1})
    for path, document in found[0].documents.items():
        store.write_json(path, document)
    store.remove([HEAD])
    earlier = "000000000007-0123abcd"
    store.write_json(f"owner/{earlier}/draft", 1)
    later = claimed(store)
    assert later.latest() == manifest(0)
    assert later.drain_begun
    assert later.ownership.driver > earlier
    assert store.child("owner").folders() == []
    later.commit(manifest(1))
    assert [metrics["rows"] for metrics in Ledger(store).history(9)] == [0, 1]


@pytest.mark.parametrize("earlier", [False, True])
def test_a_version_without_a_head_refuses_the_checkpoint_and_this_one_does_not(
    store: DocumentStore, monkeypatch: pytest.MonkeyPatch, earlier: bool
):
    """Whether the checkpoint begins with this version, or with one before it, and whenever its first start ends."""
    if earlier:
        claimed(store)
        store.write_json(DEFINITION, read_document(store, DEFINITION))
        store.remove([HEAD])
    first = HeadOwnership.take(store)  # and ends before it writes its definition
    for _ in range(2):
        definition = QueryDefinition(QUERY)
        definition.check(store, -1)
        with monkeypatch.context() as patch:
            patch.setattr(query_definition, "read_document", DocumentStore.read_json)  # as it was read then
            with pytest.raises(CheckpointError, match="is of format 3, and this version of skypane reads format 2"):
                definition.check(store, -1)
        claimed(store)
    with pytest.raises(CheckpointError):
        first.check()
