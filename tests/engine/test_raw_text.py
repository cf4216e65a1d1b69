"""Rows that come with their raw text: late and rejected ones keep it, in columns of their own; answers do not have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.rows import multiset
from tests.runtime.streams import ended, late_rows, parquet_rows, read_batches, write_batches

import skypane as sp
from skypane.operators.entry.raw_text import KEPT, OFFSET, RAW, packed
from skypane.testing import Session

PLAIN = late_rows(41, batches=5, rows=80)


def with_raw_text(batch: pa.Table) -> pa.Table:
    """Return rows as a source sends them: each with its number as the offset, every seventh with a null and its text."""
    numbers = batch["id"].to_pylist()
    bad = pa.array([number % 7 == 3 for number in numbers])
    price = pc.if_else(bad, pa.scalar(None, pa.float64()), batch["price"].combine_chunks())
    at = batch.schema.get_field_index("price")
    told = [packed(b"line %d" % number, {"raw_line": number}) if number % 7 == 3 else None for number in numbers]
    batch = batch.set_column(at, batch.schema.field(at), price)
    return batch.append_column(OFFSET, pa.array(numbers, pa.int64())).append_column(RAW, pa.array(told, pa.string()))


BATCHES = [with_raw_text(batch) for batch in PLAIN]
MAKERS: dict[str, Any] = {
    "skyline": lambda rows, own: sp.stream(rows, "price MIN", **own),
    "aggregates": lambda rows, own: sp.stream(rows, sp.Aggregate(required="price", n=sp.count()), **own),
    "continuous": lambda rows, own: sp.continuous_skyline(rows, "price MIN", **own),
    "shared": lambda rows, own: sp.streams(rows, {"a": sp.Skyline("price MIN"), "b": sp.TopK(2, "price")}, **own),
}


def run(session: Session, folder: Path, maker: str, batches: list[pa.Table], **more: Any) -> sp.StreamHandle:
    write_batches(folder / "in", batches)
    rows = read_batches(session, folder / "in", batches[0].schema)
    own: dict[str, Any] = {"time": "ts", "window": "1 minute", "checkpoint": folder / "c", "output": folder / "out"}
    own |= {"late": folder / "late", "progress": sp.Watermark("1 second")} | more
    return ended(MAKERS[maker](rows, own))


@pytest.mark.parametrize("maker", MAKERS)
def test_rejected_rows_have_their_text_and_answers_are_those_without_it(maker: str, session: Session, tmp_path: Path):
    run(session, tmp_path / "told", maker, BATCHES)
    run(session, tmp_path / "plain", maker, [batch.drop_columns([OFFSET, RAW]) for batch in BATCHES])
    folders = {path.parent for path in (tmp_path / "plain" / "out").rglob("*.parquet") if "_staging" not in path.parts}
    assert len(folders) == (2 if maker == "shared" else 1)
    for folder in folders:
        told = tmp_path / "told" / folder.relative_to(tmp_path / "plain")
        assert multiset(parquet_rows(told)) == multiset(parquet_rows(folder))
    late, plain = (parquet_rows(tmp_path / name / "late") for name in ("told", "plain"))
    assert multiset(late.drop_columns(KEPT.names)) == multiset(plain)
    assert {"late", "null price"} <= set(late["reason"].to_pylist())
    for row in late.to_pylist():
        assert row["raw_offset"] == row["id"]
        text = (f"line {row['id']}", "utf-8", row["id"]) if row["id"] % 7 == 3 else (None, None, None)
        assert (row["raw_text"], row["raw_encoding"], row["raw_line"]) == text


def test_held_rows_keep_their_text_until_they_are_rejected(session: Session, tmp_path: Path):
    batches = list(BATCHES[:3])
    shifted = pc.add(batches[1]["ts"].cast(pa.int64()), pa.scalar(10 * 86_400_000_000))
    ahead = pc.equal(pc.bit_wise_and(batches[1]["id"], 15), 4)
    at, field = batches[1].schema.get_field_index("ts"), batches[1].schema.field("ts")
    times = pc.if_else(ahead, shifted, batches[1]["ts"].cast(pa.int64())).cast(field.type)
    batches[1] = batches[1].set_column(at, field, times)
    policy = sp.Watermark("1 second", max_ahead="10 minutes", patience=20)
    run(session, tmp_path, "skyline", batches, progress=policy)
    held = [row for row in parquet_rows(tmp_path / "late").to_pylist() if row["reason"] == "future"]
    assert held
    assert all(row["raw_offset"] == row["id"] for row in held)


def test_rows_that_come_back_and_are_rejected_again_keep_their_text(session: Session, tmp_path: Path):
    handle = run(session, tmp_path, "aggregates", BATCHES, late=sp.Amend("1 day", then=tmp_path / "late"))
    before = parquet_rows(tmp_path / "late")
    first = before.filter(pc.field("reason") == "null price")
    metrics = handle.readmit("null price", lambda rows: rows)
    assert metrics is not None
    assert metrics.quarantined == {"null price": first.num_rows}
    after = parquet_rows(tmp_path / "late").slice(before.num_rows)
    assert multiset(after) == multiset(first)


def test_a_column_of_late_rows_may_be_no_column_of_the_rows(session: Session, tmp_path: Path):
    batch = BATCHES[0].append_column("raw_text", BATCHES[0]["sensor"])
    with pytest.raises(sp.ConfigError, match="late rows get a column 'raw_text': rename yours"):
        run(session, tmp_path, "skyline", [batch])
