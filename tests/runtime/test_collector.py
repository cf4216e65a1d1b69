"""The garbage collector of a local session's Java: the serial one for few threads, unless somebody has chosen another."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runtime.scenarios import lines_of

from skypane.runtime.spark.machine.collector import SERIAL, with_collector

VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS")
DEFAULT_OPTIONS = "spark.driver.defaultJavaOptions"
CHOICES = ("-XX:+UseG1GC", "-Da=b -XX:+UseZGC", "-XX:-UseSerialGC", "-XX:G1HeapRegionSize=4m", "@/etc/java.options")


@pytest.fixture(autouse=True)
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of Spark's defaults; nobody has chosen a collector yet."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("threads", [1, 2])
def test_few_threads_have_the_serial_collector(threads: int):
    assert with_collector("-Da=b", threads, {}) == f"-Da=b {SERIAL}"
    assert with_collector("", threads, {}) == SERIAL


def test_more_threads_keep_the_default_of_java():
    assert with_collector("-Da=b", 3, {}) == "-Da=b"


@pytest.mark.parametrize("own", CHOICES)
def test_a_choice_in_a_setting_is_left_alone(own: str):
    assert with_collector(own, 2, {}) == own
    assert with_collector("-Da=b", 2, {DEFAULT_OPTIONS: own}) == "-Da=b"


def test_a_setting_for_executors_does_not_choose():
    assert with_collector("-Da=b", 2, {"spark.executor.extraJavaOptions": CHOICES[0]}) == f"-Da=b {SERIAL}"


@pytest.mark.parametrize("own", [*CHOICES, "--properties-file mine.conf pyspark-shell"])
@pytest.mark.parametrize("name", VARIABLES)
def test_a_choice_in_a_variable_is_left_alone(name: str, own: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(name, own)
    assert with_collector("-Da=b", 2, {}) == "-Da=b"


def test_a_choice_in_the_defaults_of_spark_is_left_alone(conf: Path):
    (conf / "spark-defaults.conf").write_text(f"{DEFAULT_OPTIONS}  -XX:+UseParallelGC\n")
    assert with_collector("-Da=b", 2, {}) == "-Da=b"


def test_a_choice_in_the_home_of_spark_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert with_collector("-Da=b", 2, {}) == f"-Da=b {SERIAL}"
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(f"{DEFAULT_OPTIONS}=-XX:+UseParallelGC\n")
    assert with_collector("-Da=b", 2, {}) == "-Da=b"


def test_defaults_that_cannot_be_read_leave_java_its_own(conf: Path):
    (conf / "spark-defaults.conf").write_bytes(b"\xff\xfe")
    assert with_collector("-Da=b", 2, {}) == "-Da=b"


@pytest.mark.parametrize("other", ["-Xlog:gc", "-Dorg.apache.commons.logging.Log=a@b", "-XX:TieredStopAtLevel=1"])
def test_other_options_choose_none(other: str):
    assert with_collector(other, 2, {}) == f"{other} {SERIAL}"


SESSION = """
import sys
import skypane as sp
spark = sp.session("local[1]", conf={"spark.driver.memory": "512m"})
beans = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
print(*sorted(bean.getName() for bean in beans), spark.range(3).count(), sep=", ")
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("default", "found"),
    [
        pytest.param("", "Copy, MarkSweepCompact, 3", marks=pytest.mark.slow),
        pytest.param("-XX:+UseParallelGC", "PS MarkSweep, PS Scavenge, 3", marks=pytest.mark.night),
    ],
)
def test_java_starts_with_the_one_that_is_chosen(default: str, found: str, conf: Path):
    (conf / "spark-defaults.conf").write_text(f"{DEFAULT_OPTIONS} {default}\n" if default else "")
    assert lines_of("-c", SESSION)[-1] == found
