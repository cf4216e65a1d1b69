"""Run by test_connect in a process of its own: a client of Spark Connect, which a process with a classic session cannot be.

Its argument, in JSON, is the address of a server, the name of a scenario, and a folder, which may have what the scenario needs.
What the scenario finds is printed as a line of JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from tests.runtime import connect_driver, connect_features, connect_packed

SCENARIOS: Final = connect_driver.SCENARIOS | connect_features.SCENARIOS | connect_packed.SCENARIOS


def main() -> None:
    address, name, folder = json.loads(sys.argv[1])
    session = SparkSession.builder.remote(address).create()
    try:
        print(json.dumps(SCENARIOS[name](session, Path(folder))))
    finally:
        session.stop()


if __name__ == "__main__":
    main()
