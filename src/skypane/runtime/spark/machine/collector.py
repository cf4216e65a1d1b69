"""What a Python worker keeps from task to task: what it has loaded, and memory.

PySpark looks for garbage after each task, in the worker that has run it, among all objects that are there. With pyarrow, Numba
and the kernels that takes more than a tenth of a second of a core, which is more than the work of a small task; and the next
task of the worker waits for it. Modules and compiled functions stay as long as the process: once they are there they need
not be looked through again.

Arrow's own allocator gives memory back soon, and gets it again page by page. A task that writes hundreds of megabytes of
answers pays for that: with 12 criteria a batch took an eighth longer than with the system's, which keeps more.
"""

from __future__ import annotations

import gc
import os
from functools import cache

import pyarrow as pa
from pyspark import TaskContext


def keep_loaded(stage: type) -> None:
    """Call at the end of a task of `stage`, when it has loaded what it needs: what is there then is taken to stay.

    Does something once for each stage in a worker, so that what later tasks leave behind is found; elsewhere nothing.
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
    """Let Arrow use the system's allocator from now on, unless somebody has chosen one."""
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
