"""What a Python worker has loaded, out of its garbage collector's sight.

PySpark looks for garbage after each task, in the worker that has run it, among all objects that are there. With pyarrow, Numba
and the kernels that takes more than a tenth of a second of a core, which is more than the work of a small task; and the next
task of the worker waits for it. Modules and compiled functions stay as long as the process: once they are there they need
not be looked through again.
"""

from __future__ import annotations

import gc
from functools import cache

from pyspark import TaskContext


def keep_loaded(stage: type) -> None:
    """Call at the end of a task of `stage`, when it has loaded what it needs: what is there then is taken to stay.

    Does something once for each stage in a worker, so that what later tasks leave behind is found; elsewhere nothing.
    """
    if TaskContext.get() is not None:
        _freeze(stage)


@cache
def _freeze(stage: type) -> None:
    del stage
    gc.collect()
    gc.freeze()
