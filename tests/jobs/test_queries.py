"""The section `queries` of a job file: several queries over the same rows, and each error with its path."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.jobs.complaints import table_of

import skypane as sp
from skypane.jobs import JobFile, parse
from skypane.jobs.building import options
from skypane.jobs.description import settings
from skypane.types import ConfigError
from skypane.windows import Windows

SECOND = 1_000_000
STREAM: dict[str, Any] = {
    "name": "offers",
    "source": {"format": "rate"},
    "window": {"time": "ts", "length": "10 seconds", "slide": "1 second"},
    "queries": {
        "best": {"query": {"kind": "skyline", "preference": "price MIN, rating MAX", "by": "city"}},
        "load": {
            "query": {"kind": "aggregate", "by": "city", "functions": {"n": "count()"}},
            "window": {"length": "1 minute"},
            "output": {"format": "csv", "path": "elsewhere"},
        },
    },
    "output": {"path": "out"},
    "late": {"path": "late"},
    "checkpoint": "cp",
}
BEST, LOAD = STREAM["queries"]["best"], STREAM["queries"]["load"]


def job_of(**parts: Any) -> JobFile:
    """Return a sound job with some sections replaced; None removes one."""
    return parse(
        yaml.safe_dump({name: value for name, value in (STREAM | parts).items() if value is not None}), "job.yaml"
    )


def test_a_query_has_the_windows_and_the_output_of_the_job_unless_it_has_its_own():
    given = options(job_of())
    assert given["time"] == "ts"
    assert given["window"] == {
        "best": Windows(10 * SECOND, SECOND),
        "load": Windows(60 * SECOND, 60 * SECOND),
    }
    assert given["output"] == {"best": sp.Directory("out/best"), "load": sp.Directory("elsewhere", "csv")}
    assert {one.name: one.build() for one in job_of().each_query} == {
        "best": sp.Skyline("price MIN, rating MAX", by="city"),
        "load": sp.Aggregate("city", n=sp.count()),
    }


def test_answers_and_late_rows_may_wait_for_their_files():
    rolls = {"roll": "5 minutes", "roll_bytes": 1_000}
    given = options(job_of(output={"path": "out", **rolls}, late={"path": "late", "roll": "1 hour"}))
    assert given["output"]["best"] == sp.Directory("out/best", roll="5 minutes", roll_bytes=1_000)
    assert given["late"] == sp.Directory("late", roll="1 hour")
    summary = job_of(output={"path": "out", **rolls}).summary()
    assert summary == job_of().summary(), "a job may be resumed with another roll"


def test_a_job_is_described_query_by_query():
    shown = dict(settings(job_of()))
    assert shown["query of best"] == "skyline of price MIN, rating MAX, one per city"
    assert shown["window of load"] == "1 min of ts, every 1 min: 1 pane of 1 min"
    assert shown["output of load"] == "csv in elsewhere"
    assert shown["late rows"] == "parquet in late"
    assert not {"query", "window", "output"} & shown.keys()


def test_windows_may_each_name_the_time_column():
    own = {"time": "ts", "length": "5 seconds"}
    job = job_of(window=None, queries={"best": BEST | {"window": own}, "load": LOAD | {"window": own}})
    assert options(job)["time"] == "ts"


def test_jobs_of_one_query_are_summarised_as_before_there_were_several():
    queries = {"queries": None, "query": BEST["query"]}
    assert "queries" not in job_of(**queries).summary()
    assert job_of().summary()["queries"]["load"]["window"]["length"] == "1 minute"


WRONG = """
queries: {best: {query: {kind: top_k, score: a, k: 0}}}
  queries.best.query.k: should be greater than 0, got 0
queries: {best: {query: {kind: skylin}}}
  queries.best.query.kind: cannot be 'skylin', did you mean 'skyline'?
queries: {best: {query: {k: 1}}}
  queries.best.query.kind: is missing; it must be one of aggregate, k_dominant, top_delta, skyline, top_k, continuous_skyline
