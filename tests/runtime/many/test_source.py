"""Many inputs as one streaming DataFrame: each line and message once, over stops and kills, by few tasks."""

from __future__ import annotations

import json
import math
from datetime import UTC
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType
from tests.parameters import times
from tests.runtime.compressed.packing import PACK
from tests.runtime.many.killed_drivers import killed_at, rows_in_the_end
from tests.runtime.many.schema_messages import avro, offer, protobuf, record
from tests.runtime.streams import finish, parquet_rows
from tests.servers import schema_registry as registries
from tests.servers.kafka import PASSWORD

import skypane as sp
from skypane.runtime.spark.sources.many.inputs_api import inputs
from skypane.runtime.spark.sources.many.source import ManySource
from skypane.types import ConfigError


def grow(folder: Path, name: str, first: int, count: int) -> None:
    with (folder / f"{name}.csv").open("a") as file:
        file.write("".join(f"{n}\n" for n in range(first, first + count)))


def run(rows: DataFrame, folder: Path) -> list[list[dict[str, Any]]]:
    """Read all that is there, from where the run before ended; return the rows of each batch."""
    found: list[list[dict[str, Any]]] = []
    writer = rows.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer.foreachBatch(lambda batch, _: found.append(batch.toArrow().to_pylist())).start().awaitTermination()
    return found


def check_secret(secret: str, folder: Path) -> None:
    """Check that the checkpoint has files, and that none shows a secret."""
    contents = [path.read_bytes() for path in (folder / "checkpoint").rglob("*") if path.is_file()]
    assert contents
    assert not any(secret.encode() in content for content in contents)


def test_each_line_of_each_input_comes_once_with_its_name_by_two_tasks(spark, tmp_path):
    """30 inputs, one of them hot; then a stop, more lines, an input that joins, and a line that does not parse."""
    for at in range(30):
        grow(tmp_path, f"s{at:02}", 0, 400 if at == 0 else 10)
    seen: list[tuple[int, int, pa.Table]] = []

    def read() -> None:
        rows = inputs(spark, [f"{tmp_path}/*.csv"], "n long", rows_per_trigger=150, malformed_column="bad")
        writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer = writer.foreachBatch(lambda batch, number: seen.append(
            (number, batch.rdd.getNumPartitions(), batch.toArrow())))  # fmt: skip
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()

    read()
    assert set(seen[0][2]["input"].to_pylist()) == {f"{tmp_path}/s{at:02}.csv" for at in range(30)}  # no one starved
    grow(tmp_path, "s01", 10, 5)
    grow(tmp_path, "new", 0, 7)
    with (tmp_path / "s02.csv").open("a") as file:
        file.write("no number\n10\n")
    read()
    assert [number for number, _, _ in seen] == list(range(len(seen)))
    assert max(tasks for _, tasks, _ in seen) == 2
    assert all(rows.num_rows <= 150 for _, _, rows in seen)
    found = [(Path(row["input"]).stem, row["n"], row["bad"]) for _, _, rows in seen for row in rows.to_pylist()]
    counts = {f"s{at:02}": 10 for at in range(30)} | {"s00": 400, "s01": 15, "s02": 11, "new": 7}
    assert sorted((name, n) for name, n, bad in found if bad is None) == sorted(
        (name, n) for name, count in counts.items() for n in range(count)
    )
    ((name, n, bad),) = [row for row in found if row[2] is not None]
    assert (name, n) == ("s02", None)
    assert bad.startswith(f"{tmp_path}/s02.csv at byte 20: ")
    assert bad.endswith(": no number")


