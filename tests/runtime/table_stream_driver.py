"""Run by test_table_streams as a process of its own: streams into tables of open formats that die at one place of their work.

Its argument is a folder with `in`, the rows, and crash.json: the place, one of PLACES, and whether workers answer windows. The
streams of STREAMS run at once, each in a folder of its name; when all have come to the place, the process dies.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable as OpenedTable
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession
from tests.runtime.driver import answered_by_workers, die, replace_method
from tests.runtime.streams import SECOND, late_rows, stream_job

import skypane as sp
from skypane.plan import Plan
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.machine.session import session
from skypane.runtime.spark.sinks.delta_table import DeltaTable
from skypane.runtime.spark.sinks.iceberg_table import IcebergTable
from skypane.windows import Windows

NAME: Final = "stream.answers"
SCHEMA: Final = late_rows(0, batches=1).pop().schema
PLAN: Final = Plan(
    sp.Skyline("price MIN, rating MAX", by="sensor"),
    Windows(50 * SECOND, 20 * SECOND),
    "ts",
    sp.Watermark("20 seconds"),
)


@dataclass(frozen=True)
class Format:
    """A format of tables: a sink of the table of a name in a folder, its rows, and the class that commits to it."""

    sink: Callable[[Path, str], sp.Sink]
    rows: Callable[[Path, str], pa.Table]
    commits: type


def _properties(folder: Path) -> dict[str, str]:
    return {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/tables"}


def _rows_of_iceberg(folder: Path, name: str) -> pa.Table:
    with load_catalog("default", **_properties(folder)) as catalog:
        return catalog.load_table(name).scan().to_arrow()


FORMATS: Final = {
    "delta": Format(
        lambda folder, name: sp.Delta(str(folder / name)),
        lambda folder, name: OpenedTable(folder / name).to_pyarrow_table(),
        DeltaTable,
    ),
    "iceberg": Format(
        lambda folder, name: sp.Iceberg(name, options=_properties(folder)), _rows_of_iceberg, IcebergTable
    ),
}
STREAMS: Final = {f"{name}-{cut}": (form, cut) for name, form in FORMATS.items() for cut in (False, True)}
"""By its name the format of a stream, and whether workers answer its windows when those of the others do not."""


def job(spark: SparkSession, folder: Path, form: Format, *, cut: bool = False, **more: Any) -> sp.Job:
    """Return a job over `in`, beside the folder of its own; `cut`: workers answer its windows, into several files."""
    folder.mkdir(exist_ok=True)
    own: dict[str, Any] = {
        "window": PLAN.windows, "progress": PLAN.progress, "workers": sp.WorkerOptions(wlq_workers=2),
        "checkpoint": folder / "checkpoint", "output": form.sink(folder, NAME),
    }  # fmt: skip
    whole = stream_job(spark, folder.parent, PLAN.query, SCHEMA, **own | more)
    return answered_by_workers(whole) if cut else whole


def finish_at_once(jobs: Iterable[sp.Job], *, drain: bool = False) -> None:
    """Run jobs over all that is there."""
    for handle in [one.start(trigger="available now") for one in jobs]:
        assert handle.await_termination(600), handle.status
        if drain:
            handle.drain()


_TOGETHER: Final = Barrier(len(STREAMS))


def _die_together() -> None:
    _TOGETHER.wait(300)
    die()


def _before_the_table(form: Format) -> None:
    def commit(original: Callable[..., Any], *what: Any, **more: Any) -> Any:
        return _die_together() if _adds_rows(what) else original(*what, **more)

    replace_method(form.commits, "commit", commit)


def _after_the_table(form: Format) -> None:
    def commit(original: Callable[..., Any], *what: Any, **more: Any) -> None:
        original(*what, **more)
        if _adds_rows(what):
            _die_together()

    replace_method(form.commits, "commit", commit)


def _adds_rows(what: tuple[Any, ...]) -> bool:
    """Return whether a commit is that of a batch, and not that of a start: it has a batch beside table, state and note."""
    return len(what) > 3


def _before_the_ledger(form: Format) -> None:
    if form is FORMATS["delta"]:  # all streams have a ledger of one class
        replace_method(Ledger, "commit", lambda _original, *_: _die_together())


PLACES: Final = {
    "before the ledger": _before_the_ledger,
    "before the table": _before_the_table,
    "after the table": _after_the_table,
}


def main() -> None:
    folder = Path(sys.argv[1])
    crash = json.loads((folder / "crash.json").read_text())
    spark = session("local[2]", "tables")
    for form in FORMATS.values():
        PLACES[crash["place"]](form)
    finish_at_once(job(spark, folder / name, form, cut=crash["cut"] != cut) for name, (form, cut) in STREAMS.items())


if __name__ == "__main__":
    main()
