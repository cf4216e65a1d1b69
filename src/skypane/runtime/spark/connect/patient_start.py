"""Start queries on a server whose machine is busy.

Spark waits ten seconds, which no setting changes, for the Python process of a query to connect. On a busy machine the
process may take longer to load PySpark. Nothing has been started then, so the start is repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

_TRIES: Final = 5
_LATE: Final = "Python worker failed to connect back"


def patiently_started(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Return the query that `start` starts in the first of _TRIES attempts in which its process connects in time."""
    for _ in range(_TRIES - 1):
        try:
            return start()
        except PySparkException as error:
            if _LATE not in str(error):
                raise
            log.warning("Python beside the server took more than ten seconds to start; the start is repeated")
    return start()
