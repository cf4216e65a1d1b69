"""A text names one place, for Spark, for pyarrow and for this process."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from skypane.locations import Location, whole
from skypane.types import ConfigError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of each test; the home is its subfolder."""
    folder = tmp_path / "here"
    (folder / "home").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder / "home"))
    return folder


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("out", "{here}/out"),
        ("./out/", "{here}/out"),
        ("a/../../up", "{above}/up"),
        ("a:b", None),
        ("./a:b", "{here}/a:b"),
        ("a b%20c#d?e", "{here}/a b%20c#d?e"),
        ("~", "{here}/home"),
        ("~/süß", "{here}/home/süß"),
        ("~nobody-of-this-name/x", "{here}/~nobody-of-this-name/x"),
        ("/", "/"),
        ("//data//x/./y", "/data/x/y"),
        ("/../x", "/x"),
        ("file:/x", "/x"),
        ("file:///a b/süß", "/a b/süß"),
        ("FILE:///x/../y/", "/y"),
        ("file:///a%20b", "/a%20b"),
        ("file:x", None),
        ("file://host/x", None),
    ],
)
def test_files_of_this_machine(text: str, path: str | None, here: Path):
    if path is None:
        with pytest.raises(ConfigError, match=r"^output: '"):
            Location.of(text, "output")
    else:
        place = Location.of(text)
        assert place.is_local
        assert str(place) == path.format(here=here, above=here.parent)
        assert place.spark == f"file://{place}"
        assert Location.of(place.spark) == Location.of(str(place)) == place


@pytest.mark.parametrize(
    ("text", "spark", "arrow"),
    [
        ("s3a://bucket/a/../b", "s3a://bucket/b", "s3"),
        ("s3n://bucket/b/", "s3n://bucket/b", "s3"),
        ("s3://bucket", "s3://bucket/", "s3"),
        ("gs://bucket/b", "gs://bucket/b", "gs"),
        ("hdfs://name:8020/b", "hdfs://name:8020/b", "hdfs"),
        ("hdfs:///b", "hdfs:///b", "hdfs"),
        ("abfss://box@account.dfs.core.windows.net/b", "abfss://box@account.dfs.core.windows.net/b", "abfss"),
    ],
)
def test_stores_of_objects_and_clusters(text: str, spark: str, arrow: str):
    place = Location.of(text)
    place.check_writable()
    assert place.spark == str(place) == spark
    assert Location.of(spark) == place
    assert place.resolved().scheme == arrow
    assert place.child("c").spark == f"{spark.rstrip('/')}/c"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (
            "dbfs:/x",
            r"^late: dbfs:///x is on the file system 'dbfs'.*write it as the folder that it is mounted at: /dbfs/",
        ),
        ("wasbs://box@account/x", "abfss://container@account"),
        ("http://host/x", "one of file, s3, s3a"),
        ("2024:/x", "./ before a folder name that has a colon"),
    ],
)
def test_what_pyarrow_does_not_reach_is_refused_with_its_remedy(text: str, remedy: str):
    with pytest.raises(ConfigError, match=remedy):
        Location.of(text).check_writable("late")


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIA1:s3cr3t@bucket/out",
        "s3a://AKIA1:s3cr3t/+x@bucket/out",
        "S3N://AKIA1:s3cr3t@bucket",
        "s3:/bucket//AKIA1:s3cr3t@bucket/out",
        "gs://bucket/out?X-Goog-Signature=s3cr3t",
        "abfss://box@account.dfs.core.windows.net/out?sv=1&sig=s3cr3t",
        "hdfs://me:s3cr3t@name:8020/out",
    ],
)
def test_a_login_or_a_signature_is_refused_and_not_shown(text: str):
    with pytest.raises(
        ConfigError, match=r"^output has a login, a port or a signature, .*in the environment"
    ) as refused:
        Location.of(text, "output")
    assert "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "sftp://me:s3cr3t@host/x",
        "https://me:s3cr3t@host/x",
        "https://a.blob.core.windows.net/box/out?sv=1&sig=s3cr3t",
        "file://me:s3cr3t@host/x",
        "sftp:me//me:s3cr3t@host",
        "sftp://me:s3cr3t@host/\0",
    ],
)
def test_no_error_shows_a_login_or_a_signature(text: str):
    with pytest.raises(ConfigError, match=r"^late(:| must be) ") as refused:
        Location.of(text, "late").check_writable("late")
    assert "s3cr3t" not in str(refused.value)
    assert "(not shown)" in str(refused.value)


def test_where_a_file_of_this_machine_is_needed_no_login_is_shown():
    with pytest.raises(
        ConfigError, match=r"^a receiver writes files of this machine, got sftp://\(not shown\)@host/x$"
    ):
        Location.of("sftp://me:s3cr3t@host/x").of_this_machine("a receiver writes")


@pytest.mark.parametrize("text", ["", "a\0b"])
def test_what_names_no_place_is_refused(text: str):
    with pytest.raises(ConfigError, match=r"^checkpoint must be a path or a URI, got "):
        Location.of(text, "checkpoint")


def test_a_uri_that_was_made_a_path_is_refused():
    with pytest.raises(ConfigError, match=r"^path: 's3:/bucket/x' names no bucket; write s3://bucket/.* not a Path"):
        Location.of(PurePosixPath("s3://bucket/x"))


