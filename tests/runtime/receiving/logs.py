"""What a reader finds in a log, and receivers that are run, watched and killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.checkout import ROOT

from skypane.runtime.receiving.checksums import check
from skypane.runtime.receiving.log import SEGMENT_BYTES, SegmentLog
from skypane.runtime.receiving.segments import between, end_of, segments_of

PATIENCE = 60.0


def content(folder: Path, start: int = 0) -> bytes:
    """Return what a reader sees from `start` on."""
    end = end_of(str(folder)) or 0
    return b"".join(
        Path(part.path).read_bytes()[max(start - part.begin, 0) : end - part.begin]
        for part in between(str(folder), start, end)
    )


def lines(folder: Path) -> list[str]:
    return content(folder).decode().splitlines()


def write(folder: Path, *written: bytes, segment_bytes: int = SEGMENT_BYTES) -> None:
    """Append lines to a log, one by one."""
    with SegmentLog(folder, segment_bytes) as log:
        for line in written:
            log.append(line)


def check_all(folder: Path) -> None:
    """Check all segments by their checksums."""
    for one in segments_of(str(folder)):
        check(one.path, 0, one.end - one.begin)


def shown_in(folder: Path, caplog: pytest.LogCaptureFixture) -> str:
    """Return what a receiver has logged, and all that it has written."""
    return caplog.text + "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


def until(true: Callable[[], bool], what: str) -> None:
    """Look until it is so; what never happens is an error that says what."""
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE} s in vain: {what}")
        time.sleep(0.01)


@contextmanager
def receiver(given: Mapping[str, Any], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run `skypane receive` in a process of its own, killed at the end if it is still there."""
    listing = folder / "inputs.yaml"
    listing.write_text(yaml.safe_dump(dict(given)))
    command = [sys.executable, "-m", "skypane", "receive", str(listing)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            output = []
            for line in process.stdout:
                output.append(line)
                if line.startswith("receiving"):
                    break
            else:
                raise AssertionError(f"it does not start: {output}")
            yield process
        finally:
            process.kill()
