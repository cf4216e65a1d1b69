"""Runs a scenario of connect_main with what PySpark's package `pyspark-client` has: no Py4J, and nothing that needs it."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Final

LACKING: Final = ("py4j", "pyspark.core", "pyspark.sql.classic")


class Lacking(MetaPathFinder):
    """Finds none of these modules, whatever is installed."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        del path, target
        if any(f"{fullname}.".startswith(f"{name}.") for name in LACKING):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


if __name__ == "__main__":
    sys.meta_path.insert(0, Lacking())
    runpy.run_module("tests.runtime.connect_main", run_name="__main__", alter_sys=True)
