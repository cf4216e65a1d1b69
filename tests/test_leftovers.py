"""What tests leave behind fails their run: a process, a port, a file."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.checkout import PYTHONPATH
from tests.small_run import pytest_of

CONFTEST = """
from tests.leftovers import Leftovers, temporary
FOLDER = temporary()
def pytest_configure(config):
    config.pluginmanager.register(Leftovers.of(config, FOLDER, patience=0.1))
"""
TIDY = """
import subprocess, tempfile
from pathlib import Path
def test_it(tmp_path):
    (tmp_path / "kept").touch()
    Path(tempfile.gettempdir(), "cache").mkdir()
    with tempfile.TemporaryFile():
        subprocess.run(["true"], check=True)
"""
SPAWNING = """
import multiprocessing
def test_it():
    multiprocessing.get_context("spawn").Lock()
"""
CARELESS = """
import os, socket, subprocess, sys, tempfile
held = []
# A shell would go on while its child is a copy of itself yet; Popen returns once the child is `sleep`.
ORPHAN = '''
import os, pathlib, subprocess
pathlib.Path(os.environ["PLACE"]).write_text(str(subprocess.Popen(["sleep", "100"]).pid))
'''
def test_it():
    held.append(socket.create_server(("127.0.0.1", 0)))
    tempfile.mkstemp(prefix="forgotten")
    tempfile.mkdtemp(prefix="faulthandler-", dir=os.path.dirname(tempfile.gettempdir()))
    open("derby.log", "w").close()
    subprocess.run([sys.executable, "-c", ORPHAN])
"""


def beside(folder: Path) -> Path:
    """Return where a run has its folder, among those of others."""
    (folder / "tmp").mkdir(exist_ok=True)
    return folder / "tmp"


def run(folder: Path, program: str, processes: str) -> subprocess.CompletedProcess[str]:
    """Run pytest over one file of tests, in a checkout of its own."""
    checkout = folder / "checkout"
    checkout.mkdir()
    (checkout / "conftest.py").write_text(CONFTEST)
    (checkout / "test_it.py").write_text(program)
    environment = {"TMPDIR": str(beside(folder)), "CI": "true", "PLACE": str(folder / "number")}
    return pytest_of(checkout, processes=processes, environment=environment)


@pytest.mark.long
@pytest.mark.parametrize("program", [TIDY, SPAWNING])
@pytest.mark.parametrize("processes", ["0", "1"])
def test_tests_that_clear_up_pass(processes: str, program: str, tmp_path: Path):
    done = run(tmp_path, program, processes)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left behind" not in done.stdout
    assert list(beside(tmp_path).glob("skypane-*")) == []


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes and ports are found in /proc")
@pytest.mark.parametrize("processes", ["0", "1"])
def test_what_is_left_is_named(processes: str, tmp_path: Path):
    done = run(tmp_path, CARELESS, processes)
    orphan = int((tmp_path / "number").read_text())
    os.kill(orphan, signal.SIGKILL)
    assert done.returncode == 1, done.stdout + done.stderr
    _, _, left = done.stdout.partition("tests have left behind")
    assert re.search(r"port \d+ is open", left)
    assert f"process {orphan}: sleep 100" in left
    assert re.search(r"/skypane-run-\w+/forgotten\w+", left)
    assert str(tmp_path / "checkout" / "derby.log") in left
    assert re.search(rf"{beside(tmp_path)}/faulthandler-\w+", left)
    assert list(beside(tmp_path).glob("skypane-*")) == []


KILLED = """
import os, signal
def test_it():
    os.kill(os.getpid(), signal.SIGKILL)
"""
LIVES = """
import sys
from tests.leftovers import temporary
print(temporary(), flush=True)
sys.stdin.read()
"""


@pytest.mark.long
def test_what_a_killed_run_has_left_goes_with_the_next_one_and_a_living_run_keeps_its_own(tmp_path: Path):
    assert run(tmp_path, KILLED, "0").returncode == -signal.SIGKILL
    (of_killed,) = beside(tmp_path).glob("skypane-run-*")
    environment = os.environ | {"PYTHONPATH": PYTHONPATH, "TMPDIR": str(beside(tmp_path))}
    environment.pop("PYTEST_XDIST_WORKER", None)
    with subprocess.Popen(
        [sys.executable, "-c", LIVES], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        of_other = Path(other.stdout.readline().strip())
        for folder in (of_killed, of_other):
            os.utime(folder, (0, 0))
        shutil.rmtree(tmp_path / "checkout")
        assert run(tmp_path, "def test_it(): ...", "0").returncode == 0
        assert [of_killed.exists(), of_other.exists()] == [False, True]
        other.communicate()
    assert not of_other.exists()
