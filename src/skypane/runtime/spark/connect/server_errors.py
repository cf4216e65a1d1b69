"""Errors of the engine beside the server, as the client finds them in Spark's errors."""

from __future__ import annotations

import re
from typing import Final

from skypane.runtime.spark.batch_lifecycle import FAILED
from skypane.runtime.spark.error_causes import cause
from skypane.types import SkypaneError

_FAILED: Final = re.compile(FAILED.format(r"\d+") + "(.*)")


def cause_in(error: BaseException) -> str | None:
    r"""Return the cause of a batch's failure, which is in the trace of Spark's error; None if there is none.

    >>> cause_in(RuntimeError("Traceback\nRuntimeError: skypane: batch 3 failed: the disk is full\n SQLSTATE: 38000"))
    'the disk is full'
    """
    found = _FAILED.search(str(error))
    return None if found is None else found[1]


def failed(error: BaseException) -> SkypaneError:
    """Return the error of the engine in Spark's error, or else Spark's in one line."""
    return SkypaneError(cause_in(error) or cause(error))
