"""Job files: what is right is read, and each thing that is wrong is one sentence that names the field."""

import math
import sys
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pydantic import ValidationError
from tests.jobs.complaints import table_of

import skypane as sp
from skypane.control.elasticity.options import Fuzzy, Model, Threshold
from skypane.examples.traffic import QueueEnd
from skypane.jobs import parse, read
from skypane.jobs.building import options
from skypane.jobs.description import settings
from skypane.jobs.document import data_of
from skypane.jobs.examples import find
from skypane.jobs.user_code import AllowedModules
from skypane.operators.aggregates.function_text import function_of
from skypane.operators.fronts.continuous_skyline import ContinuousSkyline
from skypane.operators.topk import TopK
from skypane.preference import Score
from skypane.preference.written import expressions
from skypane.progress import AqKSlack, KSlack, Readiness, Watermark
from skypane.reporting.grids import GridSpec
from skypane.types import ConfigError
from skypane.windows import Windows

STREAM = """
name: offers
source: {format: rate}
query: {kind: skyline, preference: "price MIN, rating MAX", by: city}
window: {time: ts, length: 10 seconds, slide: 1 second}
output: {path: out}
checkpoint: cp
"""


def changed(**parts):
    """The text of a sound job with some top-level sections replaced; None removes one."""
    data = yaml.safe_load(STREAM) | parts
    return yaml.safe_dump({name: value for name, value in data.items() if value is not None})


def complaints(**parts):
    with pytest.raises(ConfigError) as caught:
        parse(changed(**parts), "job.yaml")
    return [line.removeprefix("job.yaml: ") for line in str(caught.value).splitlines()]


def test_a_sound_job():
    job = parse(STREAM)
    (only,) = job.each_query
    assert (job.mode, only.query.by, only.output.format) == ("stream", ("city",), "parquet")
    assert job.window is not None
    assert job.window.build() == Windows(10_000_000, 1_000_000)


def test_jobs_are_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        parse(STREAM).name = "other"


@pytest.mark.parametrize(
    ("query", "built"),
    [
        ({"kind": "skyline", "preference": "price MIN"}, "Skyline"),
        ({"kind": "k_dominant", "preference": "price MIN, rating MAX", "k": 2}, "KDominant"),
        ({"kind": "top_delta", "preference": "price MIN, rating MAX", "delta": 10}, "TopDelta"),
        (
            {"kind": "aggregate", "by": "shop", "time": "ts", "functions": {"n": "count()", "last": "last(paid)"}},
            "Aggregate",
        ),
        ({"kind": "top_k", "score": "rating - price", "k": 3, "by": ["a", "b"]}, "TopK"),
    ],
)
def test_the_four_queries(query, built):
    assert type(parse(changed(query=query)).each_query[0].build()).__name__ == built


CONTINUOUS = {"kind": "continuous_skyline", "preference": "price MIN, rating MAX", "by": "city"}
LAST_TEN_SECONDS = {"time": "ts", "length": "10 seconds"}


def test_a_continuous_skyline_covers_the_last_window():
    job = parse(changed(query=CONTINUOUS | {"every": "2 seconds"}, window=LAST_TEN_SECONDS, front={"path": "current"}))
    assert job.each_query[0].build() == ContinuousSkyline("price MIN, rating MAX", "ts", 10_000_000, "city")
    given = options(job)
    assert (given["window"], given["every"], given["front"]) == ("10 seconds", "2 seconds", "current")
    assert not given.keys() & {"slide", "offset", "elastic"}
    shown = dict(settings(job))
    assert shown["query"].startswith("skyline of price MIN, rating MAX over the last 10 seconds, one per city")
    assert shown["window"] == "the last 10 s of ts, updates every 2 seconds"
    assert shown["front"] == "current"


