"""The mutants fit the sources of today, and what was compiled of other files holds in a copy with one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.checkout import ROOT
from tests.differential.mutants.copies import copy, mutate
from tests.differential.mutants.every import MUTANTS
from tests.differential.mutants.mutant import Mutant

SOURCES = ROOT / "src"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_mutant_changes_one_place_and_is_python(mutant: Mutant):
    source = (SOURCES / "skypane" / mutant.file).read_text()
    changed = ast.dump(ast.parse(mutant.applied(source)))
    assert changed != ast.dump(ast.parse(source))


def test_mutants_have_distinct_names():
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS) >= 100


@pytest.mark.parametrize("new", ["KERNEL = 1", "K = 1", "KERNELS_OF_A_LONGER_NAME = 1"])
def test_numbas_cache_is_stale_only_for_kernels_that_may_hold_the_mutated_code(new: str, tmp_path: Path):
    kernels = tmp_path / "src" / "skypane" / "kernels"
    (kernels / "__pycache__").mkdir(parents=True)
    for name, source in {
        "bits": "",
        "changed": "from skypane.kernels.bits import one\nOLDER = 1\n",
        "user": "from skypane.kernels.changed import OLDER\n",
        "users_user": "from skypane.kernels.user import other\n",
        "apart": "from skypane.kernels.bits import one\n",
    }.items():
        (kernels / f"{name}.py").write_text(f'"""A docstring that is long enough to give way, {name}."""\n{source}')
        for kind in ("cpython-311.pyc", "function-7.py311.1.nbc", "function-7.py311.nbi"):
            (kernels / "__pycache__" / f"{name}.{kind}").touch()
    copy(tmp_path / "src", tmp_path / "copy")
    mutate(tmp_path / "copy", Mutant("longer", "kernels/changed.py", "OLDER = 1", new, "for the test"))
    changed = tmp_path / "copy" / "skypane" / "kernels"
    assert new in (changed / "changed.py").read_text()
    assert [_stamp(changed / one.name) for one in sorted(kernels.glob("*.py"))] == [
        _stamp(one) for one in sorted(kernels.glob("*.py"))
    ]
    left = {path.name for path in (changed / "__pycache__").iterdir()}
    assert {name.partition(".")[0] for name in left if ".nb" in name} == {"bits", "apart"}
    assert {name.partition(".")[0] for name in left if ".pyc" in name} == {"bits", "user", "users_user", "apart"}


def _stamp(path: Path) -> tuple[int, int]:
    return path.stat().st_mtime_ns, path.stat().st_size
