"""PySpark's parent of Python workers, with what they need already loaded: a worker that was killed is back at once.

Nothing that is loaded here has a thread of its own by the time of the fork.
"""

from __future__ import annotations

import gc

import pandas as pd  # noqa: F401 - pyarrow loads it with the first table
import pyspark.daemon

import skypane.runtime.spark.engine.plq
import skypane.runtime.spark.engine.wlq
import skypane.runtime.spark.sources.many.source  # noqa: F401
from skypane import kernels

if __name__ == "__main__":
    kernels.warm()
    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()
