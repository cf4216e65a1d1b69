"""What a job file names of a user's own: "traffic.QueueEnd" is QueueEnd of the module traffic."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from skypane.naming import instead
from skypane.types import ConfigError


def named(name: str) -> Any:
    """Return what "module.name" names; modules are found as Python finds them, and in the working folder.

    Raise ConfigError, saying how far it was found, if it names nothing. Spark's workers have to find the module too.
    """
    module, _, attribute = name.rpartition(".")
    if not module:
        raise ConfigError(f"{name!r} is of no module: write where it is, as in my_module.{name}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last: what is installed comes first
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"{name!r}: cannot import {module!r}: {error}") from error
    if not hasattr(found, attribute):
        public = [one for one in vars(found) if not one.startswith("_")]
        raise ConfigError(f"module {module!r} has no {attribute!r}, {instead(attribute, public)}")
    return getattr(found, attribute)
