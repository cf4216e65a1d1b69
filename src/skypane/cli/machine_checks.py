"""Checks of what a machine needs to run skypane; a finding says what was found and how to fix what is wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pyarrow as pa
from packaging.requirements import Requirement

from skypane.cli.output import say
from skypane.control.costs import DEFAULT_COSTS
from skypane.locations import Location
from skypane.runtime import machine_costs
from skypane.runtime.interrupts import interrupted_afterwards
from skypane.runtime.resources import GIB, available_memory_bytes, cores, memory_bytes
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.machine import interpreter
from skypane.runtime.spark.machine.executor_wait import ended_within
from skypane.runtime.spark.machine.executors import FOLLOWING_OPTIONS, following
from skypane.runtime.spark.machine.interpreter import Interpreter
from skypane.runtime.spark.machine.java import JavaError, find_java
from skypane.runtime.spark.machine.session import session
from skypane.runtime.stores.store import ConflictError
from skypane.types import CheckpointError

MINIMUM_PYTHON = (3, 11)
COMPARED = ("pyspark", "pyarrow", "pandas", "numpy", "numba")
"""Packages whose versions decide whether rows can be passed between Spark and the kernels."""
_HERE: Mapping[str, str] = {"extra": ""}
"""Environment for markers: this interpreter, without any extra."""
MINIMUM_MEMORY = 2 * GIB
MINIMUM_DISK = 1 * GIB

_COUNT_COMPILED = "from skypane.kernels import warm; print(len(warm()))"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    name: str
    detail: str
    mend: str | None = None
    """What to do, in one sentence; None if the check passed."""

    @property
    def ok(self) -> bool:
        return self.mend is None


def python() -> Finding:
    """Check the interpreter's version."""
    detail = f"{sys.version.split()[0]} ({sys.executable})"
    if sys.version_info < MINIMUM_PYTHON:
        return Finding("Python", detail, f"use Python {'.'.join(map(str, MINIMUM_PYTHON))} or newer")
    return Finding("Python", detail)


def java() -> Finding:
    """Check that a Java runtime that can run Spark is installed."""
    try:
        runtime = find_java()
    except JavaError as error:
        return Finding("Java", "no Java found that can run Spark", str(error))
    return Finding("Java", f"{runtime.version} from {runtime.origin} ({runtime.home})")


def worker_interpreter() -> Finding:
    """Check that Spark's workers run this interpreter, because they unpickle what this Python has pickled."""
    name, program = "workers' interpreter", interpreter.chosen()
    by_user = "PYSPARK_PYTHON" in os.environ
    try:
        workers = interpreter.ask(program)
        fault = workers.fault
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        workers, fault = None, f"does not run: {error}"
    if not by_user:
        cluster = (
            "" if fault is None else f"; a cluster would use {program}, which {fault} here; set PYSPARK_PYTHON there"
        )
        return Finding(name, f"this interpreter, for Spark on this machine{cluster}")
    if fault is not None:
        mend = f"unset PYSPARK_PYTHON, or set it to {sys.executable}"
        return Finding(name, f"PYSPARK_PYTHON={program} {fault}", mend)
    return Finding(name, f"{workers}, from PYSPARK_PYTHON={program}")


def versions() -> Iterator[Finding]:
    """Check the versions of the COMPARED packages against the bounds in skypane's metadata."""
    try:
        needs = list(map(Requirement, requires("skypane") or ()))
    except PackageNotFoundError:
        yield Finding("skypane", "is imported, but not installed", "run: pip install skypane")
        return
    for package in COMPARED:
        yield _version(package, bounds(package, needs))


def bounds(package: str, needs: Iterable[Requirement], here: Mapping[str, str] = _HERE) -> Requirement:
    """Return the combined bounds of all `needs` for a package whose environment markers hold in `here`."""
    found = Requirement(package)
    for need in needs:
        if need.name == package and (need.marker is None or need.marker.evaluate(dict(here))):
            found.specifier &= need.specifier
    return found


def _version(package: str, need: Requirement) -> Finding:
    mend = f"run: pip install '{need}'"
    try:
        there = version(package)
    except PackageNotFoundError:
        return Finding(package, "not installed", mend)
    if not need.specifier.contains(there, prereleases=True):
        return Finding(package, f"{there}, but {need.specifier} is required", mend)
    return Finding(package, there)


def memory() -> Finding:
    """Check that there is enough memory for a driver and its workers."""
    total, available = memory_bytes(), available_memory_bytes()
    detail = f"{total / GIB:.1f} GiB, {cores()} cores"
    if available is not None:
        detail += f", {min(available, total) / GIB:.1f} GiB available"
    if total < MINIMUM_MEMORY:
        return Finding("memory", detail, f"give the machine or container at least {MINIMUM_MEMORY // GIB} GiB")
    return Finding("memory", detail)


def disk(checkpoint: str | None) -> Iterator[Finding]:
    """Check the free space on the disks of temporary files and of a local checkpoint."""
    folders = {"temporary files": tempfile.gettempdir()}
    if checkpoint is not None and (place := Location.of(checkpoint, "checkpoint")).is_local:
        folders["checkpoint"] = str(place)
    for purpose, folder in folders.items():
        free = shutil.disk_usage(_existing(Path(folder))).free
        mend = None if free >= MINIMUM_DISK else f"free at least {MINIMUM_DISK // GIB} GiB on the disk of {folder}"
        yield Finding(f"disk for {purpose}", f"{free / GIB:.1f} GiB free in {folder}", mend)


def _existing(path: Path) -> Path:
    """Return the path itself or its nearest parent that exists."""
    absolute = path.absolute()
    return next(folder for folder in (absolute, *absolute.parents) if folder.exists())


