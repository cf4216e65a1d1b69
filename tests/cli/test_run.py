"""`skypane run` as a user types it."""

import re
import sys
import tempfile

import pytest
from tests.cli.streams import DAILY, put, rows_in
from tests.runtime.streams import drained, start_knowing

import skypane as sp
from skypane.cli.main import main
from skypane.jobs import building, examples, parse, running
from skypane.reporting.foreground import follow
from skypane.reporting.live import PlainDisplay
from skypane.reporting.query_view import QueryView

JOB = """
name: offers
mode: batch
source: {{format: json, path: {folder}/in, schema: "city string, price double, rating double"}}
query: {{kind: skyline, preference: "price MIN, rating MAX", by: city}}
output: {{format: csv, path: {folder}/out}}
"""


@pytest.fixture
def job(tmp_path):
    put(tmp_path, [{"city": "A", "price": p, "rating": r} for p, r in ((1, 1), (2, 5), (3, 4), (4, 9))])
    path = tmp_path / "job.yaml"
    path.write_text(JOB.format(folder=tmp_path))
    return path


def test_examples_are_listed_and_shown(capsys):
    assert main(["run", "--examples"]) == 0
    assert capsys.readouterr().out.split() == examples.names()
    assert main(["run", "rate-skyline", "--show"]) == 0
    assert capsys.readouterr().out == examples.text("rate-skyline")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "JOB is missing; give a job file or the name of an example"),
        (["none.yaml"], "cannot read the job file none.yaml: No such file or directory"),
        (["flights-top-delays", "--report", "x.html"], "--report is only for streaming jobs"),
    ],
)
def test_what_cannot_be_run_is_reported_before_spark_starts(capsys, arguments, complaint):
    assert main(["run", *arguments]) == 1
    assert complaint in capsys.readouterr().err


def test_a_job_that_is_wrong_is_reported_line_by_line(job, capsys):
    job.write_text(job.read_text().replace("kind: skyline", "kind: skylin").replace("path:", "pth:"))
    assert main(["run", str(job)]) == 1
    output = capsys.readouterr().err
    assert "query.kind: cannot be 'skylin', did you mean 'skyline'?" in output
    assert "source.pth: unknown field, did you mean 'path'?" in output


@pytest.mark.parametrize("command", [["run"], ["run", "--dry-run"], ["run", "--allow", "other"], ["inputs"], ["top"]])
def test_what_a_job_names_is_not_imported_unless_its_module_is_allowed(command, job, capsys, monkeypatch):
    mark = job.parent / "touched"
    (job.parent / "evil.py").write_text(f"from pathlib import Path\nPath({str(mark)!r}).touch()\ntouch = 1\n")
    monkeypatch.chdir(job.parent)
    monkeypatch.syspath_prepend(str(job.parent))
    own = 'query: {kind: aggregate, by: city, functions: {n: "accumulate(evil.touch())"}}'
    job.write_text(re.sub("^query: .*", own, job.read_text(), flags=re.MULTILINE))
    assert main([*command, str(job)]) == 1
    assert "if you trust it, start with --allow evil" in capsys.readouterr().err
    assert not mark.exists()
    assert main([*command, "--allow", "evil", str(job)]) == 1  # what its name denotes is not a function
    assert mark.exists()
    sys.modules.pop("evil")


STREAM = """
name: offers
source: {format: rate}
query: {kind: skyline, preference: "value MAX"}
window: {time: timestamp, length: 10 seconds}
output: {format: console}
"""


@pytest.mark.usefixtures("spark")
def test_a_dry_run_of_a_stream_leaves_nothing_anywhere(tmp_path, monkeypatch):
    job = tmp_path / "job.yaml"
    job.write_text(STREAM)
    for place in ("work", "temporary"):
        (tmp_path / place).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    assert main(["run", str(job), "--dry-run"]) == 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["job.yaml", "temporary", "work"]


@pytest.mark.usefixtures("spark")
def test_a_dry_run_checks_and_writes_nothing(job, capsys):
    assert main(["run", str(job), "--dry-run"]) == 0
    output = capsys.readouterr().out
    assert "skyline of price MIN, rating MAX, one per city" in output
    assert "the job is valid" in output
    assert not (job.parent / "out").exists()


@pytest.mark.usefixtures("spark")
def test_a_batch(job, capsys):
    assert main(["run", str(job)]) == 0
    assert f"{job.parent}/out" in capsys.readouterr().out
    lines = [line for file in (job.parent / "out").glob("*.csv") for line in file.read_text().splitlines()]
    assert sorted(lines) == ["A,1.0,1.0", "A,2.0,5.0", "A,4.0,9.0", "city,price,rating"]


