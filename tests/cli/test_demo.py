"""`skypane demo` as a user types it."""

import os

import pytest

import skypane.demo
import skypane.reporting.live
import skypane.reporting.report  # noqa: F401 - another user could not
from skypane.cli.main import main


@pytest.mark.usefixtures("spark")
def test_a_short_one_leaves_everything_in_one_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--rows", "1500", "--speedup", "525600"]) == 0
    told = capsys.readouterr().out
    folder = tmp_path / "skypane-demo"
    assert "1,500 flights, 525,600 times faster" in told
    assert f"{folder / 'report.html'}" in told
    assert "rows put aside: null" in told
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert list((folder / "windows").glob("*.parquet"))


@pytest.mark.usefixtures("spark")
def test_other_settings_in_the_same_folder_are_refused(tmp_path, capsys):
    out = ["--out", str(tmp_path), "--speedup", "525600"]
    assert main(["demo", "--rows", "10", *out]) == 0
    assert main(["demo", "--rows", "20", *out]) == 1
    assert "holds a run with rows=10, this one has rows=20" in capsys.readouterr().err


@pytest.fixture
def ordinary_user():
    """Root may write anywhere, so it is another user for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65_534)
    yield
    if root:
        os.seteuid(0)


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path, request, capsys):
    tmp_path.chmod(0o555)
    request.getfixturevalue("ordinary_user")
    assert main(["demo", "--rows", "10", "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err.strip()
    assert told == f"skypane: cannot write to {tmp_path / 'out'}: Permission denied; name another folder"
