"""The guide from Kafka to Kafka, from its own text, with a real broker."""

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
def test_answers_and_rejected_rows_of_a_topic_are_messages_of_two_others(kafka: Broker, tmp_path: Path):
    page = guide("how-to-kafka").replace("broker-1:9092", kafka.address)
    for topic, partitions in _CREATED.findall(page):
        kafka.create(topic, int(partitions))
    kafka.send("sales", [message.encode() for message in _MESSAGE.findall(page)])
    assert not differences(page, tmp_path)
