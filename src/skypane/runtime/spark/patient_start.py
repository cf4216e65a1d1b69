"""Start queries on a machine that is busy.

Spark waits ten seconds, which no setting changes, for the Python process of a query or of its source to connect. On a busy
machine the process may take longer to load PySpark. Nothing has been read then, so the start is repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

_TRIES: Final = 5
_LATE: Final = "Python worker failed to connect back"
INITIALIZING: Final = "Initializing"
"""How Spark's status of a query begins until its sources have started; its first batch is planned at once after that."""
_LOOK: Final = 0.05


def patiently_started(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Return the query that `start` starts in the first of _TRIES attempts in which its process connects in time."""
    for _ in range(_TRIES - 1):
        try:
            return start()
        except PySparkException as error:
            if _LATE not in str(error):
                raise
            log.warning("a Python process of Spark took more than ten seconds to start; the start is repeated")
    return start()


def with_sources(query: StreamingQuery) -> StreamingQuery:
    """Return a query when its sources have started, or it has ended; raise its error if their process was late."""
    while query.isActive and query.status["message"].startswith(INITIALIZING):
        with suppress(StreamingQueryException):
            query.awaitTermination(_LOOK)  # type: ignore[arg-type]  # it takes fractions
    if (error := query.exception()) is not None and _LATE in str(error):
        raise error
    return query
