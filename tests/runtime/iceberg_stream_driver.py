"""Run by test_iceberg_stream as a process of its own: a stream into a table of Iceberg that dies at a place of its work.

Its argument is a folder with `in`, the rows, and crash.json: the place, one of PLACES, and whether workers answer windows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession
from tests.runtime.driver import die, replace_method
from tests.runtime.streams import SECOND, finish, late_rows, read_batches

import skypane as sp
from skypane.plan import Plan
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.machine.session import session
from skypane.windows import Windows

NAME: Final = "stream.answers"
SCHEMA: Final = late_rows(0, batches=1).pop().schema
PLAN: Final = Plan(
    sp.Skyline("price MIN, rating MAX", by="sensor"), Windows(50 * SECOND, 20 * SECOND), "ts", sp.KSlack()
)


def properties(folder: Path) -> dict[str, str]:
    """Return where the catalog of a folder is."""
    return {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/tables"}


def job(spark: SparkSession, folder: Path, *, cut: bool = False) -> sp.Job:
    """Return the job of a folder; `cut`: workers answer its windows, into several files."""
    whole = sp.stream(
        read_batches(spark, folder / "in", SCHEMA),
        PLAN.query,
        time="ts",
        window=PLAN.windows,
        progress=PLAN.progress,
        checkpoint=folder / "checkpoint",
        output=sp.Iceberg(NAME, options=properties(folder)),
        workers=sp.WorkerOptions(wlq_workers=2),
    )
    if not cut:
        return whole
    costs = replace(whole.settings.costs, job=0.0, window=1.0, shard_per_row=0.0)
    return replace(whole, settings=replace(whole.settings, costs=costs))


def _adds_rows(updates: tuple[Any, ...]) -> bool:
    """Return whether a commit is that of a batch, and not that of a start."""
    snapshots = [update.snapshot for update in updates if update.action == "add-snapshot"]
    return any("skypane.batch" in one.summary.additional_properties for one in snapshots)


def _before_the_table() -> None:
    def commit(original: Callable[..., Any], catalog: SqlCatalog, *what: Any) -> Any:
        return die() if _adds_rows(what[2]) else original(catalog, *what)

    replace_method(SqlCatalog, "commit_table", commit)


def _after_the_table() -> None:
    def commit(original: Callable[..., Any], catalog: SqlCatalog, *what: Any) -> Any:
        committed = original(catalog, *what)
        return die() if _adds_rows(what[2]) else committed

    replace_method(SqlCatalog, "commit_table", commit)


def _before_the_ledger() -> None:
    replace_method(Ledger, "commit", lambda _original, *_: die())


PLACES: Final = {
    "before the ledger": _before_the_ledger,
    "before the table": _before_the_table,
    "after the table": _after_the_table,
}


def main() -> None:
    folder = Path(sys.argv[1])
    crash = json.loads((folder / "crash.json").read_text())
    spark = session("local[1]", "iceberg")
    PLACES[crash["place"]]()
    finish(job(spark, folder, cut=crash["cut"]))


if __name__ == "__main__":
    main()
