"""The Python interpreter of Spark's workers, which must read this process's pickles and have the same packages."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakSet

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.machine.session_kind import kind_of
from skypane.types import ConfigError

log = logging.getLogger(__name__)

NEEDED = ("skypane", "pyspark", "pyarrow", "numpy", "pandas", "numba")
"""Packages that a worker needs to lift rows."""

_DEFAULT = "python3"
"""The program that PySpark runs if PYSPARK_PYTHON is not set: the first of this name on PATH."""

_ASK = (
    "import json, sys; from importlib.util import find_spec; "
    "print(json.dumps([sys.version.split()[0], sys.prefix, [name for name in sys.argv[1:] if not find_spec(name)]]))"
)
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python environment; `missing` has the packages of NEEDED that it lacks."""

    version: str
    prefix: str
    missing: tuple[str, ...] = ()

    @classmethod
    def this(cls) -> Interpreter:
        return cls(sys.version.split()[0], sys.prefix)

    @property
    def fault(self) -> str | None:
        """The reason why it cannot run this process's workers, or None; pickles need the same minor version."""
        here = Interpreter.this().version
        if self.version.split(".")[:2] != here.split(".")[:2]:
            return f"is Python {self.version}, not {here}"
        return f"has no {' and no '.join(self.missing)}" if self.missing else None

    def __str__(self) -> str:
        return f"Python {self.version} of {self.prefix}"


def use_this_interpreter(environment: MutableMapping[str, str] | None = None) -> None:
    """Make Spark's Python workers run the driver's interpreter, unless the user has chosen another one."""
    target = os.environ if environment is None else environment
    target.setdefault("PYSPARK_PYTHON", sys.executable)
    target.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def chosen() -> str:
    """Return the program that the workers of a session started now would run."""
    return os.environ.get("PYSPARK_PYTHON") or _DEFAULT


@lru_cache(maxsize=8)
def ask(program: str) -> Interpreter:
    """Return the Python environment of `program`; raise OSError or SubprocessError if it does not run."""
    if program == sys.executable:
        return Interpreter.this()
    command = [program, "-c", _ASK, *NEEDED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)  # noqa: S603
    version, prefix, missing = json.loads(done.stdout)
    return Interpreter(version, prefix, tuple(missing))


def check_workers(spark: SparkSession) -> None:
    """Raise ConfigError if the workers of a local session run a Python that is incompatible with this one.

    If the user has chosen no Python, and the first on PATH is incompatible, as in an environment that is not activated,
    the workers run this one from now on. No Spark job runs. The workers of a cluster are on other machines, and
    try_workers() checks them.
    """
    program = _local_program(spark)
    if program is None:
        return
    try:
        fault = ask(program).fault
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        fault = f"does not run ({error})"
    if fault is None:
        return
    if not is_chosen(spark):
        log.info("Spark's workers run %s, because %r %s", sys.executable, program, fault)
        kind_of(spark).run_workers_with(sys.executable)
        return
    raise ConfigError(_refusal(f"{program!r}, which {fault}"))


def is_chosen(spark: SparkSession) -> bool:
    """Return whether the user has chosen the Python that the workers of `spark` run."""
    return (
        kind_of(spark).worker_program() != _DEFAULT
        or "PYSPARK_PYTHON" in os.environ
        or spark.conf.get("spark.pyspark.python", None) is not None
    )


#: sessions whose workers were checked successfully
_TRIED: WeakSet[SparkSession] = WeakSet()


def try_workers(spark: SparkSession) -> None:
    """Raise ConfigError if a worker of a cluster is incompatible with this process; runs one small job per session."""
    if spark in _TRIED or _local_program(spark) is not None:
        return
    try:
        rows = spark.range(1).mapInArrow(_package_check(NEEDED), "missing string").collect()
    except PySparkException as error:
        raise ConfigError(_refusal(f"a Python that fails: {cause(error)}")) from error
    missing = tuple(json.loads(rows[0].missing))
    if missing:
        raise ConfigError(_refusal(f"a Python that has no {' and no '.join(missing)}"))
    _TRIED.add(spark)


def _local_program(spark: SparkSession) -> str | None:
    """Return the program that the workers of a local session run; None for a cluster or Spark Connect."""
    if not (spark.conf.get("spark.master", "") or "").startswith("local"):
        return None
    return kind_of(spark).worker_program()


def _package_check(needed: tuple[str, ...]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that yields the packages missing where it runs.

    It is pickled by value, because skypane itself may be missing there.
    """

    def missing_here(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import json  # noqa: PLC0415 - on the worker
        from importlib.util import find_spec  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        for _ in batches:
            missing = [name for name in needed if not find_spec(name)]
            yield pa.RecordBatch.from_pydict({"missing": [json.dumps(missing)]})

    return missing_here


def _refusal(program: str) -> str:
    return (
        f"Spark's workers run {program}: before the session starts, set PYSPARK_PYTHON to a Python that has skypane "
        f"(here {sys.executable}), or use sp.session(), which does so"
    )
