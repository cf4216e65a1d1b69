"""A job of daily prices, rows that jobs of these tests read from files, and those that they write."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

DAILY = """
name: prices
source: {{format: json, path: {folder}/in, schema: "at timestamp, stock string, price double"}}
query: {{kind: skyline, preference: "price MIN", by: stock}}
window: {{time: at, length: 1 day}}
output: {{path: {folder}/out}}
late: {{path: {folder}/late}}
checkpoint: {folder}/checkpoint
trigger: available now
"""


def put(folder: Path, *files: Sequence[Mapping[str, Any]], first: int = 0) -> None:
    """Write files of rows as JSON lines into the folder `in`, which Spark reads in their order."""
    (folder / "in").mkdir(exist_ok=True)
    for number, rows in enumerate(files, first):
        file = folder / "in" / f"{number}.json"
        file.write_text("\n".join(map(json.dumps, rows)))
        os.utime(file, (number, number))  # Spark reads the oldest first


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """Return the rows that a job has written into a folder."""
    return [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
