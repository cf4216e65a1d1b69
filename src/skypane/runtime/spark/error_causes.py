"""The cause of an error in one line: Spark reports pages, with the relevant line somewhere in the middle."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from skypane.addresses import without_secrets
from skypane.naming import shortened
from skypane.runtime.spark.machine.java_errors import Py4JJavaError
from skypane.types import SkypaneError

#: "pyspark.errors.SomeError: why"
_RAISED = re.compile(r"(: )?[\w.]+(Error|Exception): ")
#: Spark's wording around the reason for which a stream has ended
_ENDED = re.compile(r"\[STREAM_FAILED\] Query \[.*?\] terminated with exception: (.*?)( SQLSTATE: \w+)?")
#: texts in Spark's errors that say too little, and the sentences that replace them
_SENTENCES = {
    "java.lang.OutOfMemoryError": "Java has not enough memory: give it more (spark.driver.memory, on a cluster "
    "spark.executor.memory), or let a batch have fewer rows",
    "Python worker exited unexpectedly": "a Python worker was ended from outside, most often by the system for lack of "
    "memory: let a batch have fewer rows, run fewer tasks at once, or give the machine more memory (if compiled code "
    "has crashed, the log has a Python trace)",
    "[CANNOT_LOAD_STATE_STORE": "Spark cannot read the state of its operators before the query, the folder `state` of "
    "the checkpoint: it is damaged, or a part of it is gone (the log has Spark's reason). Restore the whole checkpoint "
    "from a copy, or start with a new one",
    "Failed to find data source: kafka": "Spark has no connector of Kafka here: read topics with the source skypane-many, "
    "sp.inputs in a program, which needs none, or start Spark with the package spark-sql-kafka-0-10",
}
#: maximum characters of the line; some libraries put whole documents into one
_MAX_LENGTH = 2_000


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FULL = "No space left on device"
_ROOM = "free space there, and start again: no row is lost, and the batch is repeated"


def has_no_room(error: OSError) -> bool:
    """Return whether an error says that a disk, or the part of it that a user may have, is full."""
    return error.errno in _NO_ROOM or _FULL in str(error)


@contextmanager
def room_in_words(place: str) -> Iterator[None]:
    """Raise SkypaneError, which names the file, or the place, and the remedy, if a disk has no room."""
    try:
        yield
    except OSError as error:
        if not has_no_room(error):
            raise
        raise SkypaneError(
            f"{without_secrets(str(error.filename or place))}: {error.strerror or _FULL}; {_ROOM}"
        ) from error


def cause(error: BaseException) -> str:
    """Return the line with the cause of `error`, without logins and signatures of addresses.

    For a SkypaneError this is its text; for an error of Spark the last error of a worker's traceback, or else the first
    line; for any other error its type and its first line.

    >>> cause(OSError("the disk is full"))
    'OSError: the disk is full'
    """
    line = without_secrets(_line(error))
    return f"{line}; {_ROOM}" if _FULL in line and _ROOM not in line else line


def _line(error: BaseException) -> str:
    text = str(error).strip()
    if isinstance(error, SkypaneError):
        return text
    lines = text.splitlines()
    if isinstance(error, PySparkException | Py4JJavaError):
        for sign, sentence in _SENTENCES.items():
            if sign in text:
                return sentence
        raised = [line.removeprefix(": ") for line in lines if _RAISED.match(line)]
        line = (raised or lines[:1] or [type(error).__name__])[-1]
        ended = _ENDED.fullmatch(line)
        return shortened(ended[1] if ended else line, _MAX_LENGTH)
    return shortened(": ".join([type(error).__name__, *lines[:1]]), _MAX_LENGTH)
