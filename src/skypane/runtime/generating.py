"""Write a workload to a parquet file batch by batch, so that it may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from skypane.locations import whole
from skypane.naming import shortened
from skypane.runtime.table_batching import as_tables, gathered
from skypane.types import ConfigError
from skypane.workloads import Stream

#: rows per row group: small, so that a task of a replay decodes few rows that it does not need
ROW_GROUP = 65_536


def write(workload: Stream, path: Path, progress: Callable[[int], None] = lambda _: None) -> int:
    """Write all rows of a workload, in the order of arrival; return their number.

    `progress` is called with the number of rows written so far. The file appears when it is complete. Raises
    ConfigError if the workload is endless, or if the file cannot be written.
    """
    if workload.rows is None and workload.length is None:
        raise ConfigError("the workload is endless and would fill any disk; set the number of rows or of seconds")
    row_count = 0
    try:
        with whole(path) as part, pq.ParquetWriter(part, workload.schema) as writer:
            for group in gathered(as_tables(workload.batches()), ROW_GROUP):
                writer.write_table(group, row_group_size=ROW_GROUP)
                row_count += group.num_rows
                progress(row_count)
    except OSError as error:
        raise ConfigError(f"cannot write {shortened(str(path))}: {error.strerror or error}") from error
    return row_count
