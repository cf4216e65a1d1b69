"""Streams of Spark over folders of a server of S3's API, each with a driver and workers of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.checkout import PYTHONPATH, ROOT
from tests.runtime.compressed.packing import PACK
from tests.runtime.many.killed_drivers import killed_at, rows_in_the_end
from tests.runtime.streams import parquet_rows
from tests.servers import s3

from skypane.locations import Location
from skypane.runtime.stores.object_client import client_of

SECRETS = (b"unheard-of", b"AWS_SECRET")


def put(name: str, text: str) -> None:
    """Write an object into the folder, compressed if its name says so."""
    content = PACK["gzip"](text.encode()) if name.endswith(".gz") else text.encode()
    client_of(Location.of("s3://bucket")).put(f"in/{name}", content)


def lines(first: int, count: int) -> str:
    return "".join(f'{{"n": {n}}}\n' for n in range(first, first + count))


def run(what: str, folder: Path) -> None:
    command = [sys.executable, "-m", "tests.runtime.many.objects_driver", what, str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": PYTHONPATH}, capture_output=True, text=True,
                          timeout=500, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]


def secrets_in(folder: Path) -> list[Path]:
    """Return the files of a folder that have a secret."""
    return [path for path in folder.rglob("*") if path.is_file() and any(one in path.read_bytes() for one in SECRETS)]


@pytest.mark.spark
@pytest.mark.slow
def test_each_row_of_each_object_comes_once_over_kills(tmp_path: Path):
    """Drivers are killed by SIGKILL while objects arrive, compressed or not, with names in any order."""
    (tmp_path / "out").mkdir()
    (tmp_path / "inputs.json").write_text(json.dumps([{"objects": "s3://bucket/in/", "format": "json"}]))
    kills, written = 3, 0
    with s3.running() as port, s3.connected(port):
        for kill in range(kills):
            for at in range(8):
                # Descending names: each object comes before those that were read.
                put(f"{9 - kill}/{9 - at}.json{'.gz' if at % 2 else ''}", lines(written, 125))
                written += 125
            s3.put(port, f"in/{kill}//a\x01.json", lines(written, 125).encode())
            written += 125
            s3.put(port, f"in/{kill}/../a.json", lines(0, 9).encode())
            killed_at(f"batch {kill * 4 + 2} ", "tests.runtime.many.driver", tmp_path)
        put("9/9.json", lines(-5, 5))
        put("last.json", lines(written, 5))
        rows = rows_in_the_end("tests.runtime.many.driver", tmp_path)
    assert sorted(row["n"] for row in rows if row["bad"] is None) == list(range(written + 5))
    bad = sorted(row["bad"].partition(": ")[2] for row in rows if row["bad"] is not None)
    wrong = [f"{kill}/../a.json is not read" for kill in range(kills)] + [
        "9/9.json was written again after it was read"
    ]
    assert all(one.startswith(f"s3://bucket/in/{why}") for one, why in zip(bad, wrong, strict=True)), bad
    assert {row["input"] for row in rows} == {"s3://bucket/in/"}
    assert secrets_in(tmp_path) == []


@pytest.mark.spark
@pytest.mark.slow
def test_folders_of_objects_keep_the_laws_of_sources(tmp_path: Path):
    with s3.running() as port, s3.connected(port):
        for at in range(4):
            rows = [json.dumps({"n": at * 20 + n, "city": "Oslo"}) for n in range(13)]
            put(f"{at}.json{'.gz' if at % 2 else ''}", "\n".join(rows))
        run("laws", tmp_path)


@pytest.mark.spark
@pytest.mark.slow
def test_a_job_answers_all_rows_and_quarantines_what_does_not_parse_with_its_object(tmp_path: Path):
    def minutes(hour: int, ns: range) -> str:
        return "".join(json.dumps({"ts": f"2026-01-01T{hour:02}:{n:02}:00Z", "n": n}) + "\n" for n in ns)

    with s3.running() as port, s3.connected(port):
        for hour in range(3):
            put(f"{hour:02}.json.gz", minutes(hour, range(60)))
        put("bad.json", "no object\n")
        run("answers", tmp_path)
    assert json.loads((tmp_path / "reported.json").read_text()) == [{"input": "s3://bucket/in/", "lag": 0}]
    answers = parquet_rows(tmp_path / "out")
    assert (sum(answers["rows"].to_pylist()), sum(answers["total"].to_pylist())) == (180, 3 * sum(range(60)))
    (rejected,) = parquet_rows(tmp_path / "late").to_pylist()
    assert rejected["reason"] == "null ts"
    assert "bad.json" in rejected["bad"]
    assert secrets_in(tmp_path) == []
