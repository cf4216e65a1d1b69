"""`skypane demo` where it cannot start; tests/test_demo.py types one that runs."""

import os

import pytest

import skypane.cli.command_console
import skypane.demo
import skypane.reporting.live
import skypane.reporting.report  # noqa: F401 - another user could not
from skypane.cli.main import main


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
    message = capsys.readouterr().err.strip()
    assert message == f"skypane: cannot write to {tmp_path / 'out'}: Permission denied; choose another folder"
