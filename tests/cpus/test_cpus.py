"""One decision and one answer on every CPU: child processes that take this one for another must come to the same bits.

`settings.py` has their variables; `make cpus` runs many more tests under each of it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.checkout import ROOT
from tests.cpus.__main__ import SETTINGS, TABLE
from tests.cpus.settings import AVX2, AVX512, ENVIRONMENTS, PLAIN_LIBC, blas, on_this_cpu, without
from tests.runtime.scenarios import lines_of

OLD = {**blas("Prescott"), **without([*AVX2, *AVX512]), **PLAIN_LIBC}
EACH = {"one without AVX-512": {**blas("Haswell"), **without(AVX512)}, **ENVIRONMENTS}


def digests(changed: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = json.loads(*lines_of("-m", "tests.cpus.digests", cwd=ROOT, env={**os.environ, **changed}))
    return found


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    return digests({})


@pytest.mark.slow
def test_another_cpu_decides_and_answers_the_same(here: dict[str, str]):
    assert digests(OLD) == here


@pytest.mark.night
@pytest.mark.parametrize("name", EACH)
def test_each_part_of_another_cpu_decides_and_answers_the_same(name: str, here: dict[str, str], tmp_path: Path):
    if not on_this_cpu(EACH[name]):
        pytest.skip("not on this CPU")
    own = {"NUMBA_CACHE_DIR": str(tmp_path)} if "NUMBA_CPU_NAME" in EACH[name] else {}
    assert digests({**EACH[name], **own}) == here


@pytest.mark.pages
def test_the_page_has_a_row_for_each_setting_and_its_words():
    rows = TABLE.rows()
    assert list(rows) == list(SETTINGS)
    tried = {name: row for name, row in rows.items() if row[3] != "not tried"}
    assert all(f"`{variable}=" in tried[name][1] for name in tried for variable in SETTINGS[name])
