"""Why something failed, in one line: Spark tells it in pages, with the line that matters somewhere in the middle."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from skypane.naming import shortened
from skypane.types import SkypaneError

#: "pyspark.errors.SomeError: why"
_RAISED = re.compile(r"(: )?[\w.]+(Error|Exception): ")
#: what Spark puts around the reason for which a stream has ended
_ENDED = re.compile(r"\[STREAM_FAILED\] Query \[.*?\] terminated with exception: (.*?)( SQLSTATE: \w+)?")
#: characters of a line that are repeated; some libraries put whole documents into one
_SHOWN = 2_000


def cause(error: BaseException) -> str:
    """Return the line that says why `error` was raised.

    Our own errors are such a line. Of Spark's it is the last error of a worker's traceback, or else the first line; of
    any other its type and its first line.

    >>> cause(OSError("the disk is full"))
    'OSError: the disk is full'
    """
    text = str(error).strip()
    if isinstance(error, SkypaneError):
        return text
    lines = text.splitlines()
    if isinstance(error, PySparkException | Py4JJavaError):
        raised = [line.removeprefix(": ") for line in lines if _RAISED.match(line)]
        line = (raised or lines[:1] or [type(error).__name__])[-1]
        ended = _ENDED.fullmatch(line)
        return shortened(ended[1] if ended else line, _SHOWN)
    return shortened(": ".join([type(error).__name__, *lines[:1]]), _SHOWN)
