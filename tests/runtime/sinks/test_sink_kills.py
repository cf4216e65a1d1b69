"""Folders, tables and topics whose drivers are killed at any line of their sinks: each batch is there once."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from tests.parameters import times
from tests.runtime.database_places import DATABASES, database
from tests.runtime.forked import Parent
from tests.runtime.killed_sinks import BATCHES, KINDS, ROWS
from tests.runtime.table_places import NAME, DeltaPlace, IcebergPlace
from tests.runtime.topic_place import TopicPlace

from skypane.runtime.spark.sinks.current_front import FILE

Place = tuple[Mapping[str, Any], Callable[[], list[int]]]
"""The arguments of a sink of its own, and what reads it: rows by their number, those of a topic as they lie there."""
Made = Callable[[str, pytest.FixtureRequest, Path], Place]

SERVERS: Final = ("postgresql", "kafka")


def of_folder(form: str, _request: pytest.FixtureRequest, folder: Path) -> Place:
    files = folder / "out"

    def read() -> list[int]:
        lines = [line for path in files.glob("part-*.json") for line in path.read_text().splitlines()]
        tables = [pq.read_table(path) for path in files.glob("part-*.parquet")]
        return sorted([json.loads(line)["n"] for line in lines] + [n for one in tables for n in one["n"].to_pylist()])

    return {"path": str(files), "format": form}, read


def of_front(_kind: str, _request: pytest.FixtureRequest, folder: Path) -> Place:
    """Return a folder of which a reader has the last batch alone."""
    file = folder / "out" / FILE
    return {"path": str(file.parent)}, lambda: [*range((BATCHES - 1) * ROWS), *pq.read_table(file)["n"].to_pylist()]


def of_database(kind: str, request: pytest.FixtureRequest, folder: Path) -> Place:
    place = replace(database(kind, request, folder), table=f"killed_{uuid4().hex[:8]}")
    return {"url": place.url, "table": place.table, "options": place.options}, place.rows


def of_delta(_kind: str, _request: pytest.FixtureRequest, folder: Path) -> Place:
    place = DeltaPlace(folder)
    return {"path": place.path}, place.rows


def of_iceberg(_kind: str, _request: pytest.FixtureRequest, folder: Path) -> Place:
    place = IcebergPlace(folder)
    return {"table": NAME, "options": place.properties}, place.rows


def of_topic(_kind: str, request: pytest.FixtureRequest, _folder: Path) -> Place:
    place = TopicPlace.made(request.getfixturevalue("kafka"))
    arguments = {"servers": place.broker.address, "topic": place.topic}
    return arguments, lambda: [row["n"] for _, row in place.messages()]


PLACES: Final[Mapping[str, Made]] = {
    **dict.fromkeys(("parquet", "json"), of_folder),
    "current": of_front,
    **dict.fromkeys(DATABASES, of_database),
    "delta": of_delta,
    "iceberg": of_iceberg,
    "kafka": of_topic,
}


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    """A process that has loaded all clients, from which the drivers are forked."""
    one = Parent("tests.runtime.killed_sinks")
    yield one
    one.close()


def driven(parent: Parent, folder: Path, *request: Any) -> tuple[int | None, str]:
    """Run a driver; return how it ended and what it printed."""
    with (folder / "errors").open("ab") as errors:
        driver = parent.fork("none", folder, errors)
    with driver.stdin, driver.stdout:
        json.dump(request, driver.stdin)
        driver.stdin.close()
        return driver.wait(), driver.stdout.read()


@pytest.mark.parametrize(("kind", "kills"), [
    *(pytest.param(kind, 3, id=f"{kind}-few") for kind in KINDS if kind not in SERVERS),
    *(pytest.param(kind, times(25), id=f"{kind}-many", marks=pytest.mark.slow) for kind in KINDS),
])  # fmt: skip
def test_kills_at_any_line_leave_each_batch_once(
    parent: Parent, request: pytest.FixtureRequest, tmp_path: Path, kind: str, kills: int
):
    """Each driver is killed at a later line of the sink or its client, in a place of its own; the next one finishes."""

    def place(name: object) -> tuple[Path, Place]:
        folder = tmp_path / str(name)
        folder.mkdir()
        return folder, PLACES[kind](kind, request, folder)

    folder, (arguments, _) = place("whole")
    code, printed = driven(parent, folder, kind, arguments, sys.maxsize)
    assert code == 0, (folder / "errors").read_text()
    lines = int(printed)
    # a driver may run a few lines fewer than the first one did, so the last step is left out
    for line in range(0, lines - lines // kills, lines // kills):
        folder, (arguments, read) = place(line)
        killed, finished = (driven(parent, folder, kind, arguments, last)[0] for last in (line, sys.maxsize))
        assert (killed, finished) == (-signal.SIGKILL, 0), f"line {line}: {(folder / 'errors').read_text()}"
        assert read() == list(range(BATCHES * ROWS)), line


def test_no_kind_is_left_out():
    assert PLACES.keys() == KINDS.keys()