MISFITS = """
window: null
  window: the time for which a row counts
window: {time: ts, length: 10 seconds, slide: 1 second}
  window.slide: query.every sets how often
window: {time: ts, length: 10 seconds, offset: 1 second}
  window.offset: query.every sets how often
query: {kind: continuous_skyline, preference: "price MIN, rating MAX", by: city, every: 11 seconds}
  query.every: at most the window, '10 seconds'
query: {kind: continuous_skyline, preference: "price MIN, rating MAX", by: city, every: soon}
  query.every: soon
query: {kind: continuous_skyline, preference: city DIFF, by: city}
  query: need a product of criteria
workers: {elastic: {policy: threshold}}
  workers.elastic: is not for query.kind continuous_skyline
{query: {kind: skyline, preference: price MIN}, front: {path: x}}
  front: continuous_skyline
{mode: batch, checkpoint: null, front: {path: x}}
  front: is only for mode stream
{mode: batch, checkpoint: null, query: {kind: continuous_skyline, preference: "a MIN, b MAX", every: 1 second}}
  query.every: is only for mode stream
"""


@pytest.mark.parametrize(("parts", "part_of_complaint"), table_of(MISFITS))
def test_what_does_not_fit_a_continuous_skyline_is_named(parts, part_of_complaint):
    (complaint,) = complaints(**({"query": CONTINUOUS, "window": LAST_TEN_SECONDS} | yaml.safe_load(parts)))
    field, _, problem = part_of_complaint.partition(": ")
    assert complaint.startswith(f"{field}: "), complaint
    assert problem in complaint


def output_of(name, given):
    return options(parse(changed(output={"format": name, "options": given})))["output"]


def test_a_topic_is_an_output_with_its_key_and_the_clients_options():
    ssl = {"security.protocol": "SSL"}
    written = {"servers": "h:1", "topic": "t", "key": ["window_start", "city"], "options": ssl}
    wanted = sp.Kafka("h:1", "t", key="window_start,city", options=ssl, timeout="30 seconds")
    assert output_of("kafka", written) == wanted


def test_a_table_of_a_database_is_an_output_with_its_key_and_login():
    login = {"user": "writer", "password": "$WRITERS_PASSWORD"}
    written = {"url": "postgresql://h/db", "table": "answers", "key": ["window_start", "city"], "options": login}
    wanted = sp.Jdbc("postgresql://h/db", "answers", key="window_start,city", options=login)
    assert output_of("jdbc", written) == wanted
    (complaint,) = complaints(output={"format": "jdbc", "options": written | {"options": {"password": "hunter2"}}})
    assert complaint.startswith('output: url postgresql://h/db: option password must be "$NAME"')
    assert "hunter2" not in complaint
    (complaint,) = complaints(output={"format": "jdbc", "options": written | {"options": ["hunter2"]}})
    assert "hunter2" not in complaint


def test_a_table_of_iceberg_is_an_output_with_its_catalog():
    place = {"uri": "https://catalog.example", "credential": "$CATALOG_CREDENTIAL", "rest.sigv4-enabled": True}
    written = {"table": "shop.answers", "catalog": "prod", "timeout": "5 minutes", "options": place}
    wanted = sp.Iceberg("shop.answers", catalog="prod", timeout="5 minutes", options=place)
    assert output_of("iceberg", written) == wanted
    (complaint,) = complaints(output={"format": "iceberg", "options": written | {"options": {"credential": "hunter2"}}})
    assert complaint.startswith('output: catalog prod: option credential must be "$NAME"')
    assert "hunter2" not in complaint
    (complaint,) = complaints(output={"format": "iceberg", "options": written | {"options": {"py-io-impl": "os.path"}}})
    assert "option py-io-impl names code" in complaint
    (complaint,) = complaints(output={"format": "iceberg", "options": {"catalog": "prod"}})
    assert complaint.startswith("output.options.table: is missing"), complaint


def test_a_job_without_a_front_is_described_as_before_there_were_any():
    assert "front" not in parse(STREAM).summary()


def test_top_k_takes_the_largest_by_default():
    given = {"kind": "top_k", "score": "price", "k": 3, "largest": False}
    assert parse(changed(query=given)).each_query[0].build() == TopK(3, Score.of("price"), (), largest=False)


