"""One session for all cases."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession
from tests.checkout import ROOT

from skypane.runtime.spark.machine.session import session


def started() -> SparkSession:
    """Return a session of two threads, whose workers find the modules of tests, too."""
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{inherited}" if inherited else str(ROOT)
    spark = session("local[2]", "skypane-differential", {"spark.driver.memory": "2g"})
    spark.sparkContext.setLogLevel("OFF")
    return spark
