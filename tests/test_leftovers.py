"""What tests leave behind fails their run: a process, a port, a file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.checkout import PYTHONPATH

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
import socket, subprocess, sys, tempfile
held = []
# A shell would go on while its child is a copy of itself yet; Popen returns once the child is `sleep`.
ORPHAN = '''
import os, pathlib, subprocess
pathlib.Path(os.environ["PLACE"]).write_text(str(subprocess.Popen(["sleep", "100"]).pid))
'''
def test_it():
    held.append(socket.create_server(("127.0.0.1", 0)))
    tempfile.mkstemp(prefix="forgotten")
    open("derby.log", "w").close()
    subprocess.run([sys.executable, "-c", ORPHAN])
"""


def run(folder: Path, program: str, processes: str) -> subprocess.CompletedProcess[str]:
    """Run pytest over one file of tests, in a checkout of its own."""
    checkout = folder / "checkout"
    checkout.mkdir()
    (checkout / "conftest.py").write_text(CONFTEST)
    (checkout / "test_it.py").write_text(program)
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    path = {"PYTHONPATH": PYTHONPATH, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={checkout}", "-n", processes],
        cwd=checkout,
        env=environment | path | {"PLACE": str(folder / "number")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
@pytest.mark.parametrize("program", [TIDY, SPAWNING])
@pytest.mark.parametrize("processes", ["0", "1"])
def test_tests_that_clear_up_pass(processes: str, program: str, tmp_path: Path):
    done = run(tmp_path, program, processes)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left behind" not in done.stdout


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
    assert re.search(r"/skypane-tests-\w+/forgotten\w+", left)
    assert str(tmp_path / "checkout" / "derby.log") in left
