"""Conditions on the answers of streams that Spark evaluates: the answers are those of a static DataFrame of the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType
from tests.engine import test_early
from tests.engine.reading import read_by_spark
from tests.engine.test_amended import QUERIES, assert_as_defined, expected, last, plan_of
from tests.engine.test_amended import job_of as amended_job
from tests.engine.test_query_changes import Killed
from tests.engine.test_stays import IN_DRIVER
from tests.parameters import slow_but
from tests.rows import multiset
from tests.runtime.decisions.test_window_division import IN_THREADS, ON_SPARK, AnyDivision
from tests.runtime.named_answers import differing, kept, tables
from tests.runtime.streams import answers, drained, finish, late_rows, parquet_rows, read_batches, write_batches

import skypane as sp
from skypane.control.costs import Costs
from skypane.jobs.building import build
from skypane.jobs.reading import parse
from skypane.operators.stay_columns import expanded
from skypane.plan import Plan
from skypane.runtime.spark.engine import window_program
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.sinks.directory import Directory
from skypane.types import CheckpointError, ConfigError

pytestmark = pytest.mark.spark

BATCHES = late_rows(51, batches=5, rows=96)
ROWS = pa.concat_tables(BATCHES)
FEWER = [pa.concat_tables(BATCHES[number : number + 2]) for number in range(0, len(BATCHES), 2)]
"""The same rows for many queries, of which each has jobs in each batch."""
PATIENT = sp.Watermark("1 minute")
"""A policy under which no row of BATCHES is late."""
FUNCTIONS: dict[str, Any] = {"n": sp.count(), "total": sp.sum("weight"), "best": sp.max("rating"), "ids": sp.collect_list("id", order="id")}  # fmt: skip
WINDOWS: dict[str, Any] = {"time": "ts", "window": "40 seconds", "slide": "10 seconds"}
LIKE = "sensor LIKE 'a%'"

Static = dict[str, list[dict[str, Any]]]
"""Rows of the static DataFrame, by the name of the condition."""
Having = str | Callable[[], Column]
CONDITIONS: dict[str, Having] = {
    "LIKE": LIKE,
    "CASE": "CASE WHEN total > 0 THEN n > 3 WHEN sensor = 'b' THEN n > 1 END",
    "functions": "upper(coalesce(sensor, 'z')) >= 'B' AND size(ids) % 2 = 0",
    "null": "nullif(total, 0) > 1",
    "arithmetic": "n * best - total BETWEEN 3 AND 40 AND abs(total) > 1",
    "windows": "unix_timestamp(window_start) % 20 = 0 AND length(sensor) = 1",
    "constant": "length('a') = 1",
    "column": lambda: (sf.col("total") * 2 > sf.col("n")) & sf.col("sensor").isNotNull(),
    "own_function": lambda: sf.udf(lambda ids: sum(ids) % 3 > 0, BooleanType())("ids"),
}
PLACES: dict[str, Costs] = {"driver": IN_DRIVER, "threads": IN_THREADS, "spark": ON_SPARK}


def condition_of(having: Having) -> str | Column:
    return having if isinstance(having, str) else having()


def aggregate(having: Having | None = None, **more: Any) -> sp.Aggregate:
    condition: Any = None if having is None else condition_of(having)
    return sp.Aggregate("sensor", **{**FUNCTIONS, "having": condition, **more})


def job_of(
    spark: SparkSession, folder: Path, query: sp.Query | dict[str, Any], costs: Costs = IN_DRIVER, **options: Any
) -> sp.Job:
    (folder / "in").mkdir(exist_ok=True)
    own: dict[str, Any] = {
        "progress": PATIENT,
        "checkpoint": folder / "checkpoint",
        "output": folder / "out",
        "workers": sp.WorkerOptions(wlq_workers=3),
    }
    rows, given = read_batches(spark, folder / "in", ROWS.schema), WINDOWS | own | options
    job = sp.streams(rows, query, **given) if isinstance(query, dict) else sp.stream(rows, query, **given)
    return replace(job, settings=replace(job.settings, costs=costs))


def utc(rows: pa.Table) -> pa.Table:
    """Return rows with UTC as the zone of their times, which Spark labels with that of its session."""
    kinds = [pa.timestamp("us", "UTC") if pa.types.is_timestamp(field.type) else field.type for field in rows.schema]
    return rows.cast(pa.schema(list(zip(rows.column_names, kinds, strict=True))))


def bag(rows: pa.Table) -> Counter[str]:
    return multiset(utc(rows))


def by_start(rows: list[dict[str, Any]]) -> dict[Any, Counter[str]]:
    found: dict[Any, Counter[str]] = {}
    for row in rows:
        found.setdefault(row["window_start"], Counter())[repr(row)] += 1
    return found


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> Iterator[DataFrame]:
    held = spark.createDataFrame(ROWS).cache()
    yield held
    held.unpersist()


WANTED: dict[str, Having | None] = {
    **CONDITIONS, "all": None, "workers": "n > 2 AND total != 1", "few": "n > 4", "none": "length(sensor) > 1",
    "size": lambda: sf.abs("total") > 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def static(df: DataFrame) -> Static:
    """The answers of the static DataFrame that meet each condition, which are those of all that Spark keeps."""
    whole = sp.ask(df, aggregate(), **WINDOWS)
    asked = {name: sp.ask(df, aggregate(having), **WINDOWS) for name, having in WANTED.items()}
    assert {name: frame.columns for name, frame in asked.items()} == dict.fromkeys(WANTED, whole.columns)
    by_spark = kept(
        whole, {name: sf.expr("true") if one is None else condition_of(one) for name, one in WANTED.items()}
    )
    found = {name: utc(rows).to_pylist() for name, rows in tables(asked).items()}
    wanted = {name: bag(rows) for name, rows in by_spark.items()}
    assert differing({name: multiset(rows) for name, rows in found.items()}, wanted) == {}
    assert [name for name in WANTED if not found[name]] == ["none"]
    return found


def assert_no_leavings(folder: Path, out: Path) -> None:
    staged = [*(out / "_staging").rglob("*.parquet")]
    assert not staged, "what the workers wrote before the filter is removed"
    assert not [*(folder / "checkpoint" / "skypane" / "answers").rglob("*.parquet")]


@pytest.mark.parametrize(("name", "place"), slow_but([("LIKE", "driver")], product(["LIKE", "column"], PLACES)))
def test_a_stream_answers_as_a_static_dataframe(
    name: str, place: str, static: Static, spark: SparkSession, tmp_path: Path
):
    wanted = static[name]
    write_batches(tmp_path / "in", BATCHES)
    seen = drained(job_of(spark, tmp_path, aggregate(WANTED[name]), PLACES[place]))
    found = parquet_rows(tmp_path / "out")
    assert found.schema.names == [*wanted[0]]
    assert bag(found) == multiset(wanted)
    assert place in {metrics.wlq_where for metrics in seen}
    assert sum(metrics.window_rows for metrics in seen) == len(wanted)
    starts = found["window_start"].to_pylist()
    assert place != "driver" or starts == sorted(starts), "windows stay in order; tasks may share the keys of some"
    assert_no_leavings(tmp_path, tmp_path / "out")


@pytest.mark.parametrize("place", slow_but((), PLACES, ["driver", "spark"]))
def test_each_of_several_queries_has_its_own_condition(place: str, static: Static, spark: SparkSession, tmp_path: Path):
    """Every window of each is answered and counted, also one of which nothing is left."""
    write_batches(tmp_path / "in", FEWER)
    queries = {name: aggregate(having) for name, having in WANTED.items()}
    seen = drained(job_of(spark, tmp_path, queries, PLACES[place]))
    found = {name: tmp_path / "out" / name for name in WANTED}
    read = {name: bag(parquet_rows(out)) for name, out in found.items() if name != "none"}
    assert differing(read, {name: multiset(static[name]) for name in read}) == {}
    assert not [*found["none"].glob("*.parquet")]
    for name, out in found.items():
        mine = [metrics.queries[name] for metrics in seen]
        assert [one.windows for one in mine] == [metrics.queries["all"].windows for metrics in seen], name
        assert sum(one.window_rows for one in mine) == len(static[name]), name
        assert place in {metrics.wlq_where for metrics in seen}
        assert_no_leavings(tmp_path, out)
    complaint = r"^query 'b': having=\"totl LIKE 'a'\": Spark cannot evaluate it on the answers: "
    with pytest.raises(ConfigError, match=complaint):
        job_of(spark, tmp_path, {"a": aggregate(LIKE), "b": aggregate("totl LIKE 'a'")})


def test_the_conditions_are_those_that_workers_do_not_evaluate():
    assert all(aggregate(having).choice.by_spark for having in CONDITIONS.values())
    assert LOSING.choice.by_spark
    assert isinstance(LOSES, sp.Aggregate)
    assert not LOSES.choice.by_spark


def test_answers_do_not_depend_on_batches(static: Static, spark: SparkSession, tmp_path: Path):
    """The rows of all batches in one."""
    write_batches(tmp_path / "in", [ROWS])
    drained(job_of(spark, tmp_path, aggregate(LIKE)))
    assert bag(parquet_rows(tmp_path / "out")) == multiset(static["LIKE"])


SINKS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], pa.Table]]] = {
    "one_file": (lambda out: Directory(str(out), one_file=True), parquet_rows),
    "rolling": (lambda out: Directory(str(out), roll="1 hour"), parquet_rows),
    "json": (lambda out: Directory(str(out), "json"), lambda out: pa.concat_tables(map(pa_json.read_json, sorted(out.glob("part-*.json"))))),
    "csv": (lambda out: Directory(str(out), "csv"), lambda out: pa.concat_tables(map(pa_csv.read_csv, sorted(out.glob("*.csv"))))),
}  # fmt: skip


@pytest.mark.parametrize("place", slow_but(["driver"], ["driver", "spark"]))
def test_every_sink_gets_what_is_left(place: str, static: Static, spark: SparkSession, tmp_path: Path):
    """Folders of each kind, and a function."""
    write_batches(tmp_path / "in", FEWER)
    query = sp.Aggregate("sensor", n=sp.count(), total=sp.sum("weight"), having=LIKE)
    given: list[pa.Table] = []
    output: dict[str, Any] = {name: sink(tmp_path / "out" / name) for name, (sink, _) in SINKS.items()}
    output["function"] = lambda rows, _: given.append(rows.toArrow())
    drained(job_of(spark, tmp_path, dict.fromkeys(output, query), PLACES[place], output=output))
    found = {name: read(tmp_path / "out" / name) for name, (_, read) in SINKS.items()}
    found["function"] = pa.concat_tables(given)
    wanted = Counter((row["n"], row["total"]) for row in static["LIKE"])
    pairs = {name: zip(rows["n"].to_pylist(), rows["total"].to_pylist(), strict=True) for name, rows in found.items()}
    assert {name: Counter(some) for name, some in pairs.items()} == dict.fromkeys(output, wanted)


@pytest.mark.parametrize("place", slow_but(["driver"], ["driver", "spark"]))
def test_a_restart_continues_with_the_same_condition_or_another(
    place: str, static: Static, spark: SparkSession, tmp_path: Path
):
    """From none to one of Spark's, to another as a Column, to one of the workers; each holds from the next window on."""
    names = ["all", "LIKE", "LIKE", "size", "workers"]
    defined = [by_start(static[name]) for name in names]
    left, wanted = sorted(by_start(static["all"])), Counter[str]()
    for number, name in enumerate(names):
        write_batches(tmp_path / "in", BATCHES[number : number + 1] if number < 4 else BATCHES[4:], first=number)
        job = job_of(spark, tmp_path, aggregate(WANTED[name]), PLACES[place])
        change = job.changes()
        assert not change.refused
        assert bool(change.kept) == (number > 0 and name != names[number - 1])
        answered = sum(metrics.windows for metrics in (drained if number == 4 else finish)(job))
        for start in left[:answered]:  # windows are answered in order, each once
            wanted += defined[number].get(start, Counter())
        left = left[answered:]
    assert not left
    assert bag(parquet_rows(tmp_path / "out")) == wanted


