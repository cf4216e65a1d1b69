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
#: what Spark says in pages where there was not enough memory, and what that means
_MEMORY = {
    "java.lang.OutOfMemoryError": "Java has not enough memory: give it more (spark.driver.memory, on a cluster "
    "spark.executor.memory), or let a batch have fewer rows",
    "Python worker exited unexpectedly": "a Python worker was ended from outside, by the system for want of memory most often: "
    "let a batch have fewer rows, take fewer tasks at once, or give the machine more memory (or compiled code has crashed: "
    "a trace of Python's stands in the log then)",
}
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
        for sign, sentence in _MEMORY.items():
            if sign in text:
                return sentence
        raised = [line.removeprefix(": ") for line in lines if _RAISED.match(line)]
        line = (raised or lines[:1] or [type(error).__name__])[-1]
        ended = _ENDED.fullmatch(line)
        return shortened(ended[1] if ended else line, _SHOWN)
    return shortened(": ".join([type(error).__name__, *lines[:1]]), _SHOWN)
