"""The guides from Kafka, to Kafka and to a table of Delta, from their own texts, with a real broker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.page_steps import differences
from tests.test_guides import guide

if TYPE_CHECKING:
    from tests.servers.kafka import Broker

_CREATED = re.compile(r"--create --topic (\S+) --partitions (\d+)")
_MESSAGE = re.compile(r"^    (\{.*\})$", re.MULTILINE)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("name", "topic"), [("how-to-kafka", "sales"), ("how-to-delta", "orders")])
def test_answers_and_rejected_rows_of_a_topic_are_where_the_page_shows_them(
    kafka: Broker, tmp_path: Path, name: str, topic: str
):
    page = guide(name).replace("broker-1:9092", kafka.address)
    for created, partitions in _CREATED.findall(page):
        kafka.create(created, int(partitions))
    kafka.send(topic, [message.encode() for message in _MESSAGE.findall(page)])
    assert not differences(page, tmp_path)
