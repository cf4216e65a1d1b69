"""Options that may be secrets are shown nowhere: not printed, not reported, not stored, not in an error."""

from __future__ import annotations

import json

import pytest
import yaml
from pyspark.sql import SparkSession

import skypane as sp
from skypane.addresses import HIDDEN
from skypane.jobs import building
from skypane.jobs.description import settings
from skypane.jobs.reading import parse
from skypane.runtime.environment import is_named
from skypane.runtime.redaction import is_plain, shown
from skypane.types import ConfigError

SECRET = "hunter2"  # noqa: S105 - what a test looks for
OPTIONS = {
    "kafka.bootstrap.servers": "broker:9093",
    "subscribe": "prices",
    "kafka.sasl.jaas.config": f'PlainLoginModule required password="{SECRET}";',
    "kafka.ssl.keystore.password": SECRET,
    "kafka.ssl.private.key.passphrase": SECRET,
    "kafka.ssl.key.password": "$KEY_PASSWORD",
    "kafka.fetch.max.bytes": 1000,
    "whatever.comes.next.year": SECRET,
}


def job_of(options: object, **source: object) -> str:
    return yaml.safe_dump({
        "name": "secrets",
        "source": {"format": "kafka", "schema": "ts timestamp, price double", "options": options, **source},
        "query": {"kind": "skyline", "preference": "price MIN"},
        "window": {"time": "ts", "length": "1 hour"},
        "output": {"path": "out"},
        "checkpoint": "checkpoint",
    })  # fmt: skip


def test_what_is_printed_and_reported_hides_what_may_be_a_secret():
    """--dry-run and the report describe a job by the same settings."""
    described = dict(settings(parse(job_of(OPTIONS))))["source"]
    assert SECRET not in described
    assert "subscribe=prices" in described
    assert "kafka.ssl.key.password=$KEY_PASSWORD" in described
    assert f"kafka.ssl.private.key.passphrase={HIDDEN}" in described


def test_what_is_stored_beside_the_checkpoint_does_too():
    stored = json.dumps(parse(job_of(OPTIONS)).summary())
    assert SECRET not in stored
    assert "broker:9093" in stored


@pytest.mark.parametrize("options", [{"kafka.ssl.key.password": [SECRET]}, SECRET, [SECRET]])
def test_an_error_does_not_repeat_it(options: object):
    with pytest.raises(ConfigError, match=r"source\.options") as caught:
        parse(job_of(options))
    assert SECRET not in str(caught.value)


def test_a_login_within_a_path_is_left_out():
    described = dict(settings(parse(job_of({}, format="parquet", path=f"s3://key:{SECRET}@bucket/in"))))["source"]
    assert f"s3://{HIDDEN}@bucket/in" in described
    stored = json.dumps(parse(job_of({}, format="parquet", path=f"s3://key:{SECRET}@bucket/in")).summary())
    assert SECRET not in stored


def test_no_sink_takes_an_address_with_a_login():
    for sink in (
        sp.Directory(f"s3a://key:{SECRET}@bucket/out"),
        sp.Directory("gs://bucket/out?X-Goog-Signature=hunter2"),
    ):
        with pytest.raises(ConfigError, match="output has a login, a port or a signature") as caught:
            sink.place()
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", [
    "password", "kafka.ssl.truststore.password", "ssl.key.pem", "ssl.private.key.passphrase", "sasl.oauthbearer.config",
    "fs.s3a.secret.key", "token", "Authorization", "fetch", "socket.password", "message.token",
])  # fmt: skip
def test_what_is_not_known_to_be_plain_is_hidden(name: str):
    assert not is_plain(name)
    assert shown(name, SECRET) == HIDDEN
    assert is_named("$X")
    assert shown(name, "$X") == "$X"


def test_an_environment_variable_replaces_any_option(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROWS", "7")
    job = parse(job_of({"rowsPerSecond": "$ROWS"}, format="rate", schema=None).replace("ts", "timestamp"))
    assert building._resolved("source.options", job.source.options) == {"rowsPerSecond": "7"}
    assert building.frame(job, spark).columns == ["timestamp", "value"]
    monkeypatch.delenv("ROWS")
    with pytest.raises(ConfigError, match=r"source.options.rowsPerSecond is in the environment variable ROWS"):
        building.frame(job, spark)
