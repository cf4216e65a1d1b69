"""`skypane init`: what it writes is a job, whatever the sample, and a dry run accepts it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from skypane.cli.main import main
from skypane.jobs import JobFile, read
from skypane.jobs.first_job import length_for

START = datetime(2025, 1, 1, tzinfo=UTC)
INSTANTS = [START + timedelta(minutes=minute) for minute in range(100)]
ROWS = pa.table(
    {
        "id": range(100),
        "at": pa.array(INSTANTS, pa.timestamp("us", "UTC")),
        "city": ["A", "B"] * 50,
        "price": [n * 37 % 100 + 0.5 for n in range(100)],
    }
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(ending: str, rows: pa.Table = ROWS) -> Path:
    path = Path(f"offers.{ending}")
    if ending == "csv":
        pa.csv.write_csv(rows, path)
    elif ending == "parquet":
        pq.write_table(rows, path)
    else:
        path.write_text("\n".join(json.dumps(row, default=datetime.isoformat) for row in rows.to_pylist()))
    return path


def written(*arguments: str) -> JobFile:
    assert main(["init", *arguments, "--no-check"]) == 0
    return read(Path("offers.yaml"))


def window_of(job: JobFile) -> tuple[str | None, str]:
    assert job.window is not None
    return job.window.time, job.window.length


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_sample_is_enough(ending: str):
    job = written(str(write(ending)), "--prefer", "price MIN", "--by", "city")
    assert (job.name, job.source.path) == ("offers", f"*.{ending}")
    assert job.source.schema_ == (None if ending == "parquet" else "id bigint, at timestamp, city string, price double")
    assert window_of(job) == ("at", "1 minute")
    assert str(job.each_query[0].build()) == "skyline of price MIN, one per city"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("values", "instant"),
    [
        ([int(at.timestamp()) for at in INSTANTS], "timestamp_seconds(at)"),
        ([int(at.timestamp() * 1e3) for at in INSTANTS], "timestamp_millis(at)"),
        ([int(at.timestamp() * 1e6) for at in INSTANTS], "timestamp_micros(at)"),
        ([at.date() for at in INSTANTS], "CAST(at AS timestamp)"),
    ],
)
def test_a_time_of_another_type_is_derived(values: list[Any], instant: str):
    job = written(str(write("parquet", ROWS.set_column(1, "at", pa.array(values)))))
    assert job.derive == {"event_time": instant}
    assert window_of(job)[0] == "event_time"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_times_that_parquet_has_as_texts_are_derived(kind: pa.DataType):
    """The schema of a text file makes them timestamps; parquet states its own."""
    texts = pa.array([at.isoformat() for at in INSTANTS], kind)
    job = written(str(write("parquet", ROWS.set_column(1, "at", texts))))
    assert job.derive == {"event_time": "try_cast(at AS timestamp)"}
    assert window_of(job) == ("event_time", "1 minute")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "text", "schema"),
    [
        ("offers.csv", ",at,n\n0,2025-01-01,1\n", "_c0 bigint, at date, n bigint"),  # as pandas writes an index
        ("offers.csv", "at,clock\n2025-01-01,09:30\n", "at date, clock string"),
        (
            "offers.jsonl",
            '{"at": "2025-01-01", "shop": {"shop id": 1, "tags": ["a"]}}',
            "at timestamp, shop struct<`shop id`: bigint, tags: array<string>>",
        ),
    ],
)
def test_the_schema_is_one_that_spark_reads(name: str, text: str, schema: str):
    Path(name).write_text(text)
    assert written(name).source.schema_ == schema


@pytest.mark.usefixtures("folder")
def test_a_preference_may_have_expressions():
    job = written(str(write("csv")), "--prefer", "price * 2 MIN")
    assert str(job.each_query[0].build()) == "skyline of `price * 2` MIN"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("option", ["--dry-run", "--drain"])
def test_the_commands_that_are_shown_can_be_typed(option: str, capsys: pytest.CaptureFixture[str]):
    path = write("csv").rename("my offers.csv")
    assert main(["init", str(path), "--no-check"]) == 0
    command = f"skypane run 'my offers.yaml' {option}"
    assert command in capsys.readouterr().out
    assert command in Path("my offers.yaml").read_text()


CSV_LINES = ["at,city,price", *(f"{at:%Y-%m-%d %H:%M:%S},A,{at.minute}" for at in INSTANTS)]
JSON_LINES = [json.dumps({"at": at.isoformat(), "city": "A", "price": at.minute}) for at in INSTANTS]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("ending", "lines", "remark"),
    [
        ("csv", [*CSV_LINES, "2025-01-01 0x:00:00,A,1"], "1 value of 'at' cannot be read as a time, so the job has null there: '2025-01-01 0x:00:00'"),
        ("csv", [*CSV_LINES[:3], "?,A,1", *CSV_LINES[3:], "2025-01-32,A,1"], "2 values of 'at' cannot be read as a time, so the job has null there: '?'"),
        ("csv", [*CSV_LINES, "2025-01-01 10:00:00,A"], "1 line of the sample cannot be read: '2025-01-01 10:00:00,A'"),
        ("csv", [CSV_LINES[0], "A,1,2,3", "1", *CSV_LINES[1:]], "2 lines of the sample cannot be read: 'A,1,2,3'"),
        ("jsonl", [*JSON_LINES[:3], '{"at": "2025', *JSON_LINES[3:], ""], "1 line of the sample cannot be read: '{"),
        ("jsonl", [*JSON_LINES, "null"], "1 line of the sample cannot be read: 'null'"),
        ("jsonl", [*JSON_LINES, '{"at": "soon", "city": "A"}'], "1 value of 'at' cannot be read as a time, so the job has null there: 'soon'"),
    ],
)  # fmt: skip
def test_a_bad_line_of_a_sample_is_reported_and_changes_no_type(
    ending: str, lines: list[str], remark: str, capsys: pytest.CaptureFixture[str]
):
    Path(f"offers.{ending}").write_text("\n".join([*lines, ""]))
    job = written(f"offers.{ending}", "--prefer", "price MIN")
    assert job.source.schema_ == "at timestamp, city string, price bigint"
    assert window_of(job) == ("at", "1 minute")
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1
    assert notes[0].startswith(f"note: {remark}")


def test_of_a_folder_the_first_file_is_the_sample(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "offers").mkdir()
    monkeypatch.chdir(folder / "offers")
    write("csv").rename("2.csv")
    Path("1.csv").write_text("\n".join(CSV_LINES))
    for ignored in ("0.txt", "_0.csv", ".0.csv"):
        Path(ignored).write_text("no sample")
    monkeypatch.chdir(folder)
    assert main(["init", "offers", "--prefer", "price MIN", "--no-check"]) == 0
    job = read(Path("offers-job.yaml"))
    assert (job.name, job.source.path) == ("offers-job", "offers/*.csv")
    assert job.source.schema_ == "at timestamp, city string, price bigint"
    assert job.output is not None
    assert job.output.path == "offers-job/answers"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_of_a_sample_without_bad_lines_nothing_is_reported(ending: str, capsys: pytest.CaptureFixture[str]):
    written(str(write(ending)))
    assert "note: " not in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_a_column_of_which_many_values_are_not_times_is_text():
    lines = [f"{line},{'2025-01-01' if number % 5 else 'open'}" for number, line in enumerate(CSV_LINES[1:])]
    Path("offers.csv").write_text("\n".join([f"{CSV_LINES[0]},until", *lines, ""]))
    assert written("offers.csv").source.schema_ == "at timestamp, city string, price bigint, until string"


@pytest.mark.usefixtures("folder")
def test_a_timestamp_comes_before_a_number_that_could_be_one():
    rows = ROWS.set_column(0, "id", pa.array([1_700_000_000 + n for n in range(100)]))
    assert window_of(written(str(write("csv", rows))))[0] == "at"


@pytest.mark.usefixtures("folder")
def test_rows_without_numbers_are_counted():
    job = written(str(write("csv", ROWS.select(["at", "city"]))), "--by", "city")
    assert job.each_query[0].query.kind == "aggregate"


@pytest.mark.usefixtures("folder")
def test_names_that_yaml_and_sql_read_otherwise_are_quoted():
    rows = ROWS.rename_columns(["no", "at: time", "city #", "price `net`"])
    job = written(str(write("csv", rows)), "--by", "city #", "--name", "offers", "--out", "offers.yaml")
    assert (window_of(job)[0], job.each_query[0].query.by) == ("at: time", ("city #",))
    assert "`price ``net``` double" in (job.source.schema_ or "")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("offers.csv --time att", "--time: 'att' is not a column of a time; did you mean 'at'?"),
        ("offers.csv --by cities", "--by: 'cities' is not a column of the sample; did you mean 'city'?"),
        ("offers.csv --prefer 'prise MIN'", "--prefer: 'prise' is not a column of the sample; did you mean 'price'?"),
        ("offers.csv --prefer 'price LEAST'", "--prefer: "),
        ("offers.csv --window '0 s'", "--window: a window must be longer than 0"),
        (
            "offers.xls",
            "a sample must end in .csv, .json, .jsonl, .ndjson, .parquet, or be a folder of such files, got offers.xls",
        ),
        ("empty", "the folder empty has no file that ends in .csv, .json"),
        ("none.csv", "cannot read the sample none.csv: "),
        ("twice.csv", "the sample twice.csv has 2 columns 'n'; name one of them differently"),
        ("other.csv", "cannot read the sample other.csv as csv: "),
        ("other.json", "cannot read the sample other.json as json: "),
        ("timeless.csv", "timeless.csv has no column that can be the event time"),
        ("offers.csv --time ''", "--time: an answer is needed"),
        ("offers.csv --out there.yaml", "there.yaml exists already"),
        ("", "SAMPLE is missing: format of the files"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    arguments: str, problem: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    write("csv")
    Path("there.yaml").write_text("mine")
    Path("twice.csv").write_text("at,n,n\n2025-01-01,1,2\n")
    Path("timeless.csv").write_text("at,n\n01/02/2025,1\n")
    Path("empty").mkdir()
    Path("other.csv").write_text("at,n\n2025-01-01;1\n2025-01-02;2\n")
    Path("other.json").write_text("at,n\n2025-01-01,1\n")
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert main(["init", *shlex.split(arguments), "--no-check"]) == 1
    assert problem in capsys.readouterr().err
    assert sorted(path.name for path in Path().glob("*.yaml")) == ["there.yaml"]
    assert Path("there.yaml").read_text() == "mine"


@pytest.mark.long
def test_a_question_comes_again_until_its_answer_is_right(folder: Path):
    write("csv")
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "skypane", "init", "offers.csv", "--window", "5 minutes", "--no-check"],
        stdin=theirs, stdout=subprocess.PIPE, text=True, cwd=folder,
    ) as running:  # fmt: skip
        os.write(ours, b"att\nat\nprice MAX\ncity\n")
        output, _ = running.communicate()
        assert running.returncode == 0
    os.close(ours)
    os.close(theirs)
    assert "'att' is not a column of a time; did you mean 'at'?" in output
    job = read(folder / "offers.yaml")
    assert str(job.each_query[0].build()) == "skyline of price MAX, one per city"
    assert window_of(job)[1] == "5 minutes"


def test_a_sample_without_a_time_ends_the_questions(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    (folder / "timeless.csv").write_text("at,n\n01/02/2025,1\n")
    ours, theirs = os.openpty()
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert main(["init", "timeless.csv", "--no-check"]) == 1
    os.close(ours)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "timeless.csv has no column that can be the event time" in printed.err


def test_ten_windows_fit_into_the_sample():
    assert [length_for(seconds) for seconds in (None, 0, 100, 36_000, 1e9)] == [
        "1 hour", "1 second", "10 seconds", "1 hour", "7 days"
    ]  # fmt: skip


@pytest.mark.usefixtures("spark", "folder")
@pytest.mark.parametrize(
    ("ending", "rows"),
    [
        ("csv", ROWS),
        ("jsonl", ROWS),
        ("parquet", ROWS),
        ("parquet", ROWS.set_column(1, "at", pa.array([at.isoformat() for at in INSTANTS]))),
    ],
)
def test_what_was_written_runs(ending: str, rows: pa.Table, capsys: pytest.CaptureFixture[str]):
    written(str(write(ending, rows)), "--by", "city")
    assert main(["run", "offers.yaml", "--dry-run"]) == 0
    assert "the job is valid" in capsys.readouterr().out
    assert main(["run", "offers.yaml", "--drain"]) == 0
    answers = pq.read_table("offers/answers").to_pylist()
    best = {(row["window_start"].minute + 60 * row["window_start"].hour, row["city"], row["price"]) for row in answers}
    assert best == {(n, "AB"[n % 2], n * 37 % 100 + 0.5) for n in range(100)}


CHECKS = {
    "the job reads 3 rows, and all come in": "at,city,price\n2025-01-01 00:00:00,A,1\n2025-01-01 00:01:00,B,2\n2025-01-01 00:02:00,,3\n",
    "the job reads 11 rows, and 9 come in; the others: 1 null at, 2 null price": "at,city,price\n" + "2025-01-01 00:00:00,A,1\n" * 9
    + "2025-01-01 0x:00:00,A,\n2025-01-01 00:00:00,A,\n",
}  # fmt: skip


@pytest.mark.usefixtures("spark", "folder")
@pytest.mark.parametrize("line", CHECKS)
def test_the_rows_are_read_by_what_was_written(line: str, capsys: pytest.CaptureFixture[str]):
    Path("offers.csv").write_text(CHECKS[line])
    assert main(["init", "offers.csv", "--prefer", "price MIN", "--by", "city"]) == 0
    assert line in capsys.readouterr().out.splitlines()
