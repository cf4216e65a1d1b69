"""Which processes belong to a driver, and which workers its dead parents of workers have left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.nature.processes import DAEMON, PROC, family, is_there, orphans, strike

pytestmark = pytest.mark.skipif(not PROC.exists(), reason="processes are read from /proc")

PARENT = """
import os, signal
worker = os.fork()
if worker:
    print(os.getpid(), worker, flush=True)
signal.pause()
"""
DRIVER = f"""
import subprocess, sys
parents = [subprocess.Popen([sys.executable, "-c", {PARENT!r}, "-m", {DAEMON!r}], stdout=subprocess.PIPE, text=True) for _ in range(2)]
for parent in parents:
    print(parent.stdout.readline(), end="", flush=True)
for parent in parents:
    parent.wait()
    print("gone", flush=True)
"""


def test_a_worker_whose_parent_was_killed_is_an_orphan():
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert driver.stdout is not None
    try:
        (first, left), (second, cared_for) = (map(int, driver.stdout.readline().split()) for _ in range(2))
        assert family(driver.pid).daemons == tuple(sorted((first, second)))
        assert family(driver.pid).workers == tuple(sorted((left, cared_for)))
        assert orphans(driver.pid) == ()
        strike(first)
        assert driver.stdout.readline() == "gone\n"
        assert family(driver.pid).workers == (cared_for,)
        assert orphans(driver.pid) == (left,)
        strike(left)
        while is_there(left):
            pass
        assert orphans(driver.pid) == ()
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()
