"""Resolve user code that a job file names: "traffic.QueueEnd" is QueueEnd of the module traffic.

A job file is data, and reading it runs no code. Only modules that the user who starts the job has allowed are imported,
and only objects defined in them are called. The modules of the examples that come with skypane are always allowed.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skypane.naming import instead, shortened
from skypane.types import ConfigError

SHIPPED = "skypane.examples."


@dataclass(frozen=True)
class AllowedModules:
    """The full names of the modules whose code a job file may name, in addition to those of the examples."""

    allowed: frozenset[str] = frozenset()

    def __call__(self, name: str) -> Any:
        """Return the object "module.name"; modules are searched on Python's path, then in the working folder.

        Raise ConfigError if the module is not allowed, before anything is imported, or if the module or the name does
        not exist. Spark's workers must be able to import the module too.
        """
        module, _, attribute = name.rpartition(".")
        if not module:
            raise ConfigError(
                f"{shortened(name)!r} has no module; write it with its module, as in my_module.{attribute}"
            )
        if module not in self.allowed and not module.startswith(SHIPPED):
            raise ConfigError(
                f"{shortened(name)!r} is in the module {shortened(module)!r}, which this job file may not import; "
                f"if you trust it, start with --allow {shortened(module)}"
            )
        found = _imported(module, name)
        if not hasattr(found, attribute):
            public = [one for one in vars(found) if not one.startswith("_")]
            raise ConfigError(f"module {module!r} has no {attribute!r}, {instead(attribute, public)}")
        there = getattr(found, attribute)
        if module not in self.allowed and getattr(there, "__module__", None) != module:
            raise ConfigError(
                f"{name!r} is not defined in {module!r}, which only imports it; name the module that defines it"
            )
        return there


def _imported(module: str, name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last, so that installed modules take precedence
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"{name!r}: cannot import {module!r}: {error}") from error
