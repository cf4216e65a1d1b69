"""The section `inputs` of a source: it is the call of sp.inputs() that it describes."""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

import skypane as sp
from skypane.control.admission.readers import Readers
from skypane.jobs import building, parse, running
from skypane.jobs.description import settings
from skypane.jobs.inputs_section import InputsSection
from skypane.jobs.job_file import JobFile
from skypane.runtime.spark.sources.many.discovery import from_text
from skypane.types import ConfigError, SkypaneError, micros

JOB: dict[str, Any] = {
    "name": "towns",
    "source": {"format": "skypane-many", "schema": "ts timestamp, price double", "inputs": {"given": ["a.csv"]}},
    "query": {"kind": "skyline", "preference": "price MIN", "by": "input"},
    "window": {"time": "ts", "length": "1 minute"},
    "output": {"path": "out"},
    "checkpoint": "state",
}


def job(source: dict[str, Any] | None = None, **inputs: Any) -> JobFile:
    section = JOB["source"] | {"inputs": JOB["source"]["inputs"] | inputs} | (source or {})
    return parse(yaml.safe_dump(JOB | {"source": section}))


def section(**inputs: Any) -> InputsSection:
    found = job(**inputs).source.inputs
    assert found is not None
    return found


def test_its_fields_and_defaults_are_those_of_the_function():
    takes = dict(list(inspect.signature(sp.inputs).parameters.items())[3:])
    given = section().arguments()
    assert given.keys() == takes.keys()
    for name, parameter in takes.items():
        same = micros(given[name]) == micros(parameter.default) if name == "lead" else given[name] == parameter.default
        assert same, name


def test_a_bound_on_the_wait_sizes_the_readers():
    readers = section(sizing={"max_readers": 8, "latency": "2 seconds"}).arguments()["readers"]
    assert readers == Readers(max_readers=8, latency="2 seconds")


def test_every_kind_of_input_is_taken_as_the_function_takes_it():
    kinds = [
        "a/*.csv",
        {"path": "b.json", "name": "b", "format": "json"},
        {"kafka": "localhost:9092", "topic": "prices", "format": "json"},
        {"path": "c.csv.gz"},
        {"objects": "s3://bucket/in/*.json.gz", "rescan": "5 minutes"},
        {"path": "gs://bucket/in/", "format": "csv", "header": True},
        {"path": "d", "format": "csv", "compression": "zstd"},
        {
            "kafka": "localhost:9092",
            "topic": "offers",
            "format": "avro",
            "registry": {"url": "http://r", "basic.auth.user.info": "$LOGIN"},
        },
    ]
    assert section(given=kinds).text == json.dumps([one.plain() for one in from_text(json.dumps(kinds))])
    assert section(given="list.json").text == os.path.abspath("list.json")  # noqa: PTH100


AVRO = {"kafka": "b:1", "topic": "t", "format": "avro"}


@pytest.mark.parametrize(
    ("source", "inputs", "problem"),
    [
        ({"format": "rate"}, {}, "source.inputs: is only for format skypane-many, but the format is 'rate'"),
        ({"options": {"readers": 2}}, {}, "source.options: and inputs are two ways"),
        ({"schema": None}, {}, "source.schema: is missing; the inputs need one"),
        ({}, {"given": []}, "source.inputs.given: must be a list of inputs, or the path of a JSON file"),
        ({}, {"given": 3}, "source.inputs.given: must be a list of inputs, or the path of a JSON file"),
        ({"path": "in"}, {}, "source.path: and inputs are two ways"),
        ({}, {"given": {"path": "a"}}, "source.inputs.given: must be a list of inputs, such as [a.csv], got a mapping"),
        ({}, {"given": [{"pth": "a"}]}, "an input has no 'pth'; did you mean 'path'?"),
        (
            {},
            {"given": [{"path": "a.csv", "compression": "zip"}]},
            "compression must be one of gzip, zstd, bz2, xz, none",
        ),
        (
            {},
            {"given": [{"objects": "s3://bucket/in/"}]},
            "format of s3://bucket/in/ is unknown; set format to csv or json",
        ),
        ({}, {"given": [AVRO]}, "messages of avro and protobuf need registry"),
        (
            {},
            {"given": [AVRO | {"registry": {"url": "u", "bearer.auth.token": "x"}}]},
            "option bearer.auth.token of the registry would be shown",
        ),
        ({}, {"reader": 3}, "source.inputs.reader: unknown field, did you mean 'readers'?"),
        ({}, {"readers": 3, "sizing": {"max_readers": 3}}, "source.inputs.readers: is the number of readers"),
        ({}, {"sizing": {"max_readers": 3, "latency": "0 s"}}, "source.inputs.sizing: latency"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(source: dict[str, Any], inputs: dict[str, Any], problem: str):
    with pytest.raises(ConfigError) as caught:
        job(source, **inputs)
    assert problem in str(caught.value)


def test_a_secret_in_place_of_a_list_is_not_shown():
    with pytest.raises(ConfigError) as caught:
        job(given={"kafka": "localhost:9092", "options": {"sasl.password": "hunter2"}})
    assert "hunter2" not in str(caught.value)


def test_they_are_for_streams():
    batch = {name: part for name, part in JOB.items() if name != "checkpoint"} | {"mode": "batch"}
    with pytest.raises(ConfigError, match=r"source\.inputs: is only for mode stream"):
        parse(yaml.safe_dump(batch))


def test_other_inputs_are_not_those_of_the_checkpoint_and_other_readers_may_be(tmp_path: Path):
    log = running.log_of(str(tmp_path / "state"))
    running.begin_log(job(), log)
    running.begin_log(job(readers=5, rows_per_trigger=100), log)
    with pytest.raises(SkypaneError, match="source was"):
        running.begin_log(job(given=["b.csv"]), log)


def test_the_settings_name_them():
    assert 'a.csv"' in dict(settings(job()))["source"]


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_a_job_reads_them(tmp_path: Path, spark: Any):
    for town in "ab":
        lines = [f"2025-01-01T00:0{minute}:00Z,{minute}" for minute in range(3)]
        (tmp_path / f"{town}.csv").write_text("\n".join(lines) + "\n")
    given = {"given": [str(tmp_path / "*.csv")], "sizing": {"max_readers": 2}}
    source = JOB["source"] | {"inputs": given}
    places = {"output": {"path": str(tmp_path / "out")}, "checkpoint": str(tmp_path / "state")}
    described = parse(yaml.safe_dump(JOB | {"source": source} | places))
    ready = building.build(described, spark)
    assert isinstance(ready, sp.Job)
    handle = ready.start(trigger="available now")
    handle.await_termination()
    assert sum(metrics.rows for metrics in handle.recent_metrics()) == 6
