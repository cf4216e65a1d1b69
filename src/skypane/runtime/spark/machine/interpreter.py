"""Which Python runs Spark's workers: what this process pickles, they must be able to read, with the same packages."""

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

from skypane.runtime.spark.causes import cause
from skypane.types import ConfigError

log = logging.getLogger(__name__)

NEEDED = ("skypane", "pyspark", "pyarrow", "numpy", "pandas", "numba")
"""Packages without which a worker cannot lift."""

_DEFAULT = "python3"
"""What PySpark runs where PYSPARK_PYTHON is not set: whatever comes first on PATH."""

_ASK = (
    "import json, sys; from importlib.util import find_spec; "
    "print(json.dumps([sys.version.split()[0], sys.prefix, [name for name in sys.argv[1:] if not find_spec(name)]]))"
)
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python environment; `missing` are the packages of NEEDED that it lacks."""

    version: str
    prefix: str
    missing: tuple[str, ...] = ()

    @classmethod
    def this(cls) -> Interpreter:
        return cls(sys.version.split()[0], sys.prefix)

    @property
    def fault(self) -> str | None:
        """Why it cannot work for this process, or None; a minor version of Python reads no other's pickles."""
        here = Interpreter.this().version
        if self.version.split(".")[:2] != here.split(".")[:2]:
            return f"is Python {self.version}, not {here}"
        return f"has no {' and no '.join(self.missing)}" if self.missing else None

    def __str__(self) -> str:
        return f"Python {self.version} of {self.prefix}"


def use_this_interpreter(environment: MutableMapping[str, str] | None = None) -> None:
    """Make Spark's Python workers run the interpreter that runs the driver, unless the user has said otherwise."""
    target = os.environ if environment is None else environment
    target.setdefault("PYSPARK_PYTHON", sys.executable)
    target.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def chosen() -> str:
    """Return the program that the workers of a session run which is started now."""
    return os.environ.get("PYSPARK_PYTHON") or _DEFAULT


@lru_cache(maxsize=8)
def ask(program: str) -> Interpreter:
    """Return what `program` is; raise OSError or SubprocessError if it does not run."""
    if program == sys.executable:
        return Interpreter.this()
    command = [program, "-c", _ASK, *NEEDED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)  # noqa: S603
    version, prefix, missing = json.loads(done.stdout)
    return Interpreter(version, prefix, tuple(missing))


def check_workers(spark: SparkSession) -> None:
    """Raise ConfigError if the workers of a local session run a Python that cannot work for this one.

    Where nobody has chosen a Python, and the first on PATH cannot work, as in an environment that is not activated,
    they run this one from now on. Nothing is run on Spark. The workers of a cluster are on other machines:
    try_workers() asks them.
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
        log.info("Spark's workers run %s, as %r %s", sys.executable, program, fault)
        spark.sparkContext.pythonExec = sys.executable
        return
    raise ConfigError(_refusal(f"{program!r}, which {fault}"))


def is_chosen(spark: SparkSession) -> bool:
    """Return whether somebody has said which Python the workers of `spark` run."""
    return (
        spark.sparkContext.pythonExec != _DEFAULT
        or "PYSPARK_PYTHON" in os.environ
        or spark.conf.get("spark.pyspark.python", None) is not None
    )


#: sessions whose workers have answered
_TRIED: WeakSet[SparkSession] = WeakSet()


def try_workers(spark: SparkSession) -> None:
    """Raise ConfigError if a worker of a cluster cannot work for this process: one small job, once a session."""
    if spark in _TRIED or _local_program(spark) is not None:
        return
    try:
        rows = spark.range(1).mapInArrow(_question(NEEDED), "missing string").collect()
    except PySparkException as error:
        raise ConfigError(_refusal(f"a Python that fails: {cause(error)}")) from error
    missing = tuple(json.loads(rows[0].missing))
    if missing:
        raise ConfigError(_refusal(f"a Python that has no {' and no '.join(missing)}"))
    _TRIED.add(spark)


def _local_program(spark: SparkSession) -> str | None:
    """Return what the workers of a local session run; None if they are elsewhere, or a server decides."""
    if not (spark.conf.get("spark.master", "") or "").startswith("local"):
        return None
    try:
        return spark.sparkContext.pythonExec
    except PySparkException:  # Spark Connect
        return None


def _question(needed: tuple[str, ...]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that tells what is missing where it runs; it is pickled whole, not by skypane's name for it."""

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
        f"(here {sys.executable}), or take sp.session(), which does"
    )