@pytest.mark.usefixtures("spark")
def test_a_stream_with_a_report(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job, page = tmp_path / "rate.yaml", tmp_path / "rate.html"
    job.write_text(examples.text("rate-skyline"))
    assert main(["run", str(job), "--seconds", "7", "--report", str(page)]) == 0
    assert "rows/s in" in capsys.readouterr().out
    assert "Decisions and outcomes" in page.read_text()


PRICE = {"at": "2025-01-01 09:00:00Z", "stock": "a", "price": 1}


@pytest.fixture
def daily(tmp_path):
    """A job of daily prices, and its folder with no rows yet."""
    put(tmp_path)
    path = tmp_path / "job.yaml"
    path.write_text(DAILY.format(folder=tmp_path))
    return path


@pytest.mark.usefixtures("spark")
def test_a_drain_of_daily_prices_answers_all_of_them_and_quarantines_one_of_another_year(daily, tmp_path, capsys):
    days = [f"2025-01-{day:02}" for day in range(1, 32) if (day + 1) % 7 < 5]  # the first is a Wednesday
    rows = [
        {"at": f"{day} 17:00:00Z", "stock": f"stock {k}", "price": k} for day in [*days, "2026-03-01"] for k in range(3)
    ]
    put(tmp_path, rows[:-2])
    page = tmp_path / "page.html"
    assert main(["run", str(daily), "--drain", "--report", str(page)]) == 0
    answered = rows_in(tmp_path / "out")
    assert sorted({row["at"].strftime("%Y-%m-%d") for row in answered}) == days
    assert len(answered) == 3 * len(days)
    assert [(row["at"].year, row["reason"]) for row in rows_in(tmp_path / "late")] == [(2026, "future")]
    assert "1 row quarantined: future" in capsys.readouterr().out
    assert f"{len(rows) - 2} read: {len(answered)} answered, 0 late, 1 quarantined, 0 held, 0 open" in page.read_text()


@pytest.mark.usefixtures("spark")
def test_a_job_answers_its_windows_early(daily, tmp_path, capsys):
    """The version at the end follows, although no row has come since the last early one."""
    put(tmp_path, *([PRICE | {"at": f"2025-01-01 {hour:02}:00:00Z", "price": hour}] for hour in (9, 12, 13, 18)))
    text = daily.read_text().replace('double"}', 'double", max_files_per_trigger: 1}')
    daily.write_text(f"{text}early: 2 hours\n")
    assert main(["run", str(daily), "--dry-run"]) == 0
    assert "every 2 h of event time" in capsys.readouterr().out
    assert main(["run", str(daily), "--drain"]) == 0
    assert sorted((row["version"], row["early"], row["price"]) for row in rows_in(tmp_path / "out")) == [
        (0, True, 9.0),
        (1, True, 9.0),
        (2, True, 9.0),
        (3, False, 9.0),
    ]


@pytest.mark.usefixtures("spark")
def test_a_job_writes_stays(daily, tmp_path, capsys):
    put(tmp_path, [PRICE | {"at": f"2025-01-0{day} 09:00:00Z", "price": p} for day, p in ((1, 2), (3, 1), (9, 5))])
    page = tmp_path / "page.html"
    text = daily.read_text().replace("length: 1 day", "length: 4 days, slide: 1 day")
    daily.write_text(f"{text}answers: stays\n")
    assert main(["run", str(daily), "--dry-run"]) == 0
    assert "each row once for a run of windows" in capsys.readouterr().out
    assert main(["run", str(daily), "--drain", "--report", str(page)]) == 0
    written = sorted((row["price"], row["window_count"]) for row in rows_in(tmp_path / "out"))
    assert written == [(1.0, 4), (2.0, 2), (5.0, 4)]
    assert "10 windows answered with 10 rows" in capsys.readouterr().out
    assert "2025-01-09" in page.read_text()  # the example, which is a window


COUNTED = DAILY.replace(
    '{{kind: skyline, preference: "price MIN", by: stock}}', "{{kind: aggregate, by: stock, {functions}}}"
)


@pytest.mark.usefixtures("spark")
def test_a_dry_run_shows_what_a_changed_job_keeps_and_writes_nothing(tmp_path, capsys):
    put(tmp_path, [PRICE | {"at": f"2025-01-{day:02} 17:00:00Z", "price": day} for day in range(1, 5)])
    job = tmp_path / "job.yaml"
    job.write_text(COUNTED.format(folder=tmp_path, functions="functions: {n: count(), total: sum(price)}"))
    assert main(["run", str(job)]) == 0
    job.write_text(
        COUNTED.format(folder=tmp_path, functions="functions: {n: count(), most: max(price)}, having: n > 1")
    )
    there = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    capsys.readouterr()
    assert main(["run", str(job), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "kept        'total' is removed" in lines
    assert "kept        having was None, is 'n > 1'" in lines
    assert (
        "begins      'most' is added: null in the windows that hold rows read so far; from the window 2025-01-05 00:00"
        in "\n".join(lines)
    )
    assert lines[-1] == "the job is valid; nothing was read or written"
    job.write_text(COUNTED.format(folder=tmp_path, functions="functions: {n: count()}").replace("1 day", "2 days"))
    assert main(["run", str(job), "--dry-run"]) == 1
    assert "refused     window.length was 86400000000, is 172800000000" in capsys.readouterr().out
    assert main(["run", str(job), "--dry-run", "--from", "offsets"]) == 0
    output = capsys.readouterr().out
    assert "its first window is 2025-01-06 00:00 to 2025-01-08 00:00" in output
    assert "the last of which is 2025-01-05 00:00 to 2025-01-06 00:00" in output
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == {**there, job: job.stat().st_mtime_ns}


@pytest.mark.parametrize("trigger", [None, "available now"])
def test_a_stream_whose_listener_writes_to_a_closed_pipe_stops_without_an_error_of_its_query(
    daily, tmp_path, spark, trigger
):
    """As with `skypane run JOB --drain | head`: the batch is committed, and the next start continues after it."""
    put(tmp_path, [PRICE])
    ready = building.build(parse(daily.read_text().replace("trigger: available now\n", "")), spark)
    assert isinstance(ready, sp.Job)

    def closed(_metrics: sp.BatchMetrics) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):  # also if the stream has ended before it could be stopped
        follow(lambda listen: ready.start(on_batch=listen, trigger=trigger), on_batch=closed, drain=True)
    assert spark.streams.active == []
    handle = ready.start(trigger="available now")
    handle.await_termination()
    batches = handle.recent_metrics()
    assert [metrics.rows for metrics in batches if metrics.rows] == [1]
    assert sum(metrics.windows for metrics in batches) == 0  # the window is open still


def test_a_drain_of_the_command_is_refused_while_rows_wait_unless_it_is_now(daily, tmp_path, spark):
    put(tmp_path, *([PRICE | {"at": f"2025-01-{day:02} 09:00:00Z"}] for day in range(1, 9)))
    text = daily.read_text().replace("trigger: available now\n", "")
    ready = building.build(parse(text.replace('double"}', 'double", max_files_per_trigger: 1}')), spark)
    assert isinstance(ready, sp.Job)
    seen: list[sp.BatchMetrics] = []

    def start(listen):
        def stopping(handle, metrics):
            listen(metrics)
            handle.stop()

        return start_knowing(ready, stopping)

    with pytest.raises(sp.SkypaneError, match=r"wait to be read.*--drain --now"):
        follow(start, on_batch=seen.append, drain=True)
    assert not any(metrics.windows for metrics in seen)
    assert follow(start, on_batch=seen.append, drain="now")
    assert seen[-1].totals["open"] == 0 < seen[-1].totals["answered"] < 8
    assert drained(ready)[-1].totals["read"] == 8


def test_now_without_a_drain_is_refused(daily, capsys):
    assert main(["run", str(daily), "--now"]) == 1
    assert "--now says how to drain: give --drain, too" in capsys.readouterr().err


def test_the_query_has_the_name_of_its_job_in_spark(daily, spark):
    job = parse(daily.read_text())
    ready = building.build(job, spark)
    assert isinstance(ready, sp.Job)
    log, names = running.run_log(job), []
    running.begin_log(job, log)
    display = PlainDisplay(QueryView(job.name), lambda _text: None)
    running.run_stream(job, ready, display, log, started=lambda handle: names.append(handle.query.name))
    assert names == ["prices"]


def test_a_report_in_a_folder_that_is_not_there_is_refused_before_spark_starts(daily, tmp_path, capsys):
    assert main(["run", str(daily), "--report", str(tmp_path / "none" / "page.html")]) == 1
    assert f"--report: there is no folder {tmp_path / 'none'}; create it" in capsys.readouterr().err
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.usefixtures("spark")
def test_a_run_without_a_batch_and_one_that_fails_have_a_report(daily, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["run", str(daily), "--report", str(page)]) == 0
    assert "no micro-batch was finished" in capsys.readouterr().out
    assert "no micro-batch was finished" in page.read_text()
    put(tmp_path, [PRICE])
    daily.write_text(daily.read_text().replace('"price MIN"', '"price MAX"'))
    page.unlink()
    assert main(["run", str(daily), "--report", str(page)]) == 1  # the checkpoint is of another query
    assert "The run has ended with an error: the checkpoint" in page.read_text()
