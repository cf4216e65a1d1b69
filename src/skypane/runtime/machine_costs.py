"""Measured costs of this machine, kept between runs: one file for each machine and master, in skypane's cache folder.

<cache>/costs/<digest of the machine>.json      {"machine": {...}, "costs": {...}}
"""

from __future__ import annotations

import json
import logging
import platform
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.locations import whole
from skypane.runtime.resources import GIB, cache_directory, cores, memory_bytes
from skypane.types import ConfigError

log = logging.getLogger(__name__)

_CPUS = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Machine:
    """The properties on which costs depend; for a cluster, the driver's machine and the master."""

    processor: str
    cores: int
    memory_gib: int
    python: str
    spark: str
    master: str

    @classmethod
    def this(cls, spark: str, master: str) -> Self:
        """Return this machine with the given version of Spark and master."""
        version = ".".join(platform.python_version_tuple()[:2])
        return cls(processor(), cores(), round(memory_bytes() / GIB), version, spark, master)

    @property
    def file(self) -> Path:
        """The file of its costs, which exists if they were measured."""
        text = json.dumps(asdict(self), sort_keys=True)
        return cache_directory() / "costs" / f"{sha256(text.encode()).hexdigest()[:16]}.json"


def read(machine: Machine) -> Costs:
    """Return the costs measured on a machine, or the defaults; log a warning if they cannot be read."""
    try:
        value = json.loads(machine.file.read_bytes())
        if value["machine"] != asdict(machine):
            raise ConfigError("it belongs to another machine")
        return Costs.from_json(value["costs"])
    except FileNotFoundError:
        return DEFAULT_COSTS
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning(
            "%s cannot be used (%s), so the default costs apply; run `skypane calibrate` again, or remove the file",
            machine.file,
            error,
        )
        return DEFAULT_COSTS


def write(machine: Machine, costs: Costs) -> Path:
    """Write the costs of a machine; return the file. Raises ConfigError if it cannot be written."""
    path = machine.file
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as draft:
            value = {"machine": asdict(machine), "costs": costs.to_json()}
            draft.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}; set SKYPANE_CACHE to a folder") from error
    return path


def processor() -> str:
    """Return the name of this machine's processor, such as its model in /proc/cpuinfo."""
    try:
        lines = _CPUS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
