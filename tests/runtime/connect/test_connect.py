"""Streams over Spark Connect, with a real server, against runtime/local.py, which defines what they must answer."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.engine import test_amended, test_readmission
from tests.engine.test_begun_batch import folder_rows
from tests.engine.test_streams import ASKED, plan_of
from tests.runtime import continuous_streams
from tests.runtime.connect_driver import BATCHES, LOAD, SKYLINE, WINDOWS, plan
from tests.runtime.connect_features import ALL, PATIENT, PROMPT
from tests.runtime.connect_server import connect_server
from tests.runtime.forked import Parent
from tests.runtime.scenarios import Found, lines_of
from tests.runtime.streams import answers, expected, parquet_rows, windows_of, write_batches
from tests.servers.kafka import Broker

import skypane as sp
from skypane.operators.stay_columns import STAY_COLUMNS, expanded
from skypane.plan import Plan
from skypane.runtime import local

pytest.importorskip("grpc", reason="needs pip install 'skypane[connect]'")

# Slow: Spark waits ten seconds for Python beside the server to start, which is too short on a busy machine.
pytestmark = [pytest.mark.spark, pytest.mark.slow]

PREFERENCE = "price MIN, rating MAX, weight MIN"
OF_A_TABLE: Final = {
    "skyline": sp.Skyline("price MIN, rating MAX"),
    "top k": sp.TopK(5, "rating - price"),
    "k-dominant": sp.KDominant(2, PREFERENCE),
    "top delta": sp.TopDelta(4, PREFERENCE),
}
"""The queries of the scenario "static"."""

PATIENT_PLAN: Final = Plan(LOAD, WINDOWS, "ts", PATIENT)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    made = Parent("tests.runtime.connect_main")
    yield made
    made.close()


@pytest.fixture
def found(server: str, parent: Parent, tmp_path: Path) -> Found:
    """Return a function that runs a scenario of connect_main in a client of its own, and returns what it finds."""

    def run(scenario: str) -> dict[str, Any]:
        with (tmp_path / "errors.txt").open("wb") as errors:
            client = parent.fork(json.dumps([server, scenario, str(tmp_path)]), tmp_path, errors)
        client.stdin.close()
        with client.stdout:
            printed = client.stdout.read()
        assert client.wait() == 0, (tmp_path / "errors.txt").read_text()[-3000:]
        return answer_of(printed.splitlines())

    return run


def answer_of(printed: Sequence[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(printed[-1])
    return answer


def client_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}


def test_a_stream_continues_after_a_restart_and_a_drain_answers_the_rest(found: Found, tmp_path: Path):
    answer = found("restart")
    assert answer == {"batches": [[0, 1, 2], [3, 4, 5]], "drained": 6, "again": True, "rows": 360}
    wanted = expected(plan(SKYLINE), [*BATCHES, local.Drain()])
    assert windows_of(parquet_rows(tmp_path / "out")) == wanted


def test_a_handle_reads_and_requests_through_the_server(found: Found):
    answer = found("handled")
    assert answer["active"]
    workers, *others = answer["before"].splitlines()
    assert workers == "workers: PLQ 1, WLQ 1: as requested; no policy changes them (elastic=None)"
    assert {"progress", "exchange", "placement"} <= {line.partition(":")[0] for line in others}
    assert answer["after"].startswith("workers: PLQ 3, WLQ 2")
    assert answer["workers"] == {"plq": 3, "wlq": 2}
    assert answer["inputs"] == 0
    assert answer["front"].startswith("SkypaneError: this query answers windows and keeps no front")
    assert answer["scaled"] == "ConfigError: plq_workers must be a whole number of at least 1, got 0"
    assert "last batch: batch 2" in answer["shown"]
    assert (answer["ended"], answer["error"]) == (True, None)


def test_a_stop_lets_the_running_batch_end_and_the_next_start_continues(found: Found, tmp_path: Path):
    assert found("stopped") == {"ended": True, "error": None, "batches": list(range(len(BATCHES)))}
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan(SKYLINE), BATCHES)


def test_an_interrupt_of_a_start_leaves_no_query_without_a_handle(found: Found, tmp_path: Path):
    assert found("interrupted") == {"ended": "interrupted", "active": 0}
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan(SKYLINE), BATCHES)


def test_a_process_beside_the_server_that_is_killed_loses_and_repeats_nothing(found: Found, tmp_path: Path):
    answer = found("killed")
    assert answer["error"].startswith("SkypaneError: the query has failed in Spark's part")
    assert answer["batches"] == [2, 3, 4, 5]
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan(SKYLINE), BATCHES)


def test_an_error_beside_the_server_is_one_line_in_the_client(found: Found):
    answer = found("failures")
    assert answer["sink"] == "SkypaneError: the query has failed: ValueError: the table of batch 0 is locked"
    assert answer["status"] == "ValueError: the table of batch 0 is locked"
    assert answer["other query"].startswith("CheckpointError: the checkpoint")
    assert "belongs to another query" in answer["other query"]
    assert (answer["refused"] > 0, answer["same"]) == (True, 0)
    assert answer["memory"].startswith("ConfigError: output is Memory(), which over Spark Connect")
    assert answer["pickle"].startswith("ConfigError: the query cannot be sent to the Spark Connect server")


def test_a_start_without_a_late_sink_names_the_rows_kept_for_it(found: Found):
    answer = found("without_late_sink")
    assert answer["batches"] == [[0, 1], [2]]
    assert not answer["with"]
    (said,) = answer["without"]
    assert "this one has none: 1 row far ahead of the others is kept for it" in said


def test_a_continuous_skyline_and_aggregates_answer_as_without_connect(found: Found, tmp_path: Path):
    answer = found("continuous")
    updates = [update for step in continuous_streams.expected(BATCHES) for update in step]
    assert updates
    assert [tuple(update) for update in answer["updates"]] == updates
    assert answer["front"] == continuous_streams.front_of(updates)
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan(LOAD), BATCHES)


def test_several_queries_answer_over_one_stream(found: Found, tmp_path: Path):
    found("several")
    for name in ASKED:
        assert windows_of(parquet_rows(tmp_path / name)) == expected(plan_of(name), BATCHES)


def test_spark_filters_answers_by_a_text_and_a_column_is_refused(found: Found, tmp_path: Path):
    refused = found("having")["refused"]
    assert "is a Spark Column, which belongs to its session" in refused
    assert refused.endswith("write it as SQL")
    query = sp.Aggregate("sensor", n=sp.count(), having="n > 3 and sensor == 'a'")
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan(query), BATCHES)


def test_stays_are_read_as_the_rows_of_windows(found: Found, tmp_path: Path):
    found("stays")
    patient = Plan(SKYLINE, WINDOWS, "ts", PATIENT)
    wanted, written = answers(patient, [*BATCHES, local.Drain()]), parquet_rows(tmp_path / "out")
    assert written.column_names[:4] == [*STAY_COLUMNS]
    assert written.num_rows < wanted.num_rows
    for rows in (expanded(written), pq.read_table(tmp_path / "read.parquet")):
        assert ids_by_start(rows) == ids_by_start(wanted)


def ids_by_start(rows: pa.Table) -> Counter[tuple[int, int]]:
    return Counter(zip(rows["window_start"].cast(pa.int64()).to_pylist(), rows["id"].to_pylist(), strict=True))


def test_rejected_rows_come_back_repaired(found: Found, tmp_path: Path):
    batches, asked = test_readmission.batches_with_nulls(), test_amended.plan_of(test_readmission.QUERY)
    again = test_readmission.readmission(asked, [*batches[:4]])
    assert found("readmitted") == {"rows": again.rows.num_rows}
    wanted = test_amended.expected(asked, [*batches[:4], again, *batches[4:]])
    assert test_amended.versions_of(parquet_rows(tmp_path / "out")) == wanted


def test_another_query_begins_where_the_first_has_stopped(found: Found, tmp_path: Path):
    answer = found("begun")
    assert answer["rows"] == [60, 60, 60, 0]
    (begins,) = answer["begins"]
    assert "the first window of the new one is" in begins
    windows = windows_of(parquet_rows(tmp_path / "another"))
    first = windows[0][0]
    rows = [batch.filter(pc.greater_equal(batch["ts"], first)) for batch in BATCHES[3:]]
    wanted = expected(Plan(LOAD, WINDOWS, "ts", PROMPT), [*rows, local.Drain()])
    assert windows == [(start, counted) for start, counted in wanted if start >= first]


def test_a_delivered_batch_is_finished_by_the_query_as_it_was(found: Found, tmp_path: Path):
    found("unfinished")
    died, calm = (folder_rows(tmp_path / name / "out") for name in ("died", "calm"))
    assert sorted(died) == sorted(calm)


def test_a_client_serves_the_metrics_of_all_batches_also_of_a_drain(found: Found):
    answer = found("monitored")
    assert answer["seen"] == answer["recorded"] == list(range(len(BATCHES) + 1))
    assert (answer["batches"], answer["rows"]) == (len(BATCHES) + 1, ALL.num_rows)
    assert answer["windows"] == answer["answered"] > 0
    assert answer["running"] == 0


def test_a_policy_changes_the_workers(found: Found, tmp_path: Path):
    answer = found("elastic")
    assert answer["explained"].startswith("workers: rho of ")
    assert "8" in answer["refused"]
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan(SKYLINE), BATCHES)


def chosen() -> dict[str, list[int]]:
    """Return the rows that the queries over a table answer, by their ids."""
    return {name: sorted(query.lower(query.lift(ALL))["id"].to_pylist()) for name, query in OF_A_TABLE.items()}


def test_queries_over_a_table_answer_as_without_spark(found: Found, tmp_path: Path):
    answer = found("static")
    refused = answer.pop("refused")
    assert answer == chosen()
    assert_asked(tmp_path)
    assert refused.startswith("output: over Spark Connect this process need not reach the files of the server's")


def assert_asked(folder: Path) -> None:
    """Compare the windows of a table, which Spark may answer in any order, with those of the definition."""
    found = windows_of(pq.read_table(folder / "asked.parquet").sort_by("window_start"))
    assert dict(found) == dict(expected(Plan(SKYLINE, WINDOWS, "ts", PATIENT), [ALL, local.Drain()]))


def test_table_functions_answer_as_without_spark(found: Found, tmp_path: Path):
    answer = found("in_sql")
    assert answer["answers"] == chosen()
    assert_asked(tmp_path)
    assert "skypane_skyline: column 'prise' does not exist; did you mean 'price'?" in answer["error"]
    assert "Traceback" not in answer["error"]


def test_a_recording_is_read_once_over_a_restart(found: Found, tmp_path: Path):
    assert found("replayed") == {"rows": ALL.num_rows}
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(PATIENT_PLAN, [ALL, local.Drain()])


def test_many_files_are_read_once_over_a_restart(found: Found, tmp_path: Path):
    assert found("inputs") == {"inputs": ["a.csv", "b.csv", "c.csv"]}
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(PATIENT_PLAN, [ALL, local.Drain()])


def test_rows_of_sparks_rate_source_are_counted_once(found: Found, tmp_path: Path):
    rows = found("rate")["rows"]
    answers = parquet_rows(tmp_path / "out")
    assert sum(answers["n"].to_pylist()) == rows
    assert max(answers["last"].to_pylist()) == rows - 1


def test_a_topic_is_read_and_another_written_once(found: Found, kafka: Broker, tmp_path: Path):
    source, target = (f"{name}-{uuid4().hex[:8]}" for name in ("in", "out"))
    for topic in (source, target):
        kafka.create(topic)
    columns = ALL.drop_columns("sent").set_column(1, "ts", pc.strftime(ALL["ts"], "%Y-%m-%dT%H:%M:%SZ"))
    kafka.send(source, [json.dumps(row).encode() for row in columns.to_pylist()])
    (tmp_path / "broker.json").write_text(json.dumps([kafka.address, source, target]))
    assert found("topics") == {"rows": ALL.num_rows}
    wanted = answers(PATIENT_PLAN, [ALL, local.Drain()])
    messages = [json.loads(value or "") for _, value in kafka.committed(target)]
    sent = Counter((row["window_start"], row["sensor"], row["n"], row["total"]) for row in messages)
    starts = [start.isoformat() for start in wanted["window_start"].to_pylist()]
    columns_of = (wanted[name].to_pylist() for name in ("sensor", "n", "total"))
    assert sent == Counter(zip(starts, *columns_of, strict=True))


JOB: Final = """
name: over connect
source: {{format: parquet, path: "{folder}/in", schema: "{schema}", max_files_per_trigger: 1}}
query: {{kind: skyline, preference: "price MIN, rating MAX", by: [sensor]}}
window: {{time: ts, length: 50 s, slide: 20 s}}
progress: {{policy: watermark, delay: 20 seconds}}
output: {{format: parquet, path: "{folder}/out"}}
checkpoint: "{folder}/checkpoint"
trigger: available now
"""


def test_a_job_file_runs_on_the_server_of_an_address(server: str, tmp_path: Path):
    """In a client whose working folder gets the log of its metrics: the checkpoint is the server's."""
    write_batches(tmp_path / "in", BATCHES)
    (tmp_path / "client").mkdir()
    schema = "id long, ts timestamp, sensor string, price double, rating double, weight long, sent timestamp"
    (tmp_path / "job.yaml").write_text(JOB.format(folder=tmp_path, schema=schema))
    command = ["-m", "skypane", "run", tmp_path / "job.yaml", "--remote", server, "--drain"]
    lines_of(*command, cwd=tmp_path / "client", env=client_environment())
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan(SKYLINE), [*BATCHES, local.Drain()])
    assert [path.name for path in (tmp_path / "client").iterdir()] == ["checkpoint-metrics"]


def test_expressions_are_computed_by_the_server(found: Found, tmp_path: Path):
    alike = dict.fromkeys(("skyline", "aggregate", "plain"), True)
    assert found("expressions") == {**alike, "batches": len(BATCHES)}
    assert parquet_rows(tmp_path / "out").num_rows