def checkpoint_directory(checkpoint: str | None) -> Finding:
    """Check that the ledger can commit in this folder: write a file, replace it atomically, and read it."""
    place = checkpoint or tempfile.gettempdir()
    name = "checkpoint" if checkpoint else "checkpoint (a temporary folder; use --checkpoint to check your own)"
    document = f"doctor-{uuid.uuid4().hex}.json"
    try:
        store = DocumentStore.at(place, "checkpoint")
        store.make()
        for value in (1, 2):
            store.write_json(document, value)
        read = store.read_json(document)
        is_guarded = store.objects is None or _refuses_stale_writes(store, f"{document}-2")
        store.remove([document, f"{document}-2"])
    except (OSError, ValueError, pa.ArrowException, CheckpointError) as error:
        return Finding(name, f"{place}: {error}", "choose a folder that this user can create and write")
    if read != 2:  # the second value written above
        return Finding(
            name, f"{place}: read {read} after writing 2", "choose a file system that replaces files atomically"
        )
    if not is_guarded:
        return Finding(
            name,
            f"{place}: the store replaces a file that another writer has changed, so two drivers could commit there",
            "choose an object store that supports conditional writes (If-None-Match, If-Match)",
        )
    if store.objects is not None:
        return Finding(name, f"{place} supports conditional writes")
    written = "; Spark writes its files there without starting other programs" if store.is_local else ""
    return Finding(name, f"{place} supports atomic replacement{written}")


def _refuses_stale_writes(store: DocumentStore, document: str) -> bool:
    """Return whether an object store creates only what is not there, and replaces only what is still there."""
    first = store.write_version(document, 1, None)
    store.write_version(document, 2, first)
    for known in (None, first):
        try:
            store.write_version(document, 3, known)
        except ConflictError:
            continue
        return False
    return True


def kernels() -> Finding:
    """Compile the kernels into their cache, and check that another process finds them there, as workers do."""
    # Importing kernels takes a second and may fail, which is part of the check.
    from skypane.kernels import warm  # noqa: PLC0415

    with interrupted_afterwards():
        warm(lambda line: say(line, file=sys.stderr))
    command = [sys.executable, "-c", _COUNT_COMPILED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    again = int(done.stdout)
    if again:
        return Finding(
            "kernels",
            f"{again} kernels would be compiled again in each process",
            "set NUMBA_CACHE_DIR to a folder that this user can write",
        )
    return Finding("kernels", "compiled and cached on disk")


def bytecode() -> Finding:
    """Report whether processes have to compile the modules that they load. This check never fails."""
    from skypane.runtime.spark.machine import bytecode  # noqa: PLC0415  # as kernels

    if lacking := len(bytecode.lacking()):
        return Finding(
            "bytecode",
            f"missing for {lacking} modules, so each worker compiles them; run `skypane warm` once to store it",
        )
    return Finding("bytecode", "stored")


def costs() -> Finding:
    """Report which costs the control policies use here. The defaults work too, so this check never fails."""
    from skypane.runtime.spark.calibration import machine_of_master  # noqa: PLC0415  # imports the engine

    machine = machine_of_master("local[*]")
    known = machine_costs.read(machine)
    if known == DEFAULT_COSTS:
        return Finding("costs", f"the defaults ({known.measured}); streams correct them by what their batches show")
    return Finding("costs", f"{known.measured} ({machine.file})")


JOB_TIMEOUT = 90.0
"""Seconds that a job of a few rows may take; this includes the start of an executor on a cluster."""


def spark(master: str = "local[2]", timeout: float = JOB_TIMEOUT) -> Finding:
    """Run a job that passes rows of each type through a Python worker and back, for at most `timeout` seconds."""
    name = "Spark job"
    # The session is not stopped: it may have been running before, and otherwise ends with this process.
    running = session(master, "skypane-doctor")
    sent = _sample()
    job = running.createDataFrame(sent).mapInArrow(_signed, _ANSWER).toArrow
    try:
        returned = ended_within(running, timeout, job)
    except TimeoutError as error:
        mend = "request executors that fit (spark.executor.cores, spark.executor.memory), or raise --timeout"
        return Finding(name, f"{master}: {error}", mend)
    (worker,) = returned["worker"].unique().to_pylist()
    if not returned.select(sent.column_names).cast(sent.schema).sort_by("id").equals(sent):
        return Finding(name, "rows were changed on the way", "report this as a bug, with the versions above")
    if worker != str(Interpreter.this()):
        return Finding(name, f"workers run {worker}", f"set PYSPARK_PYTHON to {sys.executable}")
    return Finding(name, f"Spark {running.version}: sent {sent.num_rows} rows to a worker and back ({worker})")


def executors(master: str = "local[2]") -> Finding:
    """Check that Spark adds and removes executors as the number of workers (elastic=) changes."""
    conf = session(master, "skypane-doctor").sparkContext.getConf()
    follows, line = following(lambda name: conf.get(name, None))
    mend = f'use elastic= with executors="follow", or start Spark with {FOLLOWING_OPTIONS}'
    return Finding("executors", line, None if follows else mend)


_ANSWER = "id long, price double, city string, at timestamp, worker string"


def _sample() -> pa.Table:
    columns = {
        "id": [1, 2, 3],
        "price": [0.5, float("inf"), None],
        "city": ["Zürich", "", None],
        "at": [datetime(2013, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), None],
    }
    return pa.table({**columns, "at": pa.array(columns["at"], pa.timestamp("us", tz="UTC"))})


def _signed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.append_column("worker", pa.array([str(Interpreter.this())] * batch.num_rows))
