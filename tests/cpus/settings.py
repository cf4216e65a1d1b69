"""Variables that make a process take its CPU for another one.

BLAS kernels of other CPUs, NumPy's loops without AVX-512 and without AVX2, a C library without AVX2 and FMA, and kernels
compiled for a CPU without any of them; each alone, and as one CPU has them together.
"""

from __future__ import annotations

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__  # type: ignore[import-not-found]

_PRESENT = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
"""What NumPy has loops for and this CPU can run; it warns of other names."""
AVX512 = [name for name in _PRESENT if name.startswith("AVX512") or name == "X86_V4"]
AVX2 = [name for name in _PRESENT if name in {"AVX2", "FMA3", "X86_V3"}]
PLAIN_LIBC = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX2_Usable,-FMA_Usable,-FMA4_Usable"}


def without(names: list[str]) -> dict[str, str]:
    return {"NPY_DISABLE_CPU_FEATURES": ",".join(names)} if names else {}


def blas(core: str) -> dict[str, str]:
    """OpenBLAS runs what it is set to: a core's kernels only where the CPU has its instructions."""
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


def whole(core: str, missing: list[str], numba: str) -> dict[str, str]:
    """All parts of a CPU at once, where this one can run its BLAS kernels."""
    variables = blas(core)
    return {**variables, **without(missing), "NUMBA_CPU_NAME": numba} if variables else {}


WHOLE = {
    "all of a Haswell": whole("Haswell", AVX512, "haswell"),
    "all of a Zen": whole("Zen", AVX512, "znver1"),
    "all of a Skylake-X": whole("SkylakeX", [], "skylake-avx512"),
    "all of a plain x86-64": {**whole("Prescott", [*AVX2, *AVX512], "generic"), **PLAIN_LIBC},
}


def on_this_cpu(variables: dict[str, str]) -> bool:
    """Return whether this CPU can play the other: it has the instructions, and compilers know it by names of x86."""
    return bool(variables) and ("NUMBA_CPU_NAME" not in variables or __cpu_features__.get("SSE2") is True)
