"""Memory that a Python worker keeps between tasks: loaded modules, and freed memory of Arrow.

PySpark collects garbage after each task, among all objects of the worker. With pyarrow, Numba and the kernels this
takes more than a tenth of a second of a core, longer than a small task itself, and the worker's next task waits for it.
Modules and compiled functions live as long as the process, so they are excluded from collection once they are loaded.

Arrow's own allocator soon returns memory to the system, and later gets it again page by page. This is slow for a task
that writes hundreds of megabytes of answers: with 12 criteria a batch took an eighth longer than with the system's
allocator, which keeps more.
"""

from __future__ import annotations

import gc
import os
from functools import cache

import pyarrow as pa
from pyspark import TaskContext


def keep_loaded(stage: type) -> None:
    """Exclude all objects that are loaded now from garbage collection; called at the end of a task of `stage`.

    Takes effect once per stage in a worker, so that the garbage of later tasks is collected; does nothing elsewhere.
    """
    if TaskContext.get() is not None:
        _freeze(stage)
        _keep_memory()


@cache
def _freeze(stage: type) -> None:
    del stage
    gc.collect()
    gc.freeze()


@cache
def _keep_memory() -> None:
    """Let Arrow use the system's allocator from now on, unless the user has chosen one."""
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
