from __future__ import annotations

import re

import pytest

from skypane.cli.main import main


def test_warming_twice_compiles_nothing_the_second_time(capsys: pytest.CaptureFixture[str]):
    assert main(["warm"]) == 0
    capsys.readouterr()
    assert main(["warm"]) == 0
    assert re.fullmatch(
        r"compiled 0 kernels and 0 modules in \d+\.\d s; the others were cached\n", capsys.readouterr().out
    )
