"""A batch that a folder receives again after a kill: the files that are there already stay as they are.

A reader of the folder, such as the next query, may have read them. A repeated batch has the same rows, but it may be cut
into other files: with other costs, other workers answer the windows. So only the rows that are missing are added. Stays,
which end where the windows of a worker end, are compared window by window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from skypane.operators.stay_columns import one_by_one
from skypane.runtime.spark.sinks import text_format
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.types import CheckpointError


def of_other_rows(batch_id: int, place: str, found: str, there: str) -> CheckpointError:
    """Return the error for a batch of other rows than a place has, which cannot be changed, with their digests.

    place   "table best", "topic best"
    """
    kind = place.partition(" ")[0]
    return CheckpointError(
        f"batch {batch_id} comes again with other rows than {place} has ({found}, and {there} there): an earlier start has "
        f"delivered it, and ended before its commit. If the job was changed since, start it once as it was: it commits the "
        f"batch, and the change can follow. If it was not, Spark has lost its record of the batch: start with a new "
        f"checkpoint and a new {kind}"
    )


def missing_rows(answers: BatchRows, published: pa.Table) -> pa.Table | None:
    """Return the rows of a batch that are not published yet, in order; None if others than these are published.

    Rows are compared as they are written in JSON, so rows of any type can be. Stays may be cut otherwise than the published
    ones: then those of a single window are returned.
    """
    rows = answers.table()
    missing = _missing(rows, published)
    if missing is None and answers.holds_stays:
        return _missing(one_by_one(rows), one_by_one(published))
    return missing


def _missing(rows: pa.Table, published: pa.Table) -> pa.Table | None:
    left = Counter(_lines_of(published))
    where = [index for index, line in enumerate(_lines_of(rows)) if not _taken(left, line)]
    return None if left.total() else rows.take(pa.array(np.array(where, np.int64)))


def same_lines(text: bytes, other: bytes) -> bool:
    """Return whether two files of a text format have the same lines, in any order."""
    return text == other or sorted(text.splitlines()) == sorted(other.splitlines())


def _taken(left: Counter[bytes], line: bytes) -> bool:
    """Take a line off those that are left; return whether it was there."""
    if not left[line]:
        return False
    left[line] -= 1
    return True


def _lines_of(rows: pa.Table) -> Iterator[bytes]:
    """Yield a digest of each row."""
    for batch in rows.to_batches():
        stream = pa.BufferOutputStream()
        text_format.write_json(pa.Table.from_batches([batch]), stream)
        for line in stream.getvalue().to_pybytes().splitlines():
            yield blake2b(line, digest_size=16).digest()