def test_one_place_has_one_name(here: Path):
    (here / "real").mkdir()
    (here / "link").symlink_to("real")
    names = ["real", "link", "x/../real/", f"file:{here}/link", f"file://{here}/real", "./real"]
    assert len({Location.of(name).resolved() for name in names}) == 1
    assert Location.of("s3a://bucket/x/").resolved() == Location.of("s3://bucket/y/../x").resolved()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("s3://bucket/x", "s3a://bucket/x/", True),
        ("abfs://c@account.dfs.core.windows.net/x", "abfss://c@Account.dfs.core.windows.net/x", True),
        ("hdfs://name:8020/x", "hdfs://NAME/x", True),
        ("s3://bucket/x", "s3://bucket/X", False),
        ("s3://bucket/x", "gs://bucket/x", False),
        ("real/x", "link/x", True),
        ("real/x", "real/y", False),
    ],
)
def test_two_names_of_one_place_are_known(here: Path, one: str, other: str, *, same: bool):
    (here / "real").mkdir()
    (here / "link").symlink_to("real")
    assert Location.of(one).is_same(Location.of(other)) is same


def test_whether_case_counts_follows_from_the_disk(here: Path):
    (here / "probe").touch()
    ignored = (here / "PROBE").exists()
    assert Location.of("out/late").is_same(Location.of("OUT/late")) is ignored


@given(
    st.text(st.characters(exclude_characters="\0/", codec="utf-8"), min_size=1, max_size=8).filter(
        lambda n: n not in {".", ".."}
    )
)
def test_any_name_that_a_folder_may_have_is_read_as_it_is(name: str):
    place = Location.of(f"/data/{name}/x")
    assert str(place) == f"/data/{name}/x"
    assert Location.of(place.spark) == place


PARTS = st.text(st.characters(exclude_characters="\0/:", codec="utf-8"), min_size=1, max_size=8)
OF_PATTERNS = ["a[b]", "a[b", "a]b", "[!a]", "a*b", "*", "a?b", "a{b,c}", "a{b", "a}b", "a\\b", "a\\"]
"""Names that stand for others, or are wrong, as patterns of Hadoop."""


@given(
    st.lists(PARTS.filter(lambda n: n not in {".", ".."}), min_size=1, max_size=3),
    st.sampled_from(["file://", "s3a://b"]),
)
def test_a_pattern_of_hadoop_names_a_place_with_each_sign_escaped(parts: list[str], root: str):
    place = Location.of(f"{root}/{'/'.join(parts)}")
    escaped = re.split(r"(?s)\\(.)", place.spark_pattern)  # text, sign, text, sign, ..., text
    assert not set("*?[]{}\\") & set("".join(escaped[::2]))
    assert set("*?[]{}\\") >= set(escaped[1::2])
    assert "".join(escaped) == place.spark


@pytest.mark.parametrize("name", OF_PATTERNS)
def test_spark_reads_the_place_and_no_other_that_its_name_stands_for(name: str, spark: SparkSession, here: Path):
    for number, folder in enumerate([name, "ab", "aab", "axb", "ac", "b"]):
        (here / folder).mkdir()
        (here / folder / "rows.json").write_text(f'{{"n": {number}}}\n')
    found = spark.read.schema("n long").json(Location.of(here / name).spark_pattern)
    assert [row.n for row in found.collect()] == [0]


def test_pyarrow_gets_names_as_they_are(tmp_path: Path):
    filesystem, path = Location.of(f"file://{tmp_path}/a b%20ü").files
    assert isinstance(filesystem, fs.LocalFileSystem)
    assert path == f"{tmp_path}/a b%20ü"


@pytest.mark.parametrize(
    "text",
    ["{here}/a b", "file:{here}/x/../süß", "file://{here}//a%20b/", "file:///{here}/c#d+e", "file://{here}/ñ?f=g&h"],
)
def test_spark_means_the_same_by_a_text_and_by_ours(text: str, spark: SparkSession, here: Path):
    named = text.format(here=here)
    place = Location.of(named)
    spark.range(1).coalesce(1).write.json(named)
    filesystem, path = place.files
    assert filesystem.get_file_info(f"{path}/_SUCCESS").is_file
    assert spark.read.schema("id long").json(place.spark).count() == 1


@pytest.mark.parametrize("text", ["", "file:x", "a:b/c", "file://host/x", "file://localhost{here}", "s3:/bucket/x"])
def test_what_spark_refuses_is_refused(text: str, spark: SparkSession, here: Path):
    named = text.format(here=here)
    with pytest.raises((PySparkException, Py4JJavaError)):
        spark.range(1).write.json(named)
    with pytest.raises(ConfigError):
        Location.of(named)


def test_a_file_is_seen_whole_or_not_at_all(here: Path):
    (here / "file").write_text("old", encoding="ascii")

    def fail() -> None:
        with whole(here / "file") as draft:
            draft.write_text("half", encoding="ascii")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [path.read_text(encoding="ascii") for path in here.glob("file*")] == ["old"]
    with whole(here / "file") as draft:
        draft.write_text("new", encoding="ascii")
    assert [path.read_text(encoding="ascii") for path in here.glob("file*")] == ["new"]
