"""Random walks over changes of a job and deaths of its drivers, at any operation on a file, for each kind of sink: python -m tests.engine.changed_walks SEED WALKS.

Each start has a definition of those that may follow each other. Which one a batch is of follows from what is there after a
death: the first that has delivered rows of it, or else the one that commits it. A stream whose drivers lived on, and
changed at these batches, has the same rows.
"""

from __future__ import annotations

import json
import logging
import random
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from importlib import import_module
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from deltalake.exceptions import TableNotFoundError
from pyiceberg.exceptions import NoSuchTableError
from tests.engine.test_begun_batch import SINKS, Stream, aggregate, watermark, without
from tests.runtime.streams import ended, finish

import skypane as sp
from skypane import kernels
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.query_definition import QueryDefinition
from skypane.runtime.spark.sinks.open_table_sink import OpenTableSink
from skypane.testing import killed
from skypane.testing.kills import Moment

DEFINITIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "a smaller delay": watermark("5 seconds"),
    "a larger delay": watermark("2 minutes"),
    "rows far ahead": watermark("30 seconds", max_ahead="1 hour"),
    "having": {"query": aggregate(having="n > 3")},
    "top": {"query": aggregate(top=1, rank_by="n")},
    "required": {"query": aggregate(required=["price", "rating"])},
}
OF_FOLDERS: dict[str, dict[str, Any]] = {
    "a function less": {"query": without("total")},
    "a function more": {"query": aggregate(high=sp.max("rating"))},
    "amended": {"amend": "30 seconds"},
    "amended for longer": {"amend": "5 minutes"},
}
NEVER = 10**9


def in_fork(run: Callable[[], object]) -> None:
    """Run a function in a fork: threads of Delta's library do not survive one, so this process has none."""
    assert not killed(run, NEVER)


def delivered(stream: Stream, kind: str) -> int:
    """Return the number of the first batch of which no sink has rows."""
    note = stream.folder / "delivered"

    def look() -> None:
        note.write_text(str(max(_after(stream, kind), default=0)))

    in_fork(look)
    return int(note.read_text())


def _after(stream: Stream, kind: str) -> list[int]:
    """Return the number of the first batch that is not in a sink, for each that is there."""
    folder = stream.folder
    if kind in {"folder", "json"}:
        return [
            int(path.name.split("-")[1]) + 1 for path in folder.glob("*/*-*-*.*") if path.parent.name != "checkpoint"
        ]
    if kind == "table of a database":
        with closing(sqlite3.connect(folder / "db")) as database:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'skypane_batches'").fetchall():
                return []
            return [number for (number,) in database.execute("SELECT next_batch FROM skypane_batches")]
    query = QueryDefinition.name(DocumentStore.at(str(folder / "checkpoint")).child("skypane"))
    return [
        _next_batch(stream.sink(folder / name), query, role) for name, role in (("answers", "output"), ("late", "late"))
    ]


def _next_batch(sink: OpenTableSink, query: str, role: str) -> int:
    with closing(sink.opened_table()) as table:
        try:
            return int(table.note(table.now(), query, role).next_batch)
        except (TableNotFoundError, NoSuchTableError):
            return 0


def note_rows(stream: Stream, definition: dict[str, Any]) -> None:
    """Answer all windows, and note the rows that the sinks have then."""
    ended(stream.job(**definition)).drain()
    (stream.folder / "rows").write_text(
        json.dumps({role: sorted(rows.elements()) for role, rows in stream.held().items()})
    )


def rows_noted(stream: Stream) -> Any:
    return json.loads((stream.folder / "rows").read_text())


def committed(stream: Stream) -> int:
    """Return the number of batches that are committed."""
    latest = Ledger(DocumentStore.at(str(stream.folder / "checkpoint")).child("skypane")).latest()
    return 0 if latest is None else latest.batch_id + 1


def run(stream: Stream, definition: dict[str, Any]) -> None:
    finish(stream.job(**definition))


def be_refused(stream: Stream, definition: dict[str, Any]) -> None:
    with pytest.raises(sp.CheckpointError, match="once as it was"):
        run(stream, definition)


def walk(kind: str, folder: Path, seed: int) -> int:
    """Walk, and compare the rows; return the number of deaths."""
    chance, deaths = random.Random(seed), 0
    definitions = DEFINITIONS | (OF_FOLDERS if kind in {"folder", "json"} else {})
    stream, calm = (Stream(folder / name, kind) for name in ("stream", "calm"))
    of_batches: list[str] = []
    pending, name = "", "as it is"
    for _ in range(chance.randint(3, 6)):
        stream.come(chance.randint(0, 2))
        name = name if chance.random() < 0.3 else chance.choice([*definitions])
        if pending and pending != name and of_batches and of_batches[-1] != pending:
            if name != of_batches[-1]:
                in_fork(partial(be_refused, stream, definitions[name]))
            if name == of_batches[-1] and kind in {"folder", "json"}:
                pending = ""  # the change is taken back, and folders take other rows
            else:
                name = pending
        before = committed(stream)
        when: Moment = chance.choice(["before", "half", "after"])
        deaths += killed(partial(run, stream, definitions[name]), chance.randint(1, 30), when)
        if (after := committed(stream)) > before:
            of_batches += [pending or name, *[name] * (after - before - 1)]
            pending = ""
        if not pending and delivered(stream, kind) > after:
            pending = name
    if pending:
        name = pending
    in_fork(partial(run, stream, definitions[name]))
    of_batches += [name] * (committed(stream) - len(of_batches))
    live_on(calm, [definitions[one] for one in of_batches])
    for each in (stream, calm):
        in_fork(partial(note_rows, each, definitions[name]))
    assert rows_noted(stream) == rows_noted(calm), (kind, seed, of_batches)
    return deaths


def live_on(calm: Stream, of_batches: list[dict[str, Any]]) -> None:
    """Process each batch by its definition; a driver stops where another one follows."""
    for _, alike in groupby(of_batches, id):
        batches = [*alike]
        calm.come(len(batches))
        in_fork(partial(run, calm, batches[0]))


def make_ready() -> None:
    """Load what forks share; the warnings of the streams are not wanted."""
    import_module("pyiceberg.catalog.sql")
    kernels.warm()
    pa.set_cpu_count(1)
    logging.disable(logging.CRITICAL)


def main(seed: int, walks: int) -> None:
    """Walk so many times from a seed on, with the kinds of sinks in turn."""
    make_ready()
    begun, deaths, kinds = time.monotonic(), 0, [*SINKS]
    with TemporaryDirectory() as folder:
        for number in range(walks):
            deaths += walk(kinds[number % len(kinds)], Path(folder) / str(number), seed + number)
    print(f"{walks} walks, {deaths} deaths, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
