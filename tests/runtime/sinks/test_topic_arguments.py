"""A topic of Kafka as output, without a broker: its arguments, and the digest by which a batch is known."""

from __future__ import annotations

import pyarrow as pa
import pytest

from skypane.runtime.spark.sinks.batch_digest import BatchDigest
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.kafka_topic import Kafka
from skypane.types import ConfigError

SCHEMA = pa.schema([("window_start", pa.timestamp("us", "UTC")), ("city", pa.string()), ("n", pa.int64())])
BOUNDS = [(name, pa.timestamp("us", "UTC")) for name in ("window_start", "window_end")]


@pytest.mark.parametrize(("arguments", "message"), [
    ({"servers": "host"}, "servers must be host:port of a broker of Kafka, got 'host'"),
    ({"topic": "a*"}, "topic must be the name of a topic, got 'a\\*'"),
    ({"options": {"transactional.id": "x"}}, "topic t: option transactional.id is set by skypane; remove it"),
    ({"timeout": "0 s"}, "timeout"),
])  # fmt: skip
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        Kafka(**{"servers": "h:1", "topic": "t", **arguments})  # type: ignore[arg-type]


def test_a_key_is_of_columns_of_the_rows_and_options_are_the_clients():
    with pytest.raises(
        ConfigError, match="key column 'shop' is not a column of the rows, which are window_start, city"
    ):
        Kafka("h:1", "t", key="shop").check(SCHEMA)
    with pytest.raises(ConfigError, match=r"options of kafka h:1: .*nonsense"):
        Kafka("h:1", "t", options={"fetch.nonsense.ms": 1}).open(QueryStart("q"))


def test_a_digest_is_of_the_rows_in_any_order_with_their_number():
    one, two = b"one", b"two"

    def digest(*rows: bytes) -> str:
        made = BatchDigest()
        for row in rows:
            made.add(row)
        return str(made)

    assert digest(one, two) == digest(two, one)
    assert len({digest(), digest(one), digest(one, one), digest(one, two), digest(two)}) == 5


def test_tombstones_need_a_key_and_changes():
    with pytest.raises(ConfigError, match="tombstones=True needs a key, and changes of rows: Amend"):
        Kafka("h:1", "t", key="city", tombstones=True).check(SCHEMA)
    changes = pa.schema([*BOUNDS, ("version", pa.int64()), ("action", pa.string()), ("city", pa.string())])
    with pytest.raises(ConfigError, match="tombstones=True needs a key"):
        Kafka("h:1", "t", tombstones=True).check(changes)
    with pytest.raises(ConfigError, match="key must have the column window_start"):
        Kafka("h:1", "t", key="city", tombstones=True).check(changes)
    Kafka("h:1", "t", key="window_start,city", tombstones=True).check(changes)
