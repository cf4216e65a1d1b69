from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skypane.runtime.spark.engine.ledger import KEEP, Ledger, Manifest
from skypane.runtime.spark.store import DRAFT, Store
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
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.at(str(tmp_path / "skypane"))


def files(store: Store) -> list[str]:
    return store.child("ledger").names()


def test_a_new_ledger_knows_nothing(store: Store):
    ledger = Ledger(store)
    assert ledger.latest() is None
    assert ledger.history(10) == []


def test_the_newest_manifest_is_found_again(store: Store):
    ledger = Ledger(store)
    for batch_id in range(12):  # ten follows nine: names sort as numbers
        ledger.commit(manifest(batch_id))
        assert ledger.latest() == manifest(batch_id)
    again = Ledger(store)
    assert again.latest() == manifest(11)
    assert again.history(3) == ledger.history(3) == [{"rows": 9}, {"rows": 10}, {"rows": 11}]
    assert again.history(0) == []
    assert len(again.history(1_000)) == 12


def test_old_manifests_are_forgotten(store: Store):
    ledger = Ledger(store)
    for batch_id in range(KEEP + 3):
        ledger.commit(manifest(batch_id))
    assert [int(name.removesuffix(".json")) for name in files(store)] == list(range(3, KEEP + 3))
    assert len(ledger.history(1_000)) == len(Ledger(store).history(1_000)) == KEEP


def test_a_manifest_without_windows_or_panes_is_whole(store: Store):
    empty = replace(manifest(0), operator={"panes": {}, "next_window": None})
    Ledger(store).commit(empty)
    assert Ledger(store).latest() == empty


def test_drafts_of_a_killed_commit_are_cleared_away_unread(store: Store):
    Ledger(store).commit(manifest(4))
    for folder in (store, store.child("ledger")):
        Path(folder.path(f"{DRAFT}000000000005.json.abc")).write_text("{", encoding="ascii")
    assert Ledger(store).latest() == manifest(4)
    assert files(store) == ["000000000004.json"]
    assert store.names() == []


@pytest.mark.parametrize("damage", [
    lambda text: text[: len(text) // 2],
    lambda _: "",
    lambda _: "[]",
    lambda _: "null",
    lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "operator"}),
])  # fmt: skip
def test_a_damaged_manifest_is_named(store: Store, damage: Callable[[str], str]):
    Ledger(store).commit(manifest(7))
    file = Path(store.child("ledger").path("000000000007.json"))
    file.write_text(damage(file.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(CheckpointError, match=f"^manifest {file} is damaged .*: restore it from a copy"):
        Ledger(store).latest()


def test_the_same_query_may_go_on_under_the_same_name(store: Store):
    name = Ledger(store).claim(DEFINITION)
    assert Ledger(store).claim(dict(reversed(DEFINITION.items()))) == name
    other = Store.at(store.path("other"))
    assert Ledger(other).claim(DEFINITION) != name, "another checkpoint is another query"


def test_a_definition_with_tuples_is_recognised_after_json(store: Store):
    """A query of one's own may describe itself with what JSON turns into something else."""
    described: dict[str, Any] = {"columns": ("a", "b"), "limits": {1: 2.0}}
    name = Ledger(store).claim(described)
    assert Ledger(store).claim(described) == name


@pytest.mark.parametrize(("change", "difference"), [
    ({"time": "ts"}, "time was 't', is 'ts'"),
    ({"window": {"length": 10, "slide": 2}}, "window.slide was 5, is 2"),
    ({"query": {"k": 4, "by": []}}, "query.by was ['a'], is []; query.k was 3, is 4"),
    ({"query": {"k": 3, "by": ["a"], "largest": True}}, "query.largest was None, is True"),
    ({"source": {"name": "s"}}, "source was None, is {'name': 's'}"),
])  # fmt: skip
def test_another_query_is_refused_with_each_difference(store: Store, change: dict[str, Any], difference: str):
    Ledger(store).claim(DEFINITION)
    with pytest.raises(CheckpointError) as refused:
        Ledger(store).claim(DEFINITION | change)
    assert f"belongs to another query: {difference}. Use another checkpoint" in str(refused.value)
    Ledger(store).claim(DEFINITION)  # the definition there has not changed


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "7"])
def test_a_damaged_definition_is_named(store: Store, text: str):
    Ledger(store).claim(DEFINITION)
    file = Path(store.path("definition.json"))
    file.write_text(text, encoding="ascii")
    with pytest.raises(CheckpointError, match=f"^{file} is damaged"):
        Ledger(store).claim(DEFINITION)
