"""What a run of tests must not leave behind: processes, open ports, files. A run that does fails, and says what is left.

Every process that a run starts inherits a name of the run in its environment, and a folder for temporary files. At the end
of the run nothing of that name may live, the folder must be empty except for what a driver leaves that is killed, nothing
new may lie in the checkout, and none of the run's own processes may listen on a port. In CI, where nobody else puts files there,
nothing new may lie beside the folder either. Where there is no /proc, only files are looked for. The folder goes with the run; that of
a run which was killed goes with the next one.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import pytest

_RUN: Final = "SKYPANE_TEST_RUN"
"""The variable that names the run, and is its folder for temporary files."""

_CACHES: Final = {".coverage", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "artifacts"}
"""What tools keep in a checkout; the last is an empty folder that Spark 4.0 makes wherever it is started."""

_OF_KILLED: Final = tuple(
    "artifacts- blockmgr- faulthandler- libnetty liblz4-java- libzstd-jni- skypane-warehouse snappy- spark- tmp".split()
)
"""How names begin of what Spark, its libraries and Python remove when they end in peace; the drivers that tests kill do not."""

_OF_TESTS: Final = ("artifacts-", "blockmgr-", "faulthandler-", "skypane-", "spark-")
"""How names begin of what lies beside the folder if a process did not know of it."""

_PREFIX: Final = "skypane-run-"
"""How the name of a run's folder begins, which the run holds a lock of while it lives."""

CACHE: Final = "cache"
"""The folder in the run's own that is skypane's cache, which stays between runs by design."""

_MOMENT: Final = 60.0

_TRACKER: Final = "multiprocessing.resource_tracker"
"""The helper that Python starts in a process which spawns others, and ends when that process ends, not before."""

_LISTENS: Final = "0A"
_PROC: Final = Path("/proc")


def temporary(environment: MutableMapping[str, str] = os.environ) -> Path:
    """Return the folder for temporary files of this run, which is made where this is the run's first process.

    pytest's own folders stay where they are, to be looked at after a failure.
    """
    if "PYTEST_XDIST_WORKER" not in environment:
        beside = Path(tempfile.gettempdir())
        for other in filter(_is_over, beside.glob(f"{_PREFIX}*")):
            shutil.rmtree(other, ignore_errors=True)
        environment.setdefault("PYTEST_DEBUG_TEMPROOT", str(beside))
        environment[_RUN] = environment["TMPDIR"] = tempfile.mkdtemp(prefix=_PREFIX)
        folder = Path(environment[_RUN])
        folder.chmod(0o755)  # root's tests look into it as somebody else
        fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)  # until this process ends
        atexit.register(_removed_by, os.getpid(), folder)  # of a run that never begins
        tempfile.tempdir = None  # Python reads TMPDIR once
    return Path(environment[_RUN])


def _removed_by(process: int, folder: Path) -> None:
    """Remove a folder in the process that has made it: a fork of it knows of the folder, too."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _is_over(run: Path) -> bool:
    """Return whether the run of a folder has ended; one that begins has a moment for its lock."""
    with suppress(OSError):
        if time.time() - run.stat().st_mtime < _MOMENT:
            return False
        handle = os.open(run, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return True
    return False


@dataclass(frozen=True, eq=False)  # pytest keeps plugins in sets
class Leftovers:
    """The plugin: `folder` is the run's, `before` what lay in the checkout and beside the folder.

    Processes may take `patience` seconds to end.
    """

    folder: Path
    before: frozenset[Path]
    patience: float
    found: list[str]

    @classmethod
    def of(cls, config: pytest.Config, folder: Path, patience: float = 10.0) -> Self:
        return cls(folder, frozenset(_places(config.rootpath, folder)), patience, [])

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """Look when all fixtures are gone, and before pytest sums up."""
        result = yield
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["ports"] = _ports()
            return result
        self.found.extend(f"port {port} is open in the process of the tests" for port in _ports())
        self.found.extend(f"process {process}" for process in _ended(self.folder, self.patience))
        left = (name for name in sorted(_names(self.folder)) if name != CACHE and not name.startswith(_OF_KILLED))
        self.found.extend(f"{self.folder / name}" for name in left)
        self.found.extend(map(str, sorted(_places(session.config.rootpath, self.folder) - self.before)))
        if self.found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        shutil.rmtree(self.folder, ignore_errors=True)
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Take what a process of the run has found in itself."""
        output = getattr(node, "workeroutput", {})
        self.found.extend(f"port {port} is open in a process of the tests" for port in output.get("ports", ()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.found:
            terminalreporter.section("tests have left behind", red=True)
            terminalreporter.write_line("\n".join(self.found))


def _places(checkout: Path, folder: Path) -> set[Path]:
    """Return what lies in the checkout, caches aside, and beside the folder of a run that is alone on its machine."""
    beside = {name for name in _names(folder.parent) if name.startswith(_OF_TESTS) and not name.startswith(_PREFIX)}
    return {checkout / name for name in _names(checkout) - _CACHES} | {
        folder.parent / name for name in (beside if "CI" in os.environ else ())
    }


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _ended(folder: Path, patience: float) -> list[str]:
    """Return which processes of the run live, when those that are ending have had their time."""
    until = time.monotonic() + patience
    while (living := list(_living(folder))) and time.monotonic() < until:
        time.sleep(0.05)
    return living


def _living(folder: Path) -> Iterator[str]:
    """Yield number and command of each process that this run has started, directly or not."""
    mark = f"{_RUN}={folder}".encode()
    for process in _PROC.glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if mark in (process / "environ").read_bytes().split(b"\0") and int(process.name) != os.getpid():
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if not (_TRACKER in command and _parent(process) == os.getpid()):
                    yield f"{process.name}: {command:.500}"


def _parent(process: Path) -> int:
    """Return who started a process; its name, which comes before, may hold blanks and parentheses."""
    return int((process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])


def _ports() -> list[int]:
    """Return the ports on which this process listens."""
    mine = set()
    for handle in (_PROC / "self" / "fd").glob("*"):
        with suppress(OSError):
            mine.add(str(handle.readlink()))
    return sorted(port for port, inode in _listening() if f"socket:[{inode}]" in mine)


def _listening() -> Iterator[tuple[int, str]]:
    """Yield port and inode of every listening socket of the machine."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text(encoding="ascii").splitlines()[1:]:
                columns = line.split()
                if columns[3] == _LISTENS:
                    yield int(columns[1].rpartition(":")[2], 16), columns[9]
