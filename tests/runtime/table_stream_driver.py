"""Run by test_table_streams as a process of its own: a stream into a table of an open format that dies at a place of its work.

Its argument is a folder with `in`, the rows, and crash.json: the format, one of FORMATS, the place, one of PLACES, and
whether workers answer windows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable as OpenedTable
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession
from tests.runtime.driver import die, replace_method
from tests.runtime.streams import SECOND, finish, late_rows, read_batches

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
    sp.Skyline("price MIN, rating MAX", by="sensor"), Windows(50 * SECOND, 20 * SECOND), "ts", sp.KSlack()
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


def job(spark: SparkSession, folder: Path, form: Format, *, cut: bool = False) -> sp.Job:
    """Return the job of a folder; `cut`: workers answer its windows, into several files."""
    whole = sp.stream(
        read_batches(spark, folder / "in", SCHEMA),
        PLAN.query,
        time="ts",
        window=PLAN.windows,
        progress=PLAN.progress,
        checkpoint=folder / "checkpoint",
        output=form.sink(folder, NAME),
        workers=sp.WorkerOptions(wlq_workers=2),
    )
    if not cut:
        return whole
    costs = replace(whole.settings.costs, job=0.0, window=1.0, shard_per_row=0.0)
    return replace(whole, settings=replace(whole.settings, costs=costs))


def _before_the_table(form: Format) -> None:
    def commit(original: Callable[..., Any], *what: Any, **more: Any) -> Any:
        return die() if _adds_rows(what) else original(*what, **more)

    replace_method(form.commits, "commit", commit)


def _after_the_table(form: Format) -> None:
    def commit(original: Callable[..., Any], *what: Any, **more: Any) -> None:
        original(*what, **more)
        if _adds_rows(what):
            die()

    replace_method(form.commits, "commit", commit)


def _adds_rows(what: tuple[Any, ...]) -> bool:
    """Return whether a commit is that of a batch, and not that of a start: it has a batch beside table, state and note."""
    return len(what) > 3


def _before_the_ledger(_form: Format) -> None:
    replace_method(Ledger, "commit", lambda _original, *_: die())


PLACES: Final = {
    "before the ledger": _before_the_ledger,
    "before the table": _before_the_table,
    "after the table": _after_the_table,
}


def main() -> None:
    folder = Path(sys.argv[1])
    crash = json.loads((folder / "crash.json").read_text())
    form = FORMATS[crash["format"]]
    spark = session("local[1]", "tables")
    PLACES[crash["place"]](form)
    finish(job(spark, folder, form, cut=crash["cut"]))


if __name__ == "__main__":
    main()
