"""What a job file names of a user's own: "traffic.QueueEnd" is QueueEnd of the module traffic.

A job file is data: it runs no code by being read. Only modules that whoever starts the job has allowed are imported, and
only what stands in them is called; those of the examples that are shipped are, without a word.
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
class Modules:
    """The modules, by their full names, that a job file may name something of, beside those that are shipped."""

    allowed: frozenset[str] = frozenset()

    def __call__(self, name: str) -> Any:
        """Return what "module.name" names; modules are found as Python finds them, and in the working folder.

        Raise ConfigError, with nothing imported, if the module is not allowed; or, saying how far it was found, if it names
        nothing. Spark's workers have to find the module too.
        """
        module, _, attribute = name.rpartition(".")
        if not module:
            raise ConfigError(f"{shortened(name)!r} is of no module: write where it is, as in my_module.{attribute}")
        if module not in self.allowed and not module.startswith(SHIPPED):
            raise ConfigError(
                f"{shortened(name)!r} is code of the module {shortened(module)!r}, which a job file may not run by itself: "
                f"if you trust it, start with --allow {shortened(module)}"
            )
        found = _imported(module, name)
        if not hasattr(found, attribute):
            public = [one for one in vars(found) if not one.startswith("_")]
            raise ConfigError(f"module {module!r} has no {attribute!r}, {instead(attribute, public)}")
        there = getattr(found, attribute)
        if module not in self.allowed and getattr(there, "__module__", None) != module:
            raise ConfigError(f"{name!r} is no part of {module!r}, which only imports it")
        return there


def _imported(module: str, name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last: what is installed comes first
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"{name!r}: cannot import {module!r}: {error}") from error
