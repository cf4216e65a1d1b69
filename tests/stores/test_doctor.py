"""What `skypane doctor` finds of a checkpoint in an object store."""

from __future__ import annotations

import pytest

from skypane.cli.machine_checks import checkpoint_directory
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.stores.object_store import ObjectStore, Stamp

PLACE = "s3://bucket/checkpoint"
pytestmark = pytest.mark.usefixtures("memory")


def test_a_store_with_conditional_writes_is_fine_and_left_as_it_was():
    finding = checkpoint_directory(PLACE)
    assert (finding.ok, finding.detail) == (True, f"{PLACE} supports conditional writes")
    assert DocumentStore.at(PLACE).names() == []


@pytest.mark.parametrize("ignored", ["create", "replace"])
def test_a_store_that_ignores_conditions_is_found(ignored: str, monkeypatch: pytest.MonkeyPatch):
    put = ObjectStore._put

    def without_condition(store: ObjectStore, name: str, content: bytes, mode: object) -> Stamp:
        is_ignored = (mode == "create") == (ignored == "create")
        return put(store, name, content, "overwrite" if is_ignored else mode)

    monkeypatch.setattr(ObjectStore, "_put", without_condition)
    finding = checkpoint_directory(PLACE)
    assert not finding.ok
    assert "two drivers could commit there" in finding.detail
    assert DocumentStore.at(PLACE).names() == []
