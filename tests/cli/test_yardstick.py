from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skypane.cli.main import main

pytestmark = pytest.mark.usefixtures("wide_terminal")

MADE = ["yardstick", "poisson", "--with", "rate=100", "--with", "delay=exponential", "--with", "delay_mean=1s"]


def test_a_workload_is_held_against_the_best_fixed_delay(capsys: pytest.CaptureFixture[str]):
    assert main([*MADE, "--rows", "40000", "--window", "10 seconds", "--max-drop", "0.02"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    for part in ("AqKSlack(0.02)", "KSlack()", "Against the best fixed delay: mean", "the credit is"):
        assert part in output
    assert "No verdict" not in output


def test_a_file_is_held_against_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    times = pa.array([second * 1_000_000 for second in range(300)], pa.timestamp("us"))
    pq.write_table(pa.table({"at": times}), tmp_path / "stream.parquet")
    assert main(["yardstick", str(tmp_path / "stream.parquet"), "--time", "at", "--batch", "10"]) == 0
    assert "No verdict" in " ".join(capsys.readouterr().out.split())
    assert main(["yardstick", str(tmp_path / "stream.parquet")]) == 1
    assert "name the column of the event time with --time COLUMN" in capsys.readouterr().err


def test_an_unknown_workload_is_reported_by_name(capsys: pytest.CaptureFixture[str]):
    assert main(["yardstick", "poison"]) == 1
    assert "poison" in capsys.readouterr().err


def two_hours(folder: Path) -> Path:
    """Write a stream in the order of arrival: two sources, each in the order of its own clock, one of them 90 s behind."""
    seconds = [(second - 90 * (second % 2), "ab"[second % 2]) for second in range(7_200)]
    times = pa.array([second * 1_000_000 for second, _ in seconds], pa.timestamp("us"))
    path = folder / "stream.parquet"
    pq.write_table(pa.table({"at": times, "device": [source for _, source in seconds]}), path)
    return path


FURTHER = {"watermark, 30 s": "{policy: watermark, delay: 30 s}", "readiness, 5": "{policy: readiness, idle_after: 5}"}


def test_further_policies_are_rows_of_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(further(two_hours(tmp_path), *FURTHER.values())) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [next(line for line in lines if line.startswith(name)) for name in FURTHER]
    watermark, readiness = (float(row.split(" %")[0].split()[-1]) for row in rows)
    assert watermark == pytest.approx(expected_drop(delay=30, behind=90), abs=0.5), "half of the rows are 90 s behind"
    assert readiness == 0, "each source is in order"


def rows_of(printed: str, count: int) -> list[list[str]]:
    """Return the cells of the table's last `count` rows."""
    table = printed.partition("Against the best fixed delay")[0].splitlines()
    return [re.split("  +", line) for line in table[-count:]]


def further(stream: Path, *policies: str) -> list[str]:
    given = ["yardstick", str(stream), "--time", "at", "--source", "device", "--batch", "10", "--window", "1 minute"]
    return [*given, *(word for text in policies for word in ("--policy", text))]


def test_policies_with_the_same_values_have_different_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    policies = "{policy: aqkslack, max_drop: 0.05}", "{policy: aqkslack, max_amended: 0.05}", "{policy: kslack}"
    assert main(further(two_hours(tmp_path), *policies)) == 0
    assert [name for name, *_ in rows_of(capsys.readouterr().out, 3)] == [*policies[:2], "kslack"]


def test_a_policy_that_answers_no_window_has_no_latency(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(further(two_hours(tmp_path), "{policy: watermark, delay: 1 day}")) == 0
    ((_, dropped, mean, p99, _, first, _),) = rows_of(capsys.readouterr().out, 1)
    assert (dropped, mean, p99, first) == ("0 %", "n/a", "n/a", "n/a")


def test_sources_have_the_names_of_the_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    named, unknown = (f"{{policy: readiness, idle_after: 5, sources: [{name}]}}" for name in ("a, b", "c"))
    assert main(further(two_hours(tmp_path), named, unknown)) == 0
    of_named, of_unknown = rows_of(capsys.readouterr().out, 2)
    assert of_named[2] != "n/a"
    assert of_unknown[2] == "n/a", "it waits for a source that never comes"


def expected_drop(delay: int, behind: int, batch: int = 10, window: int = 60) -> float:
    """Return the share of rows, in percent, whose window's end lies `delay` or more behind the newest time before their batch."""
    rows = [second - behind * (second % 2) for second in range(7_200)]
    late = 0
    for start in range(batch, len(rows), batch):
        limit = max(rows[:start]) - delay
        late += sum(row // window * window + window <= limit for row in rows[start : start + batch])
    return 100 * late / len(rows)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--policy", "{policy: watermark}"], "--policy: progress.delay: is missing"),
        (["--policy", "{policy: watermarks, delay: 1 s}"], "cannot be 'watermarks'"),
        (["--policy", "watermark"], "progress: must be a section"),
        (["--policy", FURTHER["readiness, 5"]], "Readiness needs the source of each row"),
        (["--source", "device", "--policy", "{policy: readiness, idle_after: 5 s}"], "give idle_after in batches"),
        (["--source", "device", "--policy", "{policy: kslack, clocks: align}"], "leave clocks out"),
        (["--source", "devices"], "device"),
    ],
)
def test_a_policy_that_cannot_be_measured_is_refused(
    given: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["yardstick", str(two_hours(tmp_path)), "--time", "at", *given]) == 1
    assert message in capsys.readouterr().err


def test_a_workload_has_no_column_of_sources(capsys: pytest.CaptureFixture[str]):
    assert main([*MADE, "--source", "device"]) == 1
    assert "--source names a column of a file" in capsys.readouterr().err
