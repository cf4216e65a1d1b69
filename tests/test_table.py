"""The table of what ran, and the limits of what it may take; a small project shows what is counted, and to whom."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.small_run import pytest_of
from tests.spent import APART
from tests.table import Limits, Row, grouped, lines

ROWS = {
    "tests/kernels/test_a.py::test_1": Row(0.25, {"pure": 0.5}, 1),
    "tests/kernels/test_a.py::test_2": Row(0.25, {"process": 2.0}, 1, "skipped"),
    "tests/kernels/test_b.py::test_1": Row(3.0, {"pure": 1.0}, 1, "failed"),
    "tests/test_c.py::test_1": Row(1.0, {"Java": 0.75}, 1),
    APART: Row(0.0, {"Java": 30.0}),
}


def test_rows_add_up_and_the_worst_outcome_counts():
    quick, slow = Row(tests=1), Row(tests=1)
    quick.add(0.25, "passed")
    for outcome in ("passed", "failed", "skipped"):
        slow.add(1.0, outcome)
    assert list(lines({"quick.py": quick, "slow.py": slow}))[1:] == [
        "      0.0      0.0      0.0      0.0      3.0      1  failed    slow.py",
        "      0.0      0.0      0.0      0.0      0.2      1  passed    quick.py",
        "      0.0      0.0      0.0      0.0      3.2      2  2 in all, 1 failed",
    ]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("file", ["tests/kernels/test_a.py", "tests/kernels/test_b.py", "tests/test_c.py", APART]),
        ("folder", ["tests/kernels", "tests", APART]),
    ],
)
def test_what_the_session_spends_is_in_the_table_and_of_no_folder(by: str, expected: list[str]):
    rows = grouped(ROWS, by)
    assert list(rows) == expected
    assert sum(row.all_cpu for row in rows.values()) == 34.25
    if by == "folder":
        assert rows["tests/kernels"] == Row(3.5, {"pure": 1.5, "process": 2.0}, 3, "failed")


def test_a_test_or_a_folder_that_takes_more_than_it_may_is_named():
    assert list(Limits(test=2.0, folder=3.5).passed(ROWS)) == []
    assert list(Limits(test=1.5, folder=3.0).passed(ROWS)) == [
        "tests/kernels/test_a.py::test_2 took 2.0 s of CPU, and a test may take 1.5",
        "tests/kernels took 3.5 s of CPU, and a folder may take 3",
    ]


CONFTEST = """
import time
import pytest
from tests.spent import Spent
from tests.table import Limits, Table

def spend(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass

@pytest.fixture(scope="session")
def dear():
    spend(0.4)

def pytest_configure(config):
    config.pluginmanager.register(Spent())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table("test", Limits(test=0.3, folder=50)))
"""
TESTS = """
import subprocess, sys
from conftest import spend

SPEND = "import time\\nwhile time.process_time() < 0.4: pass\\nprint()\\nsys.stdin.read()"

def test_of_the_session(dear): ...
def test_of_itself(): spend(0.4)
def test_of_a_child_that_ends(): subprocess.run([sys.executable, "-c", "import sys\\n" + SPEND], input="", text=True)

lives = subprocess.Popen([sys.executable, "-c", "import sys\\nsys.stdin.readline()\\n" + SPEND], stdin=-1, stdout=-1)

def test_of_a_child_that_lives():
    lives.stdin.write(b"\\n")
    lives.stdin.flush()
    lives.stdout.readline()

def test_of_nothing():
    lives.communicate()
"""


@pytest.fixture(params=["0", "1"])
def output(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What a run of the small project says, in pytest's own process and in another one."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    done = pytest_of(tmp_path, processes=request.param)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "5 passed" in done.stdout
    return done.stdout


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="what processes take that live is found in /proc")
def test_a_test_pays_for_itself_and_its_processes_and_not_for_the_session(output: str):
    _, _, told = output.partition("what took too long")
    dear = {"test_of_itself", "test_of_a_child_that_ends", "test_of_a_child_that_lives"}
    assert {name for name in dear | {"test_of_the_session", "test_of_nothing"} if f"{name} took" in told} == dear
    kinds = {line.split()[-1].rpartition("::")[2]: line.split() for line in output.splitlines() if "::" in line}
    assert float(kinds["test_of_itself"][1]) >= 0.4
    assert float(kinds["test_of_a_child_that_lives"][2]) >= 0.3