queries: {best: {query: {kind: skyline, preference: price MIN, prefer: 1}}}
  queries.best.query.prefer: unknown field, did you mean 'preference'?
queries: {best: {query: {kind: skyline, preference: price MIN}, ouput: 1}}
  queries.best.ouput: unknown field, did you mean 'output'?
queries: {best: {query: {kind: skyline, preference: price MIN}, window: {slide: 1 s}}}
  queries.best.window.length: is missing
queries: {best: {query: {kind: skyline, preference: price MIN}, window: {length: 1 s, sliede: 1 s}}}
  queries.best.window.sliede: unknown field, did you mean 'slide'?
queries: {best: {query: {kind: skyline, preference: price MIN}, window: {length: 1 s, slide: 2 s}}}
  queries.best.window: need 0 < slide <= length, got slide '2 s', length '1 s'
queries: {best: {query: {kind: skyline, preference: price MIN}, output: {format: csv}}}
  queries.best.output.path: is missing; format csv needs it
queries: {best: {query: {kind: skyline, preference: price MIN}, output: {path: a, if_exists: overwrite}}, load: {query: {kind: skyline, preference: price MIN}}}
  queries.best.output.if_exists: is only for mode batch; a stream resumes from its checkpoint
queries: {best: skyline}
  queries.best: must be a section with fields of its own, got 'skyline'
queries: {best: {}}
  queries.best.query: is missing
queries: {}
  queries: must have at least one query by name, such as best: {query: ...}
queries: {a/b: {query: {kind: skyline, preference: price MIN}}}
  queries.a/b: the name of a query must be of letters, digits, '_' and '-', as its folder has that name, got 'a/b'
queries: {best: {query: {kind: continuous_skyline, preference: "a MIN, b MIN"}}}
  queries.best.query.kind: cannot be 'continuous_skyline', which answers no windows: run it alone
query: {kind: skyline, preference: price MIN}
  query: is for a job of one query; this one has `queries`, each with its own query
map: {x: a, y: b, shade: {n: low}}
  map: is for a job of one query; this one has `queries`, each with its own query
mode: batch
  queries: is only for mode stream; write a batch job for each query
front: {path: f}
  front: is only for query.kind continuous_skyline; other queries answer windows
window: null
  queries.load.window.time: is missing; name the column here, or for all queries in window.time
{window: null, queries: {best: {query: {kind: skyline, preference: price MIN}}}}
  queries.best.window: is missing; without a window a stream would never answer
queries: {best: {query: {kind: skyline, preference: price MIN}}, load: {query: {kind: aggregate, by: city, functions: {n: count()}}, window: {time: at, length: 1 s}, output: {format: csv, path: elsewhere}}}
  queries.load.window.time: must be 'ts', as that of query 'best', got 'at'
output: null
  queries.best.output: is missing; give the query one, or the job a folder as output
output: {format: console}
  output: must be a folder, in which each query gets a folder of its name, or be in each query: queries.best.output
queries: {load: {query: {kind: aggregate, by: city, functions: {n: count()}}, window: {length: 1 minute}, output: {format: csv, path: elsewhere}}}
  output: is used by no query, because each has one of its own; remove it
queries: {best: {query: {kind: skyline, preference: price MIN}, window: {time: ts, length: 1 s}}}
  window: is used by no query, because each has one of its own; remove it
checkpoint: null
  checkpoint: is missing; a stream that writes to 'out/best' needs a folder to resume from
"""


@pytest.mark.parametrize(("parts", "complaint"), table_of(WRONG))
def test_what_is_wrong_is_named_with_its_path(parts: str, complaint: str):
    with pytest.raises(ConfigError) as caught:
        job_of(**yaml.safe_load(parts))
    assert str(caught.value) == f"job.yaml: {complaint}"


def test_a_job_without_a_query_is_an_error():
    with pytest.raises(ConfigError, match=r"^job\.yaml: query: is missing$"):
        job_of(queries=None)
    with pytest.raises(ConfigError, match=r"^job\.yaml: output: is missing$"):
        job_of(queries=None, query=BEST["query"], output=None)