def test_names_and_times_without_a_zone_are_read_as_spark_reads_them(spark, tmp_path):
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    times = ["2026-07-01 00:00:00", "2026-03-29 02:30:00", "2026-10-25T02:30:00", "2026-07-01T00:00:00Z", "2100-07-01"]
    (tmp_path / "a.csv").write_text("".join([" TS , V \n", *(f"{time},NaN\n" for time in times)]))
    (tmp_path / "a.json").write_text("".join(f'{{"ts": "{time}", "v": "NaN"}}\n' for time in times))
    schema = "ts timestamp, v double"
    listed = [{"path": f"{tmp_path}/a.csv", "header": True}, {"path": f"{tmp_path}/a.json"}]
    (batch,) = run(inputs(own, listed, schema), tmp_path)
    theirs = own.read.schema(schema).json(f"{tmp_path}/a.json").toArrow().to_pylist()
    assert [row["ts"].astimezone(UTC) for row in batch] == [row["ts"].astimezone(UTC) for row in theirs] * 2
    assert all(math.isnan(row["v"]) for row in batch)


def test_topics_and_files_are_one_stream_and_no_log_shows_the_login(spark, tmp_path, kafka):
    """One topic has lost all that it had before it was found: a batch that only notes that has no tasks."""
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "reader"}
    entry = {"kafka": kafka.guarded, "topic": "joined-*", "options": {**login, "sasl.password": PASSWORD}}
    listing = tmp_path / "inputs.json"
    listing.write_text(json.dumps([entry, {"path": f"{tmp_path}/a.csv", "name": "a"}]))
    kafka.create("joined-cut")
    kafka.send("joined-cut", [b'{"n": 0}'] * 5)
    kafka.cut("joined-cut", 5)
    rows = inputs(spark, listing, "n long", malformed_column="bad")
    assert PASSWORD not in rows._jdf.queryExecution().toString()
    assert run(rows, tmp_path) in ([], [[]])
    kafka.create("joined-new", 2)
    kafka.send("joined-cut", [b'{"n": 5}', b"no json"])
    kafka.send("joined-new", [b'{"n": 6}'], 1)
    grow(tmp_path, "a", 7, 1)
    rows = inputs(spark, listing, "n long", malformed_column="bad")
    assert PASSWORD not in rows._jdf.queryExecution().toString()
    *_, found = run(rows, tmp_path)
    good = sorted((row["input"], row["n"]) for row in found if row["bad"] is None)
    assert good == [("a", 7), ("joined-cut[0]", 5), ("joined-new[1]", 6)]
    (bad,) = [row["bad"] for row in found if row["bad"] is not None]
    assert bad.startswith("joined-cut[0] at offset 6: a row must be an object")
    check_secret(PASSWORD, tmp_path)


@pytest.mark.slow
def test_compressed_files_grow_and_what_is_damaged_is_reported_once(spark, tmp_path):
    """Members of gzip and frames of Zstandard are appended between starts; one is cut off, and one does not decode."""
    path, frames = tmp_path / "a.json.gz", tmp_path / "b.json.zst"

    def append(to: Path, form: str, first: int, count: int, end: int | None = None) -> None:
        with to.open("ab") as file:
            file.write(PACK[form](b"".join(b'{"n": %d}\n' % n for n in range(first, first + count)))[:end])

    def run_again() -> list[dict[str, Any]]:
        listed = [{"path": f"{tmp_path}/*.json.*", "format": "json"}]
        found = run(inputs(spark, listed, "n long", rows_per_trigger=400, malformed_column="bad"), tmp_path)
        assert all(len(batch) <= 410 for batch in found)
        return [row for batch in found for row in batch]

    def numbers(rows: list[dict[str, Any]], of: Path) -> list[object]:
        return [row["n"] for row in rows if row["input"] == str(of) and row["bad"] is None]

    append(path, "gzip", 0, 1000)
    append(path, "gzip", 1000, 1000, end=-20)
    append(frames, "zstd", 0, 500)
    rows = run_again()
    assert numbers(rows, path) == list(range(1000))
    assert numbers(rows, frames) == list(range(500))
    append(path, "gzip", 5000, 1000)
    append(frames, "zstd", 500, 500)
    rows = run_again()
    assert numbers(rows, frames) == list(range(500, 1000))
    assert numbers(rows, path) == list(range(5000, 6000))
    (bad,) = [str(row["bad"]) for row in rows if "member at byte" in str(row["bad"])]
    assert bad.startswith(f"{path} at byte ")
    assert "is damaged, and none of its text is read" in bad
    assert run_again() == []


