from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile, ZipInfo

import numba
import pytest

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


@pytest.mark.long
def test_kernels_of_an_unpacked_image_are_not_compiled_again(tmp_path: Path):
    """As an image does: the files are the same, at the same place, and their times are whole seconds."""
    module = tmp_path / "points.py"
    module.write_text(POINTS.format(name="Point") + LOADED)
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert loaded(tmp_path, cache) == 0
    os.utime(module, (1, 1))
    assert loaded(tmp_path, cache) == 1


@pytest.mark.long
def test_kernels_beside_their_sources_are_not_compiled_again_where_an_archive_is_unpacked(tmp_path: Path):
    packed, unpacked = tmp_path / "packed", tmp_path / "unpacked"
    packed.mkdir()
    (packed / "points.py").write_text(POINTS.format(name="Point") + LOADED)
    assert loaded(packed, {"NUMBA_CACHE_DIR": ""}) == 0
    packed.rename(unpacked)
    os.utime(unpacked / "points.py", (1, 1))
    assert loaded(unpacked, {"NUMBA_CACHE_DIR": ""}) == 1


@pytest.mark.long
def test_kernels_in_a_zip_file_are_compiled_again_if_anything_in_it_has_changed(tmp_path: Path):
    """At the same place and with the same time, as where the file is copied over the one before."""
    file, cache = tmp_path / "points.zip", {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    hits = []
    for other in ("first", "first", "then"):
        with ZipFile(file, "w") as archive:
            archive.writestr(ZipInfo("points.py"), POINTS.format(name="Point") + LOADED)
            archive.writestr(ZipInfo("other.py"), other)
        os.utime(file, (1, 1))
        hits.append(loaded(tmp_path, cache, str(file)))
    assert hits == [0, 1, 0]


def loaded(folder: Path, cache: dict[str, str], *packed: str) -> int:
    """Run the module in a process of its own; return how many of its kernels came from a cache.

    packed   a zip file in which it is
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*packed, path()])} | cache
    done = subprocess.run(
        [sys.executable, "-c", "import points"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    answer, hits = done.stdout.split()
    assert answer == "3.0", done.stderr
    return int(hits)


LOADED = """
print(sum(doubled.stats.cache_hits.values()))
"""

POINTS = """
from typing import NamedTuple
from skypane.kernels.compiled import kernel

class {name}(NamedTuple):
    x: float

@kernel
def doubled(point):
    return 2 * point.x

print(doubled({name}(1.5)))
"""


@pytest.mark.long
def test_cached_code_whose_classes_are_gone_is_compiled_again(tmp_path: Path):
    """As after an upgrade in which a named tuple got another name: Numba reads the old index before it looks at its stamp."""
    module = tmp_path / "points.py"
    for name in ("Point", "Place"):
        module.write_text(POINTS.format(name=name))
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path()}
        done = subprocess.run(
            [sys.executable, "-c", "import points"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "3.0\n", done.stderr
    assert list((tmp_path / "cache").rglob("points.doubled*.nbi"))


def path() -> str:
    return os.pathsep.join(entry for entry in sys.path if entry)


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
def test_a_process_that_is_killed_while_it_saves_a_kernel_leaves_no_code_of_an_older_text(tmp_path: Path):
    """Between the two files of a kernel: its code, and the index that names it."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path()}
    answers = []
    for added, more in (("0.5", {}), ("1.5", {"KILLED": "yes"}), ("1.5", {})):
        (tmp_path / "changing.py").write_text(KILLED.format(added=added))
        command = [sys.executable, "-c", "import changing"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment | more, capture_output=True, text=True, check=False
        )
        answers.append((done.returncode, done.stdout))
    assert answers == [(0, "1.5\n"), (9, ""), (0, "2.5\n")]


@pytest.mark.long
def test_kernels_without_cached_code_are_missing_and_code_for_another_processor_does_not_count(tmp_path: Path):
    program = "from skypane.kernels.warming import missing, warm; print(len(missing(['scores']))); warm(families=['scores']); print(missing(['scores']))"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    shown = []
    for more in ({}, {}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}):
        command = [sys.executable, "-c", program]
        shown.append(subprocess.run(command, env=environment | more, capture_output=True, text=True, check=True).stdout)
    assert shown == ["3\n[]\n", "0\n[]\n", "3\n[]\n"]
