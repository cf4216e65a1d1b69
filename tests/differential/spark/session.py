"""One session for all cases."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

from skypane.runtime.spark.machine.session import session


def started(root: Path) -> SparkSession:
    """Return a session of two threads, whose workers find the modules of tests, too."""
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{root}{os.pathsep}{inherited}" if inherited else str(root)
    spark = session("local[2]", "skypane-differential", {"spark.driver.memory": "2g"})
    spark.sparkContext.setLogLevel("OFF")
    return spark