@pytest.mark.slow
def test_messages_of_avro_and_protobuf_are_rows_and_no_log_shows_the_login(spark, tmp_path, kafka):
    kafka.create("avro-offers")
    kafka.create("proto-offers")
    with registries.running() as registry:
        old = avro(registry.url, record([("n", "long"), ("gone", "string")]), {"n": 1, "gone": "x"})
        new = avro(registry.url, record([("town", "string"), ("n", "int")]), {"town": "Bern", "n": 2})
        kafka.send("avro-offers", [*old, *new, b'{"n": 3}', old[0][:-1], None, *old])
        kafka.send("proto-offers", protobuf(registry.url, offer(n=4, town="Chur")))
        registry.guarded = True
        login = {"url": registry.url, "basic.auth.user.info": registries.LOGIN}
        listing = [{"kafka": kafka.address, "topic": f"{one[:5]}-offers", "format": one, "registry": login}
                   for one in ("avro", "proto")]  # fmt: skip
        listing[1]["format"] = "protobuf"
        (tmp_path / "inputs.json").write_text(json.dumps(listing))
        columns = "n long, town string, ts timestamp"
        rows = inputs(spark, tmp_path / "inputs.json", columns, malformed_column="bad", rows_per_trigger=4)
        assert registries.LOGIN not in rows._jdf.queryExecution().toString()
        found = list(chain.from_iterable(run(rows, tmp_path)))
    assert sorted((row["input"], row["n"], row["town"]) for row in found if row["bad"] is None) == [
        ("avro-offers[0]", 1, None), ("avro-offers[0]", 1, None), ("avro-offers[0]", 2, "Bern"), ("proto-offers[0]", 4, "Chur"),
    ]  # fmt: skip
    wrong = sorted(row["bad"] for row in found if row["bad"] is not None)
    assert [text.partition(": ")[0] for text in wrong] == ["avro-offers[0] at offset 2", "avro-offers[0] at offset 3"]
    assert "does not begin with a byte 0" in wrong[0]
    assert "it is not of its schema 1" in wrong[1]
    check_secret(registries.LOGIN, tmp_path)


