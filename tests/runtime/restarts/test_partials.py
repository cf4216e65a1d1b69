from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import NESTED, SCHEMA, chunked, flipped, table, tables

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.partials import PartialReader, PartialReference, attempt_name
from skypane.types import CheckpointError

CODED = pa.table({"label": pa.array(["a", None, "a"]).dictionary_encode()})


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    return DocumentStore.at(str(tmp_path))


@given(st.lists(tables(clean=False), min_size=1, max_size=4))
def test_partials_come_back_one_by_one_in_any_order(tmp_path_factory: pytest.TempPathFactory, written: list[pa.Table]):
    store = DocumentStore.at(str(tmp_path_factory.mktemp("partials")))
    refs = partials.write(store, "p.arrow", written)
    assert [(ref.file, ref.rows) for ref in refs] == [("p.arrow", partial.num_rows) for partial in written]
    read = PartialReader(store)
    for ref, partial in reversed(list(zip(refs, written, strict=True))):
        assert repr(read(ref).to_pylist()) == repr(partial.to_pylist())  # NaN equals itself as text


@pytest.mark.parametrize("partial", [
    NESTED, NESTED.slice(1, 1), NESTED.slice(0, 0), NESTED.schema.empty_table(), chunked(NESTED, [1, 1]),
    SCHEMA.empty_table(), pa.Table.from_batches([], NESTED.schema), CODED,
])  # fmt: skip
def test_partials_of_any_type_and_none_at_all_come_back_as_they_were(store: DocumentStore, partial: pa.Table):
    refs = partials.write(store, "p.arrow", [partial, CODED])
    back = PartialReader(store)(refs[0])
    assert back.schema == partial.schema
    assert back.to_pylist() == partial.to_pylist()


def test_a_partial_outlives_its_file(store: DocumentStore):
    """The engine removes files while a window's answer may still be made of them."""
    (ref,) = partials.write(store, "p.arrow", [table(range(1_000))])
    partial = PartialReader(store)(ref)
    store.remove(["p.arrow"])
    assert partial.equals(table(range(1_000)))


@given(st.lists(tables(clean=False), min_size=1, max_size=3), st.data())
def test_no_bit_of_a_partial_can_flip_unseen(
    tmp_path_factory: pytest.TempPathFactory, written: list[pa.Table], data: st.DataObject
):
    """Every byte of a file belongs to one partial: that one is refused, and the others are read as before."""
    store = DocumentStore.at(str(tmp_path_factory.mktemp("partials")))
    refs = partials.write(store, "p.arrow", written)
    file = Path(store.path("p.arrow"))
    whole = file.read_bytes()
    assert sum(ref.size for ref in refs) == len(whole)
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    file.write_bytes(flipped(whole, bit))
    for ref, partial in zip(refs, written, strict=True):
        if ref.start <= bit // 8 < ref.start + ref.size:
            with pytest.raises(CheckpointError, match=f"^{re.escape(str(file))} is damaged: .*from a copy"):
                PartialReader(store)(ref)
        else:
            assert repr(PartialReader(store)(ref).to_pylist()) == repr(partial.to_pylist())


@pytest.mark.parametrize(("damage", "what"), [
    (lambda file: file.unlink(), "is gone"),
    (lambda file: file.write_bytes(b""), "cannot be read|is damaged"),
    (lambda file: file.write_bytes(file.read_bytes()[:-1]), "is damaged"),
    (lambda file: (file.unlink(), file.mkdir()), "cannot be read"),
])  # fmt: skip
def test_a_file_that_is_gone_or_short_is_named(store: DocumentStore, damage: Any, what: str):
    (ref,) = partials.write(store, "p.arrow", [NESTED])
    damage(Path(store.path("p.arrow")))
    with pytest.raises(CheckpointError, match=f"^{re.escape(store.path('p.arrow'))} ({what}).*restore the whole"):
        PartialReader(store)(ref)


def test_no_two_attempts_share_a_name_and_batches_sort():
    names = [attempt_name(batch, task) for batch in (9, 10) for task in (1, 1, 2)]
    assert len(set(names)) == len(names)
    assert sorted(names)[:3] == sorted(names[:3])


def test_a_reference_comes_back_from_json():
    ref = PartialReference(attempt_name(3, 1), 0, 8, 2**32 - 1, 0)
    assert PartialReference.restored(ref.snapshot()) == ref


GOOD = [attempt_name(3, 1), 0, 8, 1, 0]


@pytest.mark.parametrize("value", [
    ["../../victim", 0, 8, 1, 0], ["/etc/passwd", 0, 8, 1, 0], [f"a/{GOOD[0]}", 0, 8, 1, 0], [f"{GOOD[0]}\n", 0, 8, 1, 0],
    ["", 0, 8, 1, 0], [None, 0, 8, 1, 0], [*GOOD[:4], -1], [*GOOD[:4], 1.5], [*GOOD[:4], True], GOOD[:4], None, 7, {},
])  # fmt: skip
def test_a_reference_names_one_of_the_engines_own_files(value: Any):
    with pytest.raises(CheckpointError, match="is not a reference to a partial"):
        PartialReference.restored(value)
