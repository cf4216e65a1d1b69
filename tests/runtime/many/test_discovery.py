from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from skypane.control.admission import MetaData
from skypane.runtime.spark.sources.many import growing_inputs
from skypane.runtime.spark.sources.many.discovery import discovered, from_text, listed, to_text
from skypane.runtime.spark.sources.many.growing_inputs import FileInput
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.types import ConfigError

TOPIC = {"kafka": "h:1", "topic": "a"}


def test_a_list_goes_through_an_option(tmp_path):
    meta = {"max": 500, "transition": "jump", "period": "90 seconds"}
    given = [
        tmp_path / "a.csv",
        {"path": f"{tmp_path}/b.log", "name": "b", "format": "json", "meta": meta},
        FileInput(f"{tmp_path}/*.jsonl", meta=MetaData(expected=5)),
        {"path": f"{tmp_path}/data[1].csv", "exact": True},
        {"path": f"{tmp_path}/c", "format": "csv", "compression": "xz"},
        tmp_path / "a.parquet",
        {"path": tmp_path / "b.parquet", "name": "b of parquet", "meta": {"max": 5}},
        {"parquet": f"{tmp_path}/c/*"},
        {"segments": str(tmp_path / "a"), "name": "log a", "meta": {"max": 5}},
        {"segments": f"{tmp_path}/*", "format": "csv"},
        {"objects": "s3://bucket/in/", "format": "json", "header": True, "rescan": "5 minutes", "compression": "xz",
         "match": "a*", "name": "o"},
    ]  # fmt: skip
    assert from_text(to_text(listed(given))) == listed(given)
    _, meter, _, _, packed, *parquet, _, _, objects = listed(given)
    assert isinstance(meter, FileInput)
    assert meter.meta.seconds("period") == 90
    assert packed.plain()["compression"] == "xz"
    assert discovered([packed]) == {}
    assert {one.kind for one in parquet} == {"parquet"}
    assert objects.plain()["rescan"] == "300000000 us"


def test_a_list_in_a_file_is_read_as_it_is_now(tmp_path):
    path = tmp_path / "inputs.json"
    path.write_text(json.dumps([str(tmp_path / "a.csv")]))
    assert len(from_text(str(path))) == 1
    path.write_text(json.dumps([str(tmp_path / "a.csv"), {"path": str(tmp_path / "b.csv")}]))
    assert [one.plain()["format"] for one in from_text(str(path))] == ["csv", "csv"]


def test_patterns_find_what_is_there_and_what_is_listed_keeps_its_own_name(tmp_path):
    for name in ("a.csv", "b.csv", "c.txt"):
        (tmp_path / name).touch()
    listing = listed([f"{tmp_path}/*.csv", {"path": f"{tmp_path}/b.csv", "name": "bee"}])
    assert set(discovered(listing)) == {"bee", f"{tmp_path}/a.csv"}
    (tmp_path / "new.csv").touch()
    assert len(discovered(listing)) == 3


def test_a_pattern_finds_files_of_any_name_and_each_is_that_file_alone(tmp_path):
    """Also names that look like patterns, that no one can read, or that another one's %XX would be."""
    names = [b"data[1].csv", b"*.csv", b"what?.csv", b"\xff.csv", b"%FF.csv", b"\x1b[31m.csv", b"line\nend.csv", b" .csv",
             b"\xc3\xa9.csv", b"file:a.csv", b"~.csv"]  # fmt: skip
    folder = os.fsencode(tmp_path)
    for name in names:
        Path(os.fsdecode(folder + b"/" + name)).write_text("1\n")
    found = discovered(listed([f"{tmp_path}/*.csv"]))
    assert sorted(os.fsencode(str(one.input.identity)) for one in found.values()) == sorted(
        folder + b"/" + name for name in names
    )
    assert all(name.isprintable() and name.encode() for name in found)
    assert f"{tmp_path}/data[1].csv" in found
    plan = Planner(lambda: listed([f"{tmp_path}/*.csv"]), 2)
    end = plan.latest(Offsets({}), None)
    tasks = pickle.loads(pickle.dumps(plan.assigned(Offsets({}), end)))  # noqa: S301 - as Spark sends them
    columns = pa.schema([("n", pa.int64())])
    assert sum(len(rows) for task in tasks for _, rows in growing_inputs.read(task, columns)) == len(names)


def test_a_listed_path_may_be_one_as_it_is_written(tmp_path):
    for name in ("data[1].csv", "data1.csv"):
        (tmp_path / name).touch()
    given = [{"path": f"{tmp_path}/data[1].csv", "exact": True}]
    assert set(discovered(listed(given))) == {f"{tmp_path}/data[1].csv"}


def test_a_pipe_is_not_a_parquet_file(tmp_path):
    os.mkfifo(tmp_path / "a.parquet")  # to open it waits forever
    assert discovered(listed([f"{tmp_path}/*.parquet"])) == {}