@pytest.mark.parametrize(
    ("progress", "built"),
    [
        ({"policy": "watermark", "delay": "10 minutes"}, Watermark("10 minutes")),
        ({"policy": "kslack"}, KSlack()),
        ({"policy": "kslack", "max_slack": "2 hours", "max_ahead": "1 hour"}, KSlack("2 hours", max_ahead="1 hour")),
        ({"policy": "aqkslack", "max_drop": 0.02}, AqKSlack(0.02)),
        ({"policy": "aqkslack", "max_amended": 0.05}, AqKSlack(max_amended=0.05)),
        (
            {"policy": "kslack", "clocks": "align", "max_clock_offset": "5 minutes"},
            KSlack(clocks="align", max_clock_offset="5 minutes"),
        ),
        ({"policy": "readiness", "idle_after": "1 hour"}, Readiness("1 hour")),
        ({"policy": "readiness", "idle_after": 5, "max_behind": "1 hour"}, Readiness(5, max_behind="1 hour")),
    ],
)
def test_the_policies_keep_their_own_defaults(progress, built):
    assert options(parse(changed(progress=progress)))["progress"] == built


@pytest.mark.parametrize(("elastic", "built"), [
    ({"policy": "fuzzy", "max_workers": 16}, Fuzzy(max_workers=16)),
    ({"policy": "fuzzy", "every": "10 s", "catch_up": None}, Fuzzy(every="10 s", catch_up=None)),
    ({"policy": "model", "latency": "5 s", "dry_run": True, "every": 4}, Model(latency="5 s", dry_run=True, every=4)),
    ({"policy": "threshold", "max_workers": 8, "min_plq": 2, "target": 0.7}, Threshold(max_workers=8, min_plq=2, target=0.7)),
    ({"policy": "fuzzy", "executors": "follow"}, Fuzzy(executors="follow")),
])  # fmt: skip
def test_the_elastic_policies_keep_their_own_defaults(elastic, built):
    job = parse(changed(workers={"elastic": elastic, "plq_workers": 3}))
    assert options(job)["workers"] == sp.WorkerOptions(elastic=built, plq_workers=3)
    assert dict(settings(job))["workers"] == f"3 at pane level at first, then by {built}"


@pytest.mark.parametrize(
    ("parts", "field", "option"),
    [
        ({"source": {"format": "csv", "path": "in", "schema": "a double", "header": True}}, "source.header", "header"),
        ({"output": {"format": "kafka", "topic": "best"}}, "output.topic", "topic"),
    ],
)
def test_an_option_in_place_of_a_field_is_recognised(parts: dict[str, Any], field: str, option: str):
    (complaint,) = complaints(**parts)
    assert complaint.startswith(f"{field}: unknown field, use one of format, ")
    assert complaint.endswith(f"; an option of the format is written as options: {{{option}: ...}}")


