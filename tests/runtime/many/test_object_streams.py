"""Streams of Spark over folders of a server of S3's API, with a driver and workers of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.checkout import PYTHONPATH, ROOT
from tests.runtime.compressed.packing import PACK
from tests.runtime.streams import parquet_rows
from tests.servers import s3

from skypane.locations import Location
from skypane.runtime.stores.object_client import client_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SECRETS = (b"unheard-of", b"AWS_SECRET")


def put(name: str, text: str) -> None:
    """Write an object, compressed if its name says so."""
    content = PACK["gzip"](text.encode()) if name.endswith(".gz") else text.encode()
    client_of(Location.of("s3://bucket")).put(name, content)


def secrets_in(folder: Path) -> list[Path]:
    """Return the files of a folder that have a secret."""
    return [path for path in folder.rglob("*") if path.is_file() and any(one in path.read_bytes() for one in SECRETS)]


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a driver that has ended."""

    def minutes(hour: int) -> str:
        return "".join(json.dumps({"ts": f"2026-01-01T{hour:02}:{n:02}:00Z", "n": n}) + "\n" for n in range(60))

    folder = tmp_path_factory.mktemp("objects")
    for name in ("laws", "job"):
        (folder / name).mkdir()
    with s3.running() as port, s3.connected(port):
        for at in range(4):
            rows = [json.dumps({"n": at * 20 + n, "city": "Oslo"}) for n in range(13)]
            put(f"laws/{at}.json{'.gz' if at % 2 else ''}", "\n".join(rows))
        for hour in range(3):
            put(f"in/{hour:02}.json.gz", minutes(hour))
        put("in/bad.json", "no object\n")
        command = [sys.executable, "-m", "tests.runtime.many.objects_driver", str(folder)]
        done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": PYTHONPATH}, capture_output=True,
                              text=True, timeout=500, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr[-3_000:]
        yield folder


def reported(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "reported.json").read_text())
    return found


def test_folders_of_objects_keep_the_laws_of_sources(driven: Path):
    assert reported(driven)["broken"] == ""


def test_a_job_answers_all_rows_and_quarantines_what_does_not_parse_with_its_object(driven: Path):
    assert reported(driven)["lag"] == [{"input": "s3://bucket/in/", "lag": 0}]
    answers = parquet_rows(driven / "job" / "out")
    assert (sum(answers["rows"].to_pylist()), sum(answers["total"].to_pylist())) == (180, 3 * sum(range(60)))
    (rejected,) = parquet_rows(driven / "job" / "late").to_pylist()
    assert rejected["reason"] == "null ts"
    assert "bad.json" in rejected["bad"]
    assert secrets_in(driven) == []
