"""What decides or answers calls nothing whose last bit differs by CPU; see docs/design.md, "The same on every CPU"."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.checkout import ROOT

SOURCE = ROOT / "src" / "skypane"
PARTS = "control kernels multiway operators preference progress windows.py plan.py runtime/spark".split()
MULTIWAY = ROOT / "papers" / "src" / "skypane_papers" / "multiway"
"""Workloads, estimators, the simulator, and what is reported or reproduced may differ: docs/design.md says so."""

_ELEMENTARY = set(
    "exp exp2 expm1 log log2 log10 log1p pow power float_power cbrt sin cos tan tanh hypot gamma erf".split()
)
_BLAS = set("dot vdot inner matmul einsum tensordot polyfit corrcoef cov convolve correlate linalg fft".split())
REFUSED = {*(f"math.{name}" for name in _ELEMENTARY), *(f"np.{name}" for name in _ELEMENTARY | _BLAS)}

EXCEPTIONS = {
    # file, call -> why it may
    ("kernels/elementary.py", "math.pow"): "where C's pow is exact by its definition",
    # NumPy's own sort puts ties in another order with AVX-512 or without.
    ("kernels/batch_skyline.py", "argsort"): "its sweep finds the same points in any order of ties",
    ("kernels/kdominance.py", "argsort"): "an order to look in, that changes no result",
    ("multiway/aggregation.py", "argsort"): "keys, each once",
    ("kernels/warming.py", "np.exp"): "points to warm up with",
}


def found_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.MatMult()):
                yield "@"
            case ast.BinOp(ast.Constant(), ast.Pow(), ast.Constant() | ast.UnaryOp()):
                pass
            case ast.BinOp(op=ast.Pow()):
                yield "**"
            case ast.Call(ast.Attribute(attr="argsort"), _, keywords) if not _is_stable(keywords):
                yield "argsort"
            case ast.Attribute(ast.Name(module), name) if f"{module}.{name}" in REFUSED:
                yield f"{module}.{name}"


def _is_stable(keywords: list[ast.keyword]) -> bool:
    return any(ast.unparse(keyword) == "kind='stable'" for keyword in keywords)


def test_nothing_that_decides_or_answers_calls_what_differs_by_cpu():
    roots = [(SOURCE, SOURCE / part) for part in PARTS] + [(MULTIWAY.parent, MULTIWAY)]
    found = {
        (file.relative_to(base).as_posix(), what)
        for base, root in roots
        for file in ([root] if root.suffix else root.rglob("*.py"))
        for what in found_in(ast.parse(file.read_text()))
    }
    assert found == set(EXCEPTIONS)


def test_what_is_refused_is_found():
    code = "np.argsort(a); np.argsort(a, kind='stable'); a @ b; np.exp(x); math.log(x); x ** y; 2**62; 2.0**-96; np.sqrt(x); np.linalg.lstsq(a, b)"
    assert sorted(found_in(ast.parse(code))) == ["**", "@", "argsort", "math.log", "np.exp", "np.linalg"]