WRONG = """
source: {format: rate, pth: 1}
  source.pth: unknown field, did you mean 'path'?
source: {format: parquet}
  source.path: is missing; format parquet needs it
source: {format: csv, path: in}
  source.schema: is missing; format csv needs one such as 'ts timestamp, price double'
source: {format: rate, max_files_per_trigger: 3}
  source.max_files_per_trigger: is only for files (parquet, csv, json, orc, text), but the format is 'rate'
source: null
  source: is missing
source: rate
  source: must be a section with fields of its own, got 'rate'
sorce: {format: rate}
  sorce: unknown field, did you mean 'source'?
query: {kind: skylin}
  query.kind: cannot be 'skylin', did you mean 'skyline'?
query: {k: 3}
  query.kind: is missing; it must be one of aggregate, k_dominant, top_delta, skyline, top_k, continuous_skyline
query: {kind: top_k, score: a, k: 0}
  query.k: should be greater than 0, got 0
query: {kind: top_k, k: 3}
  query.score: is missing
query: {kind: top_k, k: 3, score: a, scores: b}
  query.scores: unknown field, did you mean 'score'?
query: {kind: skyline, preference: price MIN, delta: 3}
  query.delta: unknown field, use one of by, kind, preference
query: {kind: k_dominant, preference: "a MIN, b MAX", k: 3}
  query: need 1 <= k <= 2, the number of criteria in low('a') * high('b'), got k=3
window: {time: ts, length: 1 hour, slide: 2 hours}
  window: need 0 < slide <= length, got slide '2 hours', length '1 hour'
window: null
  window: is missing; without a window a stream would never answer
progress: {policy: aqkslack, max_drop: 2}
  progress: max_drop is a share of rows such as 0.01, need 0 < max_drop < 1, got 2.0
progress: {policy: watermark}
  progress.delay: is missing
output: {format: parket, path: o}
  output.format: cannot be 'parket', did you mean 'parquet'?
output: {format: csv}
  output.path: is missing; format csv needs it
output: {format: kafka}
  output.options.servers: is missing; format kafka needs it
output: {format: kafka, options: {servers: h:1, topics: t}}
  output.options.topics: is not an option of format kafka; did you mean 'topic'?
output: {format: kafka, options: {servers: h, topic: t}}
  output: servers must be host:port of a broker of Kafka, got 'h'
output: {format: console, path: o}
  output.path: is not for format console
output: {format: console, roll: 5 minutes}
  output.roll: is not for format console, which has no files
output: {path: o, roll_bytes: 9}
  output.roll: is missing; roll_bytes needs the longest time for which answers wait
output: {path: o, roll: 0 s}
  output: roll must be longer than 0, got '0 s': without it each batch has its file
{mode: batch, checkpoint: null, output: {path: o, roll: 5 minutes}}
  output.roll: is only for mode stream; Spark writes the answers of a batch at once
output: {path: o, if_exists: overwrite}
  output.if_exists: is only for mode batch; a stream resumes from its checkpoint
{checkpoint: null, output: {format: kafka, options: {servers: h:1, topic: t}}}
  checkpoint: is missing; a stream that has an output of kafka needs a folder to resume from
checkpoint: null
  checkpoint: is missing; a stream that writes to 'out' needs a folder to resume from
invalid: drop
  invalid: is only for mode batch; a stream quarantines and counts such rows, see late
amend: {within: 0 s}
  amend: Amend(within) must be longer than 0, got '0 s'
amend: {max_bytes: 9}
  amend.within: is missing
{mode: batch, checkpoint: null, amend: {within: 1 day}}
  amend: is only for mode stream; a batch has all rows before it answers
early: 0 s
  early: must be longer than 0, got '0 s'
{mode: batch, checkpoint: null, early: 9 s}
  early: is only for mode stream; a batch has all rows before it answers
{query: {kind: continuous_skyline, preference: price MIN}, window: {time: ts, length: 1 hour}, early: 9 s}
  early: is not for query.kind continuous_skyline; query.every sets how often updates are written
answers: stay
  answers: cannot be 'stay', did you mean 'stays'?
{answers: stays, amend: {within: 1 day}}
  answers: cannot be stays with amend, which answers windows again; leave one out
{answers: stays, early: 9 s}
  answers: cannot be stays with early, which answers windows again; leave one out
{answers: stays, output: {path: /out, format: json}}
  answers: cannot be stays with output.format json; it can with parquet and console
{mode: batch, checkpoint: null, answers: stays}
  answers: is only for mode stream; a batch has all rows before it answers
{query: {kind: continuous_skyline, preference: price MIN}, window: {time: ts, length: 1 hour}, answers: stays}
  answers: is not for query.kind continuous_skyline, whose updates say when a row stays
mode: batch
  checkpoint: is only for mode stream; a batch has all rows before it answers
workers: {splitting: PB_R}
  workers.splitting: cannot be 'PB_R', did you mean 'PB_RR'?
workers: {elastic: {policy: fuzy}}
  workers.elastic.policy: cannot be 'fuzy', did you mean 'fuzzy'?
workers: {elastic: {policy: fuzzy, max_workers: 1}}
  workers.elastic: max_workers must be at least 2, one for each stage, got 1
workers: {elastic: {policy: fuzzy, every: 2.5}}
  workers.elastic.every: must be a whole number, or a length of time such as '10 seconds', got 2.5
{mode: batch, checkpoint: null, workers: {elastic: {policy: fuzzy}}}
  workers.elastic: is only for mode stream; a batch is one Spark job
late: {format: parquet}
  late.path: is missing; format parquet needs it
late: {path: late, if_exists: overwrite}
  late.if_exists: is only for the section output of a batch
name: ""
  name: String should have at least 1 character, got ''
derive: [a]
  derive: must be a section with fields of its own, got ['a']
"""


