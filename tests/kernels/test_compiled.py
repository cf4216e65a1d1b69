from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile, ZipInfo

import numba
import pytest
from tests.checkout import PYTHONPATH
from tests.kernels.forking import Forking

from skypane.kernels import compiled, sort_filter


def test_a_kernel_without_a_place_to_cache_is_compiled_all_the_same(monkeypatch):
    def njit(**options):
        if options.get("cache"):
            raise RuntimeError("no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(compiled, "njit", njit)
    monkeypatch.setattr(compiled, "UNCACHED", [])
    assert compiled.kernel(lambda x: x + 1)(2) == 3
    assert len(compiled.UNCACHED) == 1


def test_the_cache_is_stamped_with_every_source_of_the_package():
    scan: Any = sort_filter._skyline
    names = [name for name, *_ in scan._cache._cache_file._source_stamp]
    assert {"simd.py", "nested_loops.py", "sort_filter.py"} <= set(names)


def test_a_numba_without_that_stamp_is_accepted():
    compiled._stamp_with_all_sources(SimpleNamespace(), Path())


def test_the_stamp_depends_on_the_text_of_sources_and_not_on_when_they_were_written(tmp_path: Path):
    source = tmp_path / "kernel.py"
    source.write_text("a = 1")
    stamps = [_stamped(tmp_path)]
    os.utime(source, (1, 1))
    stamps.append(_stamped(tmp_path))
    source.write_text("a = 2")
    os.utime(source, (1, 1))
    stamps.append(_stamped(tmp_path))
    assert stamps[0] == stamps[1] != stamps[2]


def _stamped(package: Path) -> Any:
    compiled._stamp.cache_clear()
    return compiled._stamp(package)


POINTS = """
from typing import NamedTuple
from skypane.kernels.compiled import kernel, lacking

class {name}(NamedTuple):
    x: float

@kernel
def doubled(point):
    return 2 * point.x

print(*lacking(["points"]))
print(doubled({name}(1.5)))
print(sum(doubled.stats.cache_hits.values()), *lacking(["points"]))
"""
COMPILED, LOADED = "doubled\n3.0\n0\n", "\n3.0\n1\n"
"""What the module prints that has compiled its kernel, and that loads it from a cache."""


@pytest.fixture(scope="module")
def forking() -> Iterator[Forking]:
    with Forking() as one:
        yield one


@pytest.mark.long
def test_kernels_of_an_unpacked_image_are_not_compiled_again(tmp_path: Path, forking: Forking):
    """As an image does: the files are the same, at the same place, and their times are whole seconds."""
    module = tmp_path / "points.py"
    module.write_text(POINTS.format(name="Point"))
    assert forking.imported("points", tmp_path, tmp_path / "cache") == (0, COMPILED)
    os.utime(module, (1, 1))
    assert forking.imported("points", tmp_path, tmp_path / "cache") == (0, LOADED)


@pytest.mark.long
def test_kernels_beside_their_sources_are_not_compiled_again_where_an_archive_is_unpacked(
    tmp_path: Path, forking: Forking
):
    packed, unpacked = tmp_path / "packed", tmp_path / "unpacked"
    packed.mkdir()
    (packed / "points.py").write_text(POINTS.format(name="Point"))
    assert forking.imported("points", packed, "") == (0, COMPILED)
    packed.rename(unpacked)
    os.utime(unpacked / "points.py", (1, 1))
    assert forking.imported("points", unpacked, "") == (0, LOADED)


@pytest.mark.long
def test_kernels_in_a_zip_file_are_compiled_again_if_anything_in_it_has_changed(tmp_path: Path, forking: Forking):
    """At the same place and with the same time, as where the file is copied over the one before."""
    file, shown = tmp_path / "points.zip", []
    for other in ("first", "first", "then"):
        with ZipFile(file, "w") as archive:
            archive.writestr(ZipInfo("points.py"), POINTS.format(name="Point"))
            archive.writestr(ZipInfo("other.py"), other)
        os.utime(file, (1, 1))
        shown.append(forking.imported("points", file, tmp_path / "cache"))
    assert shown == [(0, COMPILED), (0, LOADED), (0, COMPILED)]


@pytest.mark.long
def test_cached_code_whose_classes_are_gone_is_compiled_again(tmp_path: Path, forking: Forking):
    """As after an upgrade in which a named tuple got another name: Numba reads the old index before it looks at its stamp."""
    for name in ("Point", "Place"):
        (tmp_path / "points.py").write_text(POINTS.format(name=name))
        assert forking.imported("points", tmp_path, tmp_path / "cache") == (0, COMPILED)
    assert list((tmp_path / "cache").rglob("points.doubled*.nbi"))


KILLED = """
import os
from skypane.kernels.compiled import kernel

@kernel
def changed(x):
    return x + {added}

file, opened = changed._cache._cache_file, []
written = file._open_for_write

def killed(path):
    opened.append(path)
    if len(opened) > 1:
        os._exit(9)
    return written(path)

if "KILLED" in os.environ:
    file._open_for_write = killed
print(changed(1))
"""


@pytest.mark.long
def test_a_process_that_is_killed_while_it_saves_a_kernel_leaves_no_code_of_an_older_text(
    tmp_path: Path, forking: Forking
):
    """Between the two files of a kernel: its code, and the index that names it."""
    shown = []
    for added, killed in ((0.5, False), (1.5, True), (1.5, False)):
        (tmp_path / "changing.py").write_text(KILLED.format(added=added))
        shown.append(forking.imported("changing", tmp_path, tmp_path / "cache", killed=killed))
    assert shown == [(0, "1.5\n"), (9, ""), (0, "2.5\n")]


PROGRAM = """
import points
from skypane.kernels.warming import missing
print(len(missing(["scores"])))
"""


@pytest.mark.long
def test_kernels_without_cached_code_are_missing_and_code_for_another_processor_does_not_count(
    tmp_path: Path, forking: Forking
):
    (tmp_path / "points.py").write_text(POINTS.format(name="Point"))
    shown = [forking.imported("points", tmp_path, tmp_path / "cache") for _ in range(2)]
    assert shown == [(0, COMPILED), (0, LOADED)]
    other = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command, environment = [sys.executable, "-c", PROGRAM], os.environ | {"PYTHONPATH": PYTHONPATH} | other
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{COMPILED}3\n"
