"""Jobs over the batches in a folder, and what they leave there beside their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.chaos.checking import partials_of
from tests.runtime.streams import AnySession, read_batches

import skypane as sp
from skypane.control.costs import Costs
from skypane.control.placement import place_windows
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import window_program
from skypane.runtime.spark.engine.ledger import Ledger, Manifest


def job_of(
    session: AnySession,
    folder: Path,
    asked: Any,
    schema: pa.Schema,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> sp.Job:
    """Return the job of a query, or of a mapping of several, over the batches in `folder / "in"`; it writes into `folder`."""
    own: dict[str, Any] = {
        "time": "ts",
        "progress": sp.Watermark("20 seconds"),
        "checkpoint": folder / "checkpoint",
        "output": folder / "out",
    }
    rows = read_batches(session, folder / "in", schema)
    stream: Any = sp.streams if isinstance(asked, Mapping) else sp.stream
    job: sp.Job = stream(rows if columns is None else rows.select(*columns), asked, **own | options)
    return job


def drain_without_commit(handle: sp.StreamHandle, patch: pytest.MonkeyPatch) -> None:
    """Let a drain end before its commit, as a kill does."""
    with patch.context() as once:
        once.setattr(Ledger, "commit", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            handle.drain()


def ledger_of(folder: Path) -> Ledger:
    return Ledger(DocumentStore.at(folder / "checkpoint").child("skypane"))


def latest(folder: Path) -> Manifest:
    """Return the newest manifest."""
    manifest = ledger_of(folder).latest()
    assert manifest is not None
    return manifest


def partials(folder: Path) -> set[str]:
    """Return the names of the files of partials."""
    return {path.name for path in (folder / "checkpoint" / "skypane" / "partials").iterdir()}


def named_partials(folder: Path) -> set[str]:
    """Return the files of partials that the newest manifest names."""
    return partials_of(latest(folder))


def answer_on_workers(patch: pytest.MonkeyPatch) -> None:
    """Let workers answer windows, as they do where a job of Spark's costs nothing."""
    patch.setattr(window_program, "place_windows", lambda due, _: place_windows(due, Costs(job=0.0)))