@pytest.mark.parametrize(("parts", "complaint"), table_of(WRONG))
def test_what_is_wrong_is_named(parts, complaint):
    assert complaints(**yaml.safe_load(parts)) == [complaint]


def test_a_preference_that_cannot_be_read_is_named():
    (found_complaint,) = complaints(query={"kind": "skyline", "preference": "price CHEAP"})
    assert found_complaint.startswith("query.preference: ")
    assert "CHEAP" in found_complaint
    (found_complaint,) = complaints(query={"kind": "top_k", "k": 1, "score": "a --b"})
    assert found_complaint.startswith("query.score: score 'a --b'")
    (found_complaint,) = complaints(window={"time": "ts", "length": "1 hou"})
    assert found_complaint.startswith("window.length: length of time: unknown unit 'hou' in '1 hou'")


def test_all_complaints_come_at_once():
    assert len(complaints(source={"format": "rate", "pth": 1}, query={"kind": "x"}, window={"time": "ts"})) == 3


def test_an_error_names_the_place_of_invalid_yaml():
    with pytest.raises(ConfigError, match=r"^job.yaml, line 2, column 1: not YAML: "):
        parse("a: [1\n", "job.yaml")
    with pytest.raises(ConfigError, match="a job must be a mapping of fields such as source and query, got list"):
        parse("- a", "job.yaml")


def test_a_file_is_read_and_a_missing_one_named(tmp_path):
    path = tmp_path / "offers.yaml"
    path.write_text(STREAM)
    assert read(path) == parse(STREAM)
    with pytest.raises(ConfigError, match=r"cannot read the job file .*none.yaml: No such file"):
        read(tmp_path / "none.yaml")


LAUGHS = "\n".join(
    ["a0: &a0 [lol]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)), "derive: *a11"]
)
MERGES = "\n".join(
    ["a0: &a0 {k: v}", *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 12))]
)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (LAUGHS, "contains more than 50,000 values"),
        (MERGES, "contains more than 50,000 values"),
        ("a: &a [*a]", "more than 30 nested sections"),
        ("[" * 5_000, "more than 30 nested sections"),
        ("a: " + "{a: " * 40 + "1" + "}" * 40, "more than 30 nested sections"),
        ("name: !!timestamp 2024-13-45", "cannot be read: month must be in 1..12"),
        ("name: " + "1" * 5_000, "cannot be read: "),
        ("a: 1\n---\nb: 2", "not YAML: but found another document"),
        ("a: 1\nb: \x1b[31m", "line 2: not YAML: it has the character U+001B; remove it"),
    ],
)
def test_documents_that_no_one_writes_are_refused_at_once(text, complaint):
    with pytest.raises(ConfigError) as caught:
        parse(text, "job.yaml")
    assert str(caught.value).startswith("job.yaml")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            STREAM + "query: {kind: skyline, preference: a MIN}",
            "job.yaml, line 8: 'query' is there twice, first in line 4; ",
        ),
        ("query: {functions: {n: count(), n: sum(a)}}", "job.yaml, line 1: 'n' is there twice, first in line 1; "),
        ("- inputs:\n  - {csv: a,\n     'csv': b}", "job.yaml, line 3: 'csv' is there twice, first in line 2; "),
    ],
)
def test_a_key_that_is_there_twice_is_refused_with_both_lines(text: str, complaint: str):
    with pytest.raises(ConfigError) as caught:
        parse(text, "job.yaml")
    assert str(caught.value).startswith(complaint)


