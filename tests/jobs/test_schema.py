"""The JSON Schema of job files."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from skypane.cli.main import main
from skypane.jobs import examples
from skypane.jobs.field_texts import argument_texts, comments, field_texts
from skypane.jobs.schema import job_schema

SCHEMA = job_schema()
PARTS: dict[str, Any] = {"job": SCHEMA, **SCHEMA["$defs"]}
JOB = """
name: best
source: {format: parquet, path: offers}
query: {kind: skyline, by: city, preference: "price MIN, rating MAX"}
window: {time: ts, length: 1 hour}
progress: {policy: aqkslack, max_drop: 0.02}
output: {path: answers}
checkpoint: state
"""


def problems(text: str) -> list[str]:
    checker = jsonschema.Draft202012Validator(SCHEMA)
    return [error.json_path for error in checker.iter_errors(yaml.safe_load(text))]


def test_it_is_a_schema_of_its_draft():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]


@pytest.mark.parametrize("name", examples.names())
def test_each_example_fits(name: str):
    assert problems(examples.text(name)) == []


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("name: best", "title: best", "$"),
        ("kind: skyline", "kind: skylines", "$.query"),
        ("max_drop: 0.02", "max_drop: few", "$.progress"),
        ("length: 1 hour", "length: 1", "$.window"),
        ("by: city", "by: [city, 1]", "$.query"),
        ("path: answers", "path: answers, format: parket", "$.output"),
    ],
)
def test_a_mistake_is_found(old: str, new: str, where: str):
    assert problems(JOB) == []
    assert where in problems(JOB.replace(old, new))


@pytest.mark.parametrize("part", PARTS)
def test_each_section_and_field_is_described(part: str):
    assert PARTS[part]["description"]
    assert [name for name, field in PARTS[part]["properties"].items() if "description" not in field] == []


def test_defaults_and_texts_are_those_of_a_job_file():
    fields = SCHEMA["$defs"]["AqKSlackSection"]["properties"]
    assert fields["max_slack"]["default"] == "1 day"
    assert "null: no limit" in fields["max_slack"]["description"]
    assert "title" not in fields["max_slack"]


def test_run_prints_it(capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


class Base:
    """A base.

    a, b   of the base
    """


class Derived(Base):
    #: own text,
    #: in two lines
    b: int
    c = 3


def test_texts_are_from_tables_and_comments_and_those_of_a_class_go_before_those_of_its_bases():
    assert field_texts(Derived) == {"a": "of the base", "b": "own text, in two lines"}
    assert comments(Base) == comments(int) == {}
    assert argument_texts("No table.") == {}
