"""Bytecode of the modules that a Python worker loads.

Python compiles a module when it is imported, and keeps the bytecode for the next process, unless this is disabled
(PYTHONDONTWRITEBYTECODE, as in many container images) or the folder is not writable. If packages were also installed
without bytecode (uv, pip --no-compile), each worker compiles the thousand modules that it loads, and its first answer
takes about 3 CPU seconds instead of 1.1.
"""

from __future__ import annotations

import py_compile
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Final

_LOADED: Final = ("pyspark.worker", "pandas", "skypane", "skypane.runtime.spark.engine.plq")
"""Modules that a worker loads; they import the others."""


def lacking(modules: Iterable[ModuleType] | None = None) -> list[ModuleSpec]:
    """Return those of `modules`, or of all modules that a worker loads, that have no bytecode file."""
    if modules is None:
        for name in _LOADED:
            import_module(name)
        modules = tuple(sys.modules.values())
    specs = [spec for spec in (getattr(module, "__spec__", None) for module in modules) if spec is not None]
    return [spec for spec in specs if spec.has_location and spec.cached and not Path(spec.cached).exists()]


def keep(specs: Iterable[ModuleSpec]) -> int:
    """Compile modules, and write their bytecode where Python looks for it; return the number of modules written."""
    kept = 0
    for spec in specs:
        with suppress(OSError):
            py_compile.compile(str(spec.origin), cfile=spec.cached, doraise=True)
            kept += 1
    return kept