@pytest.mark.parametrize(("given", "message"), [
    ([], "inputs is empty; list at least one file or pattern"),
    (["a.csv", "./a.csv"], r"inputs lists '.*/a\.csv' twice"),
    ([{"path": "a.csv", "name": "x"}, {"path": "b.csv", "name": "x"}], "inputs lists 'x' twice"),
    (["a.log"], "format of .*a.log is unknown; set format to csv or json"),
    ([{"path": "a.csv", "header": "yes"}], r"inputs\[0\]: header must be true or false, got 'yes'"),
    ([{"pth": "a.csv"}], r"inputs\[0\]: an input has no 'pth'; did you mean 'path'\?"),
    ([{"name": "a"}], r"inputs\[0\] needs path"),
    ([7], r"inputs\[0\] must be a path"),
    ([{"path": "a.csv", "meta": {"max": -1}}], r"inputs\[0\]\.meta: max is a rate in rows per second"),
    (["hdfs://host/a.csv"], "an input reads files of this machine"),
    (["s3://bucket/a.csv"], "names one object; give its folder, s3://bucket/, and match='a.csv'"),
    ([{"path": "*.csv", "name": "all"}], "a pattern finds many inputs"),
    ([{"path": "a.csv.gz", "compression": "gz"}], "compression must be one of gzip, zstd, bz2, xz, none, got 'gz'"),
    ([{"path": "a.gz"}], "format of .*a.gz is unknown; set format to csv or json"),
    ([{"segments": "a", "format": "xml"}], "must be csv or json, got 'xml'"),
    ([{"segments": "a", "name": "a"}, {"segments": "b", "name": "a"}], "lists 'a' twice"),
    ([{"segments": "a/*", "name": "a"}], "a pattern finds many inputs"),
    ([{"objects": "s3://bucket/in/"}], "format of s3://bucket/in/ is unknown; set format to csv or json"),
    ([{"objects": "/in/*.json"}], "must be a folder of an object store, such as s3://bucket/folder/, got /in; path reads"),
    ([{"objects": "s3://bucket/*/in/*.json"}], "only the last part may be a pattern; list each folder as an input"),
    ([{"objects": "s3://bucket/in/a.json.gz"}], "names one object; give its folder, s3://bucket/in/, and match='a.json.gz'"),
    ([{"objects": "s3://bucket/in/*.json", "match": "b*"}], "has a pattern, and there is match='b[*]'; leave out one"),
    ([{"objects": "s3://bucket/in/*.json", "rescan": "-1 s"}], "rescan of s3://bucket/in/ must not be below 0"),
    ([{"objects": "s3:///in/*.json"}], "names no bucket"),
    ([{"objects": "s3://bucket/in/*.json", "path": "a.json"}], "has path and objects"),
    ([{"objects": "s3://bucket/in/*.json", "compression": "zip"}], "compression must be one of gzip"),
    ([{"objects": "s3://bucket/in/", "format": "json"}, {"objects": "s3a://bucket//in", "format": "json", "name": "again"}],
     "lists 's3://bucket/in/' twice"),
    ([{"kafka": "host"}], "kafka must be host:port of a broker, got 'host'"),
    ([{"kafka": "h:1"}], "kafka h:1 needs topic"),
    ([{**TOPIC, "topic": "a b"}], "the name or pattern of what to read, got 'a b'"),
    ([{**TOPIC, "topic": "a*", "name": "a"}], "a pattern finds many inputs, each named by its topic"),
    ([{**TOPIC, "format": "xml"}], "topic a: format must be csv, json, avro or protobuf, got 'xml'"),
    ([{**TOPIC, "options": {"isolation.level": "x"}}], "option isolation.level is set by skypane"),
    ([{**TOPIC, "timeout": "0 s"}], "timeout"),
    ([{"kafka": "h:1", "topics": "a"}], "an input has no 'topics'; did you mean 'topic'"),
    ([{**TOPIC, "path": "b"}], r"inputs\[0\] has path and kafka"),
    ([{**TOPIC, "format": "avro"}], "messages of avro and protobuf need registry"),
    ([{**TOPIC, "format": "json", "registry": "http://r"}], "others have none; got format='json'"),
    ([{**TOPIC, "format": "avro", "registry": {"user": "x"}}], "must be the URL of a schema registry, or a mapping with url"),
    ([{**TOPIC, "format": "avro", "registry": {"url": "http://r", "basic.auth.user.inf": "x"}}],
     "has no option 'basic.auth.user.inf'.*basic.auth.user.info"),
    ([{**TOPIC, "format": "avro", "registry": "http://me:secret@r"}], r'has a password; give it as basic.auth.user.info: "\$NAME"'),
])  # fmt: skip
def test_an_invalid_list_is_refused(given, message: str):
    with pytest.raises(ConfigError, match=message) as refused:
        listed(given)
    assert "secret" not in str(refused.value)


def test_a_list_that_is_not_json_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the list of inputs"):
        from_text(str(tmp_path / "missing.json"))
    with pytest.raises(ConfigError, match="must be a list in JSON"):
        from_text("[not json")