@pytest.mark.parametrize("place", slow_but(["spark"], ["driver", "spark"]))
def test_a_batch_that_is_repeated_after_a_kill_has_the_same_answers(
    place: str, static: Static, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The kill comes after the sink has the answers and before the commit."""

    def end(*_: Any, **__: Any) -> Any:
        raise Killed

    write_batches(tmp_path / "in", BATCHES)
    with monkeypatch.context() as once:
        once.setattr(Ledger, "commit", end)
        with pytest.raises((Killed, sp.SkypaneError)):
            finish(job_of(spark, tmp_path, aggregate(LIKE), PLACES[place]))
    drained(job_of(spark, tmp_path, aggregate(LIKE), PLACES[place]))
    assert bag(parquet_rows(tmp_path / "out")) == multiset(static["LIKE"])


def test_windows_may_be_divided_otherwise_in_every_batch(
    static: Static, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Tasks share the keys of a window, and each file is filtered by itself."""
    monkeypatch.setattr(window_program, "WindowDivision", AnyDivision)
    write_batches(tmp_path / "in", BATCHES)
    drained(job_of(spark, tmp_path, aggregate(CONDITIONS["functions"]), ON_SPARK))
    assert bag(parquet_rows(tmp_path / "out")) == multiset(static["functions"])


JOB = """
name: large
mode: stream
source: {{format: parquet, path: "{folder}/in", schema: "{schema}"}}
window: {{time: ts, length: 40 seconds, slide: 10 seconds}}
query:
  kind: aggregate
  by: sensor
  functions: {{n: count(), total: sum(weight)}}
  having: "{having}"
progress: {{policy: watermark, delay: 1 minute}}
checkpoint: "{folder}/checkpoint"
output: {{path: "{folder}/out"}}
"""


def test_a_job_file_takes_any_condition(df: DataFrame, spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES)
    schema = "ts TIMESTAMP, sensor STRING, weight BIGINT"
    having = "CASE WHEN sensor LIKE 'a%' THEN n > 3 ELSE abs(total) > 1 END"
    job = build(parse(JOB.format(folder=tmp_path, schema=schema, having=having)), spark)
    assert isinstance(job, sp.Job)
    drained(job)
    wanted = sp.aggregate(df, by="sensor", n=sp.count(), total=sp.sum("weight"), having=having, **WINDOWS)
    assert bag(parquet_rows(tmp_path / "out")) == bag(wanted.toArrow())
    with pytest.raises(ConfigError, match=r"having=.totl LIKE"):
        build(parse(JOB.format(folder=tmp_path, schema=schema, having="totl LIKE 'a%'")), spark)


LOSES = QUERIES["aggregate that loses its rows"]
LOSING = sp.Aggregate("sensor", n=sp.count(), having="abs(n) < 12")
"""The same aggregate, whose condition Spark evaluates."""


@pytest.mark.parametrize("place", slow_but(["spark"], PLACES))
def test_late_rows_amend_what_is_left(place: str, spark: SparkSession, tmp_path: Path):
    """Each version without rows has the row that shows it: also one whose rows the condition removes."""
    batches = late_rows(32, batches=5, rows=144)
    write_batches(tmp_path / "in", batches)
    job = amended_job(spark, tmp_path, LOSING, batches[0].schema, workers=sp.WorkerOptions(wlq_workers=3))
    finish(replace(job, settings=replace(job.settings, costs=PLACES[place])))
    assert True in parquet_rows(tmp_path / "out")["empty"].to_pylist()
    assert_as_defined(tmp_path, plan_of(LOSES), batches)


@pytest.mark.parametrize(("early", "place"), slow_but([(True, "spark")], product([False, True], ["driver", "spark"])))
def test_changes_are_those_of_what_is_left(early: bool, place: str, spark: SparkSession, tmp_path: Path):
    batches = late_rows(37, batches=5, rows=144)
    options: dict[str, Any] = {"early": "5 seconds"} if early else {}
    for first, some in ((0, batches[:3]), (3, batches[3:])):
        write_batches(tmp_path / "in", some, first=first)
        late, workers = sp.Amend("12 seconds", changes=True), sp.WorkerOptions(wlq_workers=3)
        job = amended_job(spark, tmp_path, LOSING, batches[0].schema, late=late, workers=workers, **options)
        finish(replace(job, settings=replace(job.settings, costs=PLACES[place])))
    assert {"ADD", "DEL"} == set(parquet_rows(tmp_path / "out")["action"].to_pylist())
    if early:
        wanted = test_early.last(expected(test_early.early_plan(LOSES), batches))
        assert read_by_spark(spark, tmp_path / "out") == wanted
    else:
        found = read_by_spark(spark, tmp_path / "out")
        assert {start: rows for start, (_, rows) in found.items()} == last(expected(plan_of(LOSES), batches))


@pytest.mark.parametrize("place", slow_but(["spark"], ["driver", "spark"]))
def test_early_answers_are_filtered(place: str, spark: SparkSession, tmp_path: Path):
    batches = late_rows(31, batches=5, rows=144)
    write_batches(tmp_path / "in", batches)
    job = amended_job(spark, tmp_path, LOSING, batches[0].schema, early="5 seconds")
    finish(replace(job, settings=replace(job.settings, costs=PLACES[place])))
    test_early.assert_as_defined(tmp_path, test_early.early_plan(LOSES), batches)


@pytest.mark.parametrize("place", slow_but(["spark"], PLACES))
def test_stays_are_filtered(place: str, static: Static, spark: SparkSession, tmp_path: Path):
    wanted = static["functions"]
    write_batches(tmp_path / "in", BATCHES)
    seen = drained(job_of(spark, tmp_path, aggregate(CONDITIONS["functions"]), PLACES[place], answers="stays"))
    found = expanded(parquet_rows(tmp_path / "out"))
    assert bag(found.select([*wanted[0]])) == multiset(wanted)
    assert sum(metrics.window_rows for metrics in seen) == len(wanted)
    assert bag(sp.read_answers(spark, tmp_path / "out").toArrow().select([*wanted[0]])) == multiset(wanted)


REFUSED: dict[str, tuple[Having, dict[str, Any], str]] = {
    "top": (LIKE, {"query": {"top": 1, "rank_by": "n"}}, "is evaluated by Spark, after the workers have chosen the rows of top="),
    "no column": ("totl LIKE 'a'", {}, "Spark cannot evaluate it on the answers: .*totl"),
    "no SQL": ("upper(sensor", {}, "Spark cannot evaluate it on the answers: "),
    "no condition": ("upper(sensor)", {}, "Spark cannot evaluate it on the answers: "),
    "a column of the rows": ("abs(weight) > 1", {}, "Spark cannot evaluate it on the answers: .*weight"),
    "a column of a DataFrame": (lambda: sf.col("totl") > 1, {}, "Spark cannot evaluate it on the answers: .*totl"),
    "an aggregate": ("abs(sum(n)) > 3", {}, "Spark cannot evaluate it on the answers: "),
    "chance": ("rand() > 0.5", {}, "can have another value when a batch is repeated"),
    "a number of the row": (lambda: sf.monotonically_increasing_id() > sf.col("n"), {}, "can have another value when a batch is repeated"),
    "the clock": ("window_end < now()", {}, "can have another value when a batch is repeated"),
    "the day": (lambda: sf.to_date("window_end") < sf.current_date(), {}, "can have another value when a batch is"),
    "a star": ("hash(*) > 3", {}, "(reads all columns by a star|Spark cannot evaluate it)"),
    "the bounds of stays": ("hour(window_start) = 3", {"answers": "stays"}, 'reads window_start, and with answers="stays" a row'),
    "a version": ("abs(version) = 1", {"late": sp.Amend("1 day")}, "reads version, and the versions of a window"),
    "an early version": ("nullif(early, false)", {"early": "1 second"}, "reads early, and the versions of a window"),
    "an action": ("action LIKE 'A%'", {"late": sp.Amend("1 day", changes=True)}, "reads action, and the versions of a window"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_exact_is_refused_with_the_reason(name: str, spark: SparkSession, tmp_path: Path):
    having, options, complaint = REFUSED[name]
    write_batches(tmp_path / "in", BATCHES[:1])
    query = aggregate(having, **options.get("query", {}))
    with pytest.raises(ConfigError, match=f"(?s)^having=.*{complaint}"):
        job_of(spark, tmp_path, query, **{key: value for key, value in options.items() if key != "query"})


@pytest.mark.parametrize("place", slow_but(["spark"], ["driver", "spark"]))
def test_a_condition_that_fails_on_an_answer_is_named_and_may_be_changed(
    place: str, static: Static, spark: SparkSession, tmp_path: Path
):
    """In ANSI mode Spark refuses to divide by zero; nothing is written, and another condition goes on."""
    write_batches(tmp_path / "in", BATCHES)
    dividing = "100 / (n - n) > abs(1)"
    with pytest.raises(sp.SkypaneError, match=r"having='100 / \(n - n\) > abs\(1\)': Spark cannot evaluate it"):
        drained(job_of(spark, tmp_path, aggregate(dividing), PLACES[place]))
    assert not [*(tmp_path / "out").glob("*.parquet")]
    drained(job_of(spark, tmp_path, aggregate(LIKE), PLACES[place]))
    assert bag(parquet_rows(tmp_path / "out")) == multiset(static["LIKE"])


def test_a_function_is_added_beside_a_condition_that_does_not_read_it(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES[:3])
    finish(job_of(spark, tmp_path, aggregate(LIKE)))
    more: dict[str, Any] = {"least": sp.min("price")}
    assert not job_of(spark, tmp_path, aggregate(LIKE, **more)).changes().refused
    read = job_of(spark, tmp_path, aggregate("abs(least) > 1", **more))
    assert any("having, top or rank_by use 'least'" in line for line in read.changes().refused)
    with pytest.raises(CheckpointError, match=r"query\.having_by_spark\.reads was \['sensor'\], is \['least'\]"):
        read.start()
    write_batches(tmp_path / "in", BATCHES[3:], first=3)
    drained(job_of(spark, tmp_path, aggregate(LIKE, **more)))
    assert not job_of(spark, tmp_path, aggregate("abs(least) > 1", **more)).changes().refused


def test_an_earlier_query_keeps_its_condition_beside_another_one(spark: SparkSession, tmp_path: Path):
    """One that is SQL; a Column has only the program that made it."""
    write_batches(tmp_path / "in", BATCHES[:3])
    finish(job_of(spark, tmp_path, aggregate(LIKE)))
    there = {*parquet_rows(tmp_path / "out")["window_start"].to_pylist()}
    write_batches(tmp_path / "in", BATCHES[3:], first=3)
    other = job_of(spark, tmp_path, sp.TopK(2, "rating", "sensor"))
    assert not other.changes("at_offsets").refused
    drained(other, begin="at_offsets")
    rows = [row for path in (tmp_path / "out").glob("*.parquet") for row in pa.parquet.read_table(path).to_pylist()]
    later = [row for row in rows if "n" in row and row["window_start"] not in there]
    assert later, "the earlier query has answered windows beside the new one"
    assert {row["sensor"] for row in rows if "n" in row} == {"a"}


def test_the_column_of_an_earlier_query_cannot_run_beside_another_one(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES[:3])
    finish(job_of(spark, tmp_path, aggregate(lambda: sf.col("sensor").like("a%"))))
    (line,) = [
        line for line in job_of(spark, tmp_path, sp.TopK(2, "rating", "sensor")).changes("at_offsets").refused
        if "Spark Column" in line
    ]  # fmt: skip
    assert "its having= is a Spark Column" in line


def test_what_runs_without_spark_refuses_such_a_plan(spark: SparkSession, tmp_path: Path):
    plan = job_of(spark, tmp_path, aggregate(LIKE)).settings.plan
    assert isinstance(plan, Plan)
    with pytest.raises(ConfigError, match="is evaluated by Spark, and this runs without it"):
        answers(plan, BATCHES)
