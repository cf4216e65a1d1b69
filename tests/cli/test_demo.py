"""`skypane demo` as a user types it."""

import os
import subprocess
import sys

import pytest

from skypane.cli.main import main


@pytest.mark.usefixtures("spark")
def test_a_short_one_leaves_everything_in_one_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--rows", "1500"]) == 0
    told = capsys.readouterr().out
    folder = tmp_path / "skypane-demo"
    assert "1,500 flights, 525,600 times faster" in told
    assert f"{folder / 'report.html'}" in told
    assert "rows quarantined: null" in told
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert list((folder / "windows").glob("*.parquet"))


@pytest.mark.usefixtures("spark")
def test_other_settings_in_the_same_folder_are_refused(tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    assert main(["demo", "--rows", "10", *out]) == 0
    assert main(["demo", "--rows", "20", *out]) == 1
    assert "holds a run with rows=10, this one has rows=20" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    tmp_path.chmod(0o555)
    for folder in tmp_path.parents:  # pytest's own are closed to other users, which root becomes here
        if folder.stat().st_uid == os.geteuid() and folder.name.startswith("pytest-"):
            folder.chmod(0o755)
    user = 65_534 if os.geteuid() == 0 else None
    command = [sys.executable, "-m", "skypane", "demo", "--rows", "10", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, user=user, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == f"skypane: cannot write to {tmp_path / 'out'}: Permission denied; name another folder"
