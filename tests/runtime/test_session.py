from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from pyspark.sql import SparkSession

from skypane.runtime.resources import GIB, cores
from skypane.runtime.spark.machine import session as module
from skypane.runtime.spark.machine.session import defaults, session, threads


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local", 1), ("local[3]", 3), ("local[2,4]", 2), ("local[*]", cores()), ("spark://host:7077", cores())],
)
def test_threads_of_a_master(master: str, expected: int):
    assert threads(master) == expected


def test_shuffles_have_a_partition_per_thread():
    assert defaults("local[3]")["spark.sql.shuffle.partitions"] == "3"


@pytest.mark.parametrize(("machine", "heap"), [(1, 1), (2, 1), (16, 4), (24, 6), (256, 8)])
def test_the_driver_gets_a_quarter_of_the_machine_within_reason(
    machine: int, heap: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "memory_bytes", lambda: machine * GIB)
    assert defaults()["spark.driver.memory"] == f"{heap * 1024}m"


def test_the_logging_file_is_there():
    options = defaults()["spark.driver.extraJavaOptions"]
    (uri,) = (option.partition("=")[2].strip('"') for option in options.split('" "') if "log4j2" in option)
    assert Path(unquote(urlparse(uri).path)).is_file()


def test_a_running_session_is_returned_as_it_is(spark: SparkSession):
    """Another test may have made a session of its own active, in the same SparkContext."""
    found = session("local[7]", conf={"spark.sql.shuffle.partitions": "99"})
    assert found.sparkContext is spark.sparkContext
    assert found.conf.get("spark.sql.shuffle.partitions") == "2"


def test_a_running_session_is_found_from_another_thread(spark: SparkSession):
    found: list[SparkSession] = []
    thread = threading.Thread(target=lambda: found.append(session()))
    thread.start()
    thread.join()
    assert found == [spark]


def test_the_defaults_arrive_in_spark(spark: SparkSession):
    """A stream sets the size of Arrow batches of its own session, so the test reads a new one."""
    fresh = spark.newSession()
    for name, value in defaults("local[2]").items():
        if name != "spark.driver.memory":
            assert fresh.conf.get(name) == value, name


_SCRIPT = """
from contextlib import suppress
from pathlib import Path
import skypane as sp
secret = "HUNTER" + "TWO"
names = ["spark.hadoop.fs.s3a.access.key", "spark.my.password", "spark.my.apiToken"]
spark = sp.session("local[1]", conf={**dict.fromkeys(names, secret), "spark.driver.memory": "512m"})
seen = []
for path in Path("/proc").glob("[0-9]*/cmdline"):
    with suppress(OSError):
        seen.append(path.read_bytes())
assert not any(secret.encode() in one for one in seen)
assert any(b"spark.driver.memory=512m" in one or b"-Xmx512m" in one for one in seen)
assert {spark.conf.get(name) for name in names} == {secret}
assert spark.sparkContext._jsc.hadoopConfiguration().get("fs.s3a.access.key") == secret
"""


def test_a_secret_is_in_the_arguments_of_no_process(tmp_path: Path):
    script = tmp_path / "secret.py"
    script.write_text(_SCRIPT)
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2_000:]