def test_values_without_quotes_are_those_that_stand_there():
    """By version 1.1 of YAML these are false, true, 90, 8, 1_000 and a date."""
    written = ["no", "on", "1:30", "010", "1_000", "2026-01-01", "0x10", ".5", "y"]
    data = data_of("\n".join(f"- {one}" for one in written), "job.yaml")
    assert data == written
    assert data_of("[true, False, 12, -1, 1.50, 1e3, ~, null]", "job.yaml") == [
        True,
        False,
        12,
        -1,
        1.5,
        1e3,
        None,
        None,
    ]


@pytest.mark.parametrize("value", [1.5, 7, True])
def test_a_number_in_place_of_a_text_is_refused_with_the_remedy(value: object):
    wanted = f"name: must be a text, got {value!r}; put it in quotes"
    assert complaints(name=value) == [wanted]


def test_an_alias_may_repeat_a_section():
    text = STREAM.replace("{path: out}", "&place {path: out}") + "late: *place\n"
    job = parse(text)
    assert job.late is not None
    assert (job.late.path, job.each_query[0].output.path) == ("out", "out")


def test_a_file_in_another_encoding_is_named_with_the_line(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_bytes("name: a\nquestion: café?\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"job\.yaml, line 2: byte 0xe9 is not UTF-8; save the file as UTF-8"):
        read(path)


def test_a_file_too_large_to_be_a_job_is_not_read(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"#" * (1 << 20))
    with pytest.raises(ConfigError, match="is larger than 256 KiB"):
        read(path)


@pytest.mark.parametrize(
    "parts",
    [
        {"late": {"format": "kafka", "options": ["hunter2"]}},
        {"source": {"format": "skypane-many", "schema": "ts timestamp", "inputs": [{"password": "hunter2"}]}},
    ],
)
def test_a_value_that_may_be_a_secret_is_not_shown(parts: dict[str, Any]):
    (complaint, *_) = complaints(**parts)
    assert "got (not shown)" in complaint
    assert "hunter2" not in complaint


def test_late_rows_go_to_any_sink():
    job = parse(changed(late={"format": "console", "rows": 5}))
    assert options(job)["late"] == sp.Console(rows=5)
    assert dict(settings(job))["late rows"] == "console"


@pytest.mark.parametrize("name", ["j" * 5_000, "job\0.yaml"])
def test_a_name_that_no_file_can_have_is_an_error_like_any_other(name):
    with pytest.raises(ConfigError, match="cannot read the job file j"):
        find(name)


@pytest.mark.parametrize(
    "parts",
    [
        {"name": "n" * 100_000},
        {"n" * 100_000: 1},
        {"mode": "m" * 100_000},
        {"query": {"kind": "k" * 100_000}},
        {"query": {"kind": "skyline", "preference": "p" * 100_000}},
        {"query": {"kind": "top_k", "k": 1, "score": "a --" + "b" * 100_000}},
        {"window": {"time": "ts", "length": "1" * 100_000}},
    ],
)
def test_errors_repeat_only_the_beginning_of_a_long_value(parts):
    (complaint,) = complaints(**parts)
    assert len(complaint) < 1_000


@pytest.mark.parametrize(
    ("functions", "complaint"),
    [
        ({"n": "sums(amount)"}, "unknown aggregate function 'sums'; there are accumulate, approx_count_distinct, "),
        ({"n": "percentile(amount, half * 2)"}, "'half * 2' is neither a column nor a number"),
        ({"n": "sum()"}, "missing a required argument: 'column'; write sum(column, where?)"),
        ({"n": "sum"}, "'sum' is not an aggregate function: write one such as sum(amount)"),
        ({"n": "count(where=amount >)"}, "is not an aggregate function"),
        ({"last": "last(paid)"}, "needs an order of rows: name its column as order="),
        ({}, "need at least one aggregate function"),
        (
            {"n": "accumulate(QueueEnd(cab))"},
            "'QueueEnd' has no module; write it with its module, as in my_module.QueueEnd",
        ),
        ({"n": "accumulate(skypane.examples.no_such.QueueEnd(cab))"}, "cannot import 'skypane.examples.no_such'"),
        ({"n": "accumulate(skypane.examples.traffic.QueueEn())"}, "has no 'QueueEn', did you mean 'QueueEnd'?"),
        ({"n": "accumulate(skypane.examples.traffic.QueueEnd(cab))"}, "missing 2 required positional arguments"),
        ({"n": "accumulate(skypane.examples.traffic.dataclass(x))"}, "is not defined in 'skypane.examples.traffic'"),
        (
            {"n": "in_order(skypane.examples.traffic.QueueEnd, x, returns=integer, order=at)"},
            "returns=integer is not an Arrow type",
        ),
    ],
)
def test_an_invalid_aggregate_gives_an_error_of_one_sentence(functions, complaint):
    (found,) = complaints(query={"kind": "aggregate", "by": "shop", "functions": functions})
    assert complaint in found


def test_a_column_of_an_answer_has_any_name():
    names = ["by", "time", "required", "having", "top", "rank_by", "functions", "kind", "window", "self"]
    functions = dict.fromkeys(names, "count()")
    query: Any = parse(changed(query={"kind": "aggregate", "by": "shop", "functions": functions})).each_query[0].build()
    assert sorted(name for name, _ in query.functions) == sorted(names)


@pytest.mark.parametrize("function", [
    "accumulate(evil.touch())",
    "accumulate(evil.nothing)",
    "sum(evil.touch())",
    "in_order(evil.touch(), price, returns=int64)",
    "accumulate(skypane.examples.traffic.QueueEnd(evil.touch()))",
    "accumulate(skypane.examples.traffic.np.save('touched', price))",
    "approx_quantile(price, error=evil.touch())",
    "avg(evil.touch.__call__())",
])  # fmt: skip
def test_a_job_file_runs_no_code_that_was_not_allowed(function, tmp_path, monkeypatch):
    """Neither is a module imported, nor anything in it called."""
    mark = tmp_path / "touched"
    text = f"from pathlib import Path\nPath({str(mark)!r}).touch()\nnothing = touch = Path({str(mark)!r}).touch\n"
    (tmp_path / "evil.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path, str(tmp_path)])
    with pytest.raises(ConfigError):
        parse(changed(query={"kind": "aggregate", "by": "shop", "functions": {"n": function}}), allowed=["other"])
    assert not mark.exists()
    assert "evil" not in sys.modules


def test_a_condition_that_the_workers_cannot_read_is_sql_and_runs_no_code():
    function = "sum(price, where=evil.touch())"
    job = parse(changed(query={"kind": "aggregate", "by": "shop", "functions": {"n": function}}), allowed=["other"])
    assert [written.sql for written in expressions(job.each_query[0].build())] == ["evil.touch()"]
    assert "evil" not in sys.modules


@pytest.mark.parametrize(
    "text",
    [
        'name: "a\\0b"',
        'name: a\nwhere: "price > 1\\0"',
        'checkpoint: "/data/\\0"',
        'query: {kind: skyline, preference: "price MIN\\0"}',
        '"a\\0": 1',
    ],
    ids=["name", "where", "checkpoint", "preference", "key"],
)
def test_a_nul_is_named_with_its_line(text):
    with pytest.raises(ConfigError, match=r"^job.yaml, line \d: .* contains a NUL character"):
        parse(text, "job.yaml")


def test_what_accumulates_must_be_an_accumulator():
    with pytest.raises(ConfigError, match=r"accumulate needs an sp.Accumulator, got 3.14"):
        function_of("accumulate(math.pi)", AllowedModules(frozenset(["math"])))


def test_a_refusal_explains_how_to_allow_a_module():
    (found,) = complaints(query={"kind": "aggregate", "functions": {"n": "accumulate(my.own.Range(price))"}})
    assert "if you trust it, start with --allow my.own" in found


def test_a_function_as_a_text_is_the_one_that_python_makes():
    texts = {
        "accumulate(skypane.examples.traffic.QueueEnd(cab, speed, at, vehicles=2), where=speed > 0)": sp.accumulate(
            QueueEnd("cab", "speed", "at", vehicles=2), where="speed > 0"
        ),
        "in_order(math.fsum, x, 'a b', returns=int64, order=at)": sp.in_order(
            math.fsum, "x", "a b", returns=pa.int64(), order="at"
        ),
        "count_if(paid == 'card' and amount > 10)": sp.count_if("paid == 'card' and amount > 10"),
        "avg(amount, where=paid == 'card')": sp.avg("amount", where="paid == 'card'"),
        "count_if(upper(shop) == 'A')": sp.count_if("upper(shop) == 'A'"),
        "count(*, where=\"shop LIKE 'a%'\")": sp.count(where="shop LIKE 'a%'"),
        "sum(amount * 2)": sp.sum("amount * 2"),
        "sum((-amount))": sp.sum("-amount"),
        "max_by(paid.by, paid.at)": sp.max_by("paid.by", "paid.at"),
        "max_by(upper( shop ), amount/2)": sp.max_by("upper( shop )", "amount/2"),
        "last(amount % 3, order=-at, where=paid == 'card')": sp.last("amount % 3", order="-at", where="paid == 'card'"),
        "sum('CAST(amount AS INT)')": sp.sum("CAST(amount AS INT)"),
        "sum('unit price', where='amount > 1')": sp.sum("unit price", where="amount > 1"),
        "count(*)": sp.count(),
        "count( * , where=speed > 0)": sp.count(where="speed > 0"),
        "count('*')": sp.count(),
        "percentile(amount, [0.5, 0.9])": sp.percentile("amount", [0.5, 0.9]),
        "percentile_approx(amount, 0.5, 100)": sp.percentile_approx("amount", 0.5),
        "collect_set(paid)": sp.collect_set("paid"),
        "max_by(name, price)": sp.max_by("name", "price"),
        "approx_quantile(amount, [0.5, 0.9], error=0.05)": sp.approx_quantile("amount", [0.5, 0.9], error=0.05),
    }
    for text, function in texts.items():
        assert function_of(text, AllowedModules(frozenset(["math"]))) == function, text


def test_what_is_named_may_lie_in_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "rises_of_mine.py").write_text("def longest(rows):\n    return rows.num_rows\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    functions = {"n": "in_order(rises_of_mine.longest, price, returns=int64, order=ts)"}
    query = (
        parse(changed(query={"kind": "aggregate", "functions": functions}), allowed=["rises_of_mine"])
        .each_query[0]
        .build()
    )
    rows = pa.table({"ts": [1, 2], "price": [1.0, 2.0]})
    assert query.lower(query.lift(rows))["n"].to_pylist() == [2]


GRID = {"kind": "aggregate", "by": ["east", "north"], "functions": {"n": "count()", "dearest": "max(price)"}}


def test_a_map_is_drawn_of_keys_and_functions():
    job = parse(changed(query=GRID, map={"x": "east", "y": "north", "shade": {"n": "high"}, "mark": "dearest"}))
    assert job.map is not None
    assert job.map.build() == GridSpec("east", "north", {"n": "high"}, "dearest")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"x": "eas"}, "map.x: 'eas' is not a column of query.by, did you mean 'east'?"),
        ({"shade": {"spread": "high"}}, "map.shade: 'spread' is not a function of the query, use one of dearest, n"),
        ({"mark": "dearst"}, "map.mark: 'dearst' is not a function of the query, did you mean 'dearest'?"),
        ({"shade": {"n": "dark"}}, "map.shade.n: cannot be 'dark', use one of high, low"),
    ],
)
def test_a_map_that_cannot_be_drawn_gives_an_error_of_one_sentence(changes, complaint):
    drawn = {"x": "east", "y": "north", "shade": {"n": "high"}} | changes
    assert complaints(query=GRID, map=drawn) == [complaint]
