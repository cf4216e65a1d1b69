"""One decision and one answer on every CPU: child processes that take this one for another must come to the same bits.

What they are told: BLAS kernels of other CPUs, NumPy's loops without AVX-512 and without AVX2, a C library without AVX2 and
FMA, and kernels compiled for a CPU without any of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[2]
_PRESENT = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
"""What NumPy has loops for and this CPU can run; it warns of other names."""
AVX512 = [name for name in _PRESENT if name.startswith("AVX512") or name == "X86_V4"]
AVX2 = [name for name in _PRESENT if name in {"AVX2", "FMA3", "X86_V3"}]
PLAIN_LIBC = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX2_Usable,-FMA_Usable,-FMA4_Usable"}


def without(names: list[str]) -> dict[str, str]:
    return {"NPY_DISABLE_CPU_FEATURES": ",".join(names)} if names else {}


def blas(core: str) -> dict[str, str]:
    """OpenBLAS runs what it is told to: a core's kernels only where the CPU has its instructions."""
    runs = {"SkylakeX": AVX512, "Haswell": AVX2, "Zen": AVX2}.get(core, True)
    return {"OPENBLAS_CORETYPE": core} if runs else {}


ENVIRONMENTS = {
    "BLAS of Haswell": blas("Haswell"),
    "BLAS of Zen": blas("Zen"),
    "BLAS of SkylakeX": blas("SkylakeX"),
    "BLAS of Prescott": blas("Prescott"),
    "NumPy without AVX-512": without(AVX512),
    "NumPy without AVX2": without([*AVX2, *AVX512]),
    "C library without FMA": PLAIN_LIBC,
    "kernels of a generic CPU": {"NUMBA_CPU_NAME": "generic"},
    "kernels without FMA": {"NUMBA_CPU_NAME": "nehalem"},
}
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
    if not ENVIRONMENTS[name] or ("NUMBA_CPU_NAME" in ENVIRONMENTS[name] and __cpu_features__.get("SSE2") is not True):
        pytest.skip("not on this CPU")
    own = {"NUMBA_CACHE_DIR": str(tmp_path)} if "NUMBA_CPU_NAME" in ENVIRONMENTS[name] else {}
    assert digests({**ENVIRONMENTS[name], **own}) == here
