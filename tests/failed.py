"""The folders of slow tests that have failed, kept where later runs do not delete them: in .pytest_cache/failed.

Logs of a campaign lie in the test's folder, and pytest keeps the folders of three runs.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(".pytest_cache") / "failed"
MOST: Final = 12
"""Folders that are kept; the oldest go."""
BYTES: Final = 256 << 20
"""What is copied of one folder: logs first, which are small, then what else fits."""
_LOGS: Final = {".log", ".threads", ".json", ".txt"}


class Failed:
    """The plugin."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep the folder of a slow test that has failed, and name it in the report."""
        report = yield
        folder = getattr(item, "funcargs", {}).get("tmp_path")
        if report.failed and folder is not None and item.get_closest_marker("slow"):
            report.sections.append(("logs", f"its folder, {folder}, is kept in {_kept(item, folder)}"))
        return report


def _kept(item: pytest.Item, folder: Path) -> Path:
    name = re.sub(r"\W+", "-", item.nodeid).strip("-")
    return keep(folder, item.config.rootpath / FOLDER, name)


def keep(folder: Path, among: Path, name: str, most: int = MOST, size: int = BYTES) -> Path:
    """Copy a folder to `among`, whose oldest go then; return the copy, which holds at most `size` bytes."""
    copy = _free(among, name)
    left = size
    for path in sorted(_files(folder), key=lambda path: (path.suffix not in _LOGS, path)):
        there = copy / path.relative_to(folder)
        there.parent.mkdir(parents=True, exist_ok=True)
        try:
            if (left := left - path.stat().st_size) < 0:
                break
            shutil.copy2(path, there)
        except OSError as error:  # a process that has outlived its test removes what it needs no more
            (copy / "not-kept.txt").write_text(f"{path}: {error}\n")
    for old in sorted(among.iterdir(), key=lambda one: one.stat().st_mtime_ns)[:-most]:
        shutil.rmtree(old, ignore_errors=True)
    return copy


def _free(among: Path, name: str) -> Path:
    """Make a folder of that name, or of the next one with a number."""
    number = 0
    while True:
        path = among / (name if number == 0 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return path


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder: no links, which may lead anywhere, and no pipes and sockets, which have no end."""
    for root, _, names in os.walk(folder):
        yield from (path for name in names if (path := Path(root) / name).is_file() and not path.is_symlink())