@pytest.mark.slow
def test_each_line_and_each_message_comes_once_over_kills(tmp_path, kafka):
    """Drivers are killed by SIGKILL in the middle of a stream whose files and topics grow and join."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    kills, prefix = times(3), "killed"
    listing = [f"{tmp_path}/in/*.csv", {"kafka": kafka.address, "topic": f"{prefix}-*"}]
    (tmp_path / "inputs.json").write_text(json.dumps(listing))
    expected: list[tuple[str, int]] = []
    for kill in range(kills):
        kafka.create(f"{prefix}-{kill}", 4)
        for at in range(6 + kill):
            grow(tmp_path / "in", f"s{at}", kill * 100, 100)
            expected += [(f"s{at}", n) for n in range(kill * 100, kill * 100 + 100)]
        for old, partition in product(range(kill + 1), range(4)):
            kafka.send(f"{prefix}-{old}", [b'{"n": %d}' % n for n in range(kill * 50, kill * 50 + 50)], partition)
            expected += [(f"{prefix}-{old}[{partition}]", n) for n in range(kill * 50, kill * 50 + 50)]
        line_of_batch = killed_at(f"batch {kill * 4 + 2} ", "tests.runtime.many.driver", tmp_path)
        assert int(line_of_batch.split()[2]) <= 2
    rows = rows_in_the_end("tests.runtime.many.driver", tmp_path)
    assert sorted((Path(row["input"]).stem, row["n"]) for row in rows) == sorted(expected)


@pytest.mark.slow
def test_with_readiness_the_answers_are_the_same_however_many_inputs_are_read(spark, tmp_path):
    """Three inputs in one go by one task, and a few rows of each at a time by two: sums to the last bit, lists in order."""
    rng, names = np.random.default_rng(7), ("a", "b", "c")
    for name in names:
        times = np.cumsum(rng.integers(0, 4, 40))
        (tmp_path / f"{name}.csv").write_text("".join(f"{at},{rng.normal()}\n" for at in times))
    query = sp.Aggregate("input", time="ts", all=sp.collect_list("x"), total=sp.sum("x"))
    found = []
    for readers, budget in ((1, None), (2, 25)):
        listed = [{"path": f"{tmp_path}/{name}.csv", "name": name} for name in names]
        rows = inputs(spark, listed, "at long, x double", readers=readers, rows_per_trigger=budget)
        job = sp.stream(
            rows.select(sf.timestamp_seconds("at").alias("ts"), "x", "input"), query, time="ts", window="12 s", slide="5 s",
            progress=sp.Readiness("1 s", sources=names), source="input", checkpoint=tmp_path / f"state-{readers}",
            output=tmp_path / f"out-{readers}",
        )  # fmt: skip
        seen = finish(job)
        assert not any(batch.late_rows or batch.quarantined for batch in seen)
        found.append(sorted(map(repr, parquet_rows(tmp_path / f"out-{readers}").to_pylist())))
    assert found[0] == found[1]
    assert len(found[0]) > 20


def test_a_line_that_does_not_parse_is_reported_also_where_columns_are_not_null(spark, tmp_path):
    (tmp_path / "a.json").write_text('{"n":1}\nno json\n{}\n')
    rows = inputs(spark, [f"{tmp_path}/*.json"], "n long NOT NULL", malformed_column="bad")
    found = list(chain.from_iterable(run(rows, tmp_path)))
    assert sorted(str(row["n"]) for row in found) == ["1", "None", "None"]
    assert [row["bad"][-7:] for row in found if row["bad"] is not None] == ["no json"]


@pytest.mark.parametrize(("listed", "schema", "more", "message"), [
    (["a.json"], "n long, m map<string, long>", {}, "column 'm' is map<string, int64>, which cannot be read from json"),
    (["a.csv"], "n long, l array<long>", {}, r"column 'l' is list<.*>, which cannot be read from csv"),
    ([], "n long", {}, "inputs is empty"),
    (["a.csv"], "input long", {}, "schema has a column 'input' already"),
    (["a.csv"], "n long", {"on_loss": "ignore"}, "on_loss must be one of fail, skip, got 'ignore'"),
    (["a.csv"], "n long", {"readers": 0}, "option readers of skypane-many must be a whole number above zero, got '0'"),
    (["a.csv"], "n double, ts timestamp", {"time_column": "n"},
     "time_column 'n' must be a timestamp, a date or a whole number, got double"),
])  # fmt: skip
def test_what_cannot_be_read_is_refused_at_the_call(spark, listed, schema: str, more, message: str):
    with pytest.raises(ConfigError, match=message):
        inputs(spark, listed, schema, **more)


def test_options_that_cannot_be_kept_are_refused(spark, tmp_path):
    columns = StructType().add("n", "long", nullable=False).add("input", "string")
    with pytest.raises(ConfigError, match="column 'n' is NOT NULL, but malformed rows have nulls"):
        ManySource({"inputs": '["a.csv"]'}).streamReader(columns)
    columns = StructType().add("ts", "timestamp").add("input", "string")
    with pytest.raises(ConfigError, match="option align of skypane-many must be true or false, got 'maybe'"):
        ManySource({"inputs": '["a.csv"]', "align": "maybe"}).streamReader(columns)
    path = tmp_path / "inputs.json"
    path.write_text(json.dumps({"a": 1}))
    with pytest.raises(ConfigError, match="must be a list in JSON, got dict"):
        inputs(spark, path, "n long")
