"""What is kept of slow tests that fail."""

from __future__ import annotations

import os
from pathlib import Path

from tests.checkout import ROOT
from tests.failed import keep
from tests.small_run import pytest_of


def test_a_folder_is_kept_with_its_logs_first(tmp_path: Path):
    folder, among = tmp_path / "test", tmp_path / "failed"
    (folder / "stream").mkdir(parents=True)
    (folder / "a.parquet").write_bytes(b"x" * 90)
    (folder / "stream" / "driver-1.log").write_bytes(b"y" * 20)
    os.mkfifo(folder / "pipe.log")
    (folder / "away").symlink_to(ROOT)
    kept = keep(folder, among, "test", size=100)
    assert kept == among / "test"
    assert [path.name for path in kept.rglob("*") if path.is_file()] == ["driver-1.log"]
    assert (kept / "stream" / "driver-1.log").read_bytes() == b"y" * 20


def test_the_oldest_folders_go(tmp_path: Path):
    folder, among = tmp_path / "test", tmp_path / "failed"
    folder.mkdir()
    for number in range(5):
        (folder / "a.log").write_text(f"{number}")
        kept = keep(folder, among, "test", most=2)
        os.utime(kept, ns=(number, number))
    assert sorted((path / "a.log").read_text() for path in among.iterdir()) == ["3", "4"]


FAILING = """
import pytest

@pytest.mark.slow
def test_slow(tmp_path):
    (tmp_path / "driver.log").write_text("the reason")
    assert not tmp_path

def test_quick(tmp_path):
    assert not tmp_path
"""


def test_a_failing_slow_test_names_the_copy_of_its_folder(tmp_path: Path):
    (tmp_path / "test_failing.py").write_text(FAILING)
    (tmp_path / "conftest.py").write_text(
        "from tests.failed import Failed\n\ndef pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'slow: as here')\n    config.pluginmanager.register(Failed())\n"
    )
    done = pytest_of(tmp_path, "--basetemp", str(tmp_path / "tmp"))
    (kept,) = (tmp_path / ".pytest_cache" / "failed").iterdir()
    assert kept.name == "test_failing-py-test_slow"
    assert (kept / "driver.log").read_text() == "the reason"
    assert f"is kept in {kept}" in done.stdout
    assert "2 failed" in done.stdout
