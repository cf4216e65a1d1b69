"""One decision and one answer on every CPU: child processes that take this one for another must come to the same bits.

`settings.py` has their variables; `make cpus` runs many more tests under each of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.checkout import ROOT
from tests.cpus.__main__ import SETTINGS, TABLE
from tests.cpus.settings import AVX2, AVX512, ENVIRONMENTS, PLAIN_LIBC, blas, on_this_cpu, without

QUICK = {
    "an old CPU": {**blas("Prescott"), **without([*AVX2, *AVX512]), **PLAIN_LIBC},
    "one without AVX-512": {**blas("Haswell"), **without(AVX512)},
}


def digests(changed: dict[str, str]) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.cpus.digests"],
        cwd=ROOT,
        env={**os.environ, **changed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    return digests({})


@pytest.mark.parametrize("name", QUICK)
def test_another_cpu_decides_and_answers_the_same(name: str, here: dict[str, str]):
    assert digests(QUICK[name]) == here


@pytest.mark.slow
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_each_part_of_another_cpu_decides_and_answers_the_same(name: str, here: dict[str, str], tmp_path: Path):
    if not on_this_cpu(ENVIRONMENTS[name]):
        pytest.skip("not on this CPU")
    own = {"NUMBA_CACHE_DIR": str(tmp_path)} if "NUMBA_CPU_NAME" in ENVIRONMENTS[name] else {}
    assert digests({**ENVIRONMENTS[name], **own}) == here


def test_the_page_has_a_row_for_each_setting_and_its_words():
    rows = TABLE.rows()
    assert list(rows) == list(SETTINGS)
    tried = {name: row for name, row in rows.items() if row[3] != "not tried"}
    assert all(f"`{variable}=" in tried[name][1] for name in tried for variable in SETTINGS[name])
