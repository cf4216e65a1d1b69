"""A table of a catalog that is a server, which checks by itself what a commit follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Response
from tests.runtime.rows_of_batches import NO_SPARK, SCHEMA, VERSIONS, numbers, of
from tests.runtime.sinks.opening import opened
from tests.runtime.table_places import NAME
from tests.servers.iceberg_rest import TOKEN, Commit, Server, failure, running

from skypane.runtime.spark.sinks.iceberg import Iceberg
from skypane.types import CheckpointError, ConfigError


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("SKYPANE_TEST_TOKEN", TOKEN)
    with running(tmp_path) as one:
        yield one


def started(server: Server, next_batch: int = 0, driver: str = "driver-1", schema: Any = SCHEMA) -> Iceberg:
    sink = Iceberg(NAME, catalog="prod", options={"uri": server.url, "token": "$SKYPANE_TEST_TOKEN"})
    return opened(sink, driver, next_batch, schema)


def rows(server: Server) -> list[int]:
    return sorted(server.table(NAME).scan().to_arrow()["n"].to_pylist())


def test_batches_are_there_once_over_repeats_and_starts(server: Server):
    first = started(server)
    for batch in (0, 0, 1):
        first.write(NO_SPARK, numbers(batch), batch)
    second = started(server, 1, "driver-2")
    for batch in (1, 2):
        second.write(NO_SPARK, numbers(batch), batch)
    with pytest.raises(CheckpointError, match="taken over"):
        first.write(NO_SPARK, numbers(2), 2)
    assert rows(server) == [0, 1, 2]


def test_a_version_of_a_window_replaces_its_rows(server: Server):
    sink = started(server, schema=VERSIONS)
    sink.write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1), (1, 0, False, "Oslo", 2)), 0)
    sink.write(NO_SPARK, of(VERSIONS, (0, 1, False, "Rome", 7)), 1)
    assert rows(server) == [2, 7]


def test_a_driver_that_was_frozen_before_its_request_adds_nothing_after_its_successor(server: Server):
    frozen = started(server)

    def others_write(commit: Commit) -> Response:
        successor = started(server, 0, "driver-2")
        for batch in (0, 1):
            successor.write(NO_SPARK, numbers(batch), batch)
        return commit()

    server.around.append(others_write)
    with pytest.raises(CheckpointError, match="taken over"):
        frozen.write(NO_SPARK, numbers(0), 0)
    assert rows(server) == [0, 1]


@pytest.mark.parametrize("happens", [True, False])
def test_a_gateway_that_loses_the_reply_or_the_request_leaves_the_batch_once(server: Server, happens: bool):
    def lost(commit: Commit) -> Response:
        if happens:
            commit()
        return failure(504, TimeoutError("the gateway has waited long enough"))

    sink = started(server)
    server.around.append(lost)
    sink.write(NO_SPARK, numbers(1), 0)
    sink.write(NO_SPARK, numbers(2), 1)
    assert rows(server) == [1, 2]


def test_a_proxy_that_sends_a_commit_twice_leaves_it_once_and_whole(server: Server):
    def twice(commit: Commit) -> Response:
        commit()
        return commit()

    sink = started(server)
    server.around.append(twice)
    sink.write(NO_SPARK, numbers(1), 0)
    assert rows(server) == [1]


def test_a_request_that_is_delayed_until_after_the_next_start_adds_nothing(server: Server):
    """The driver was killed meanwhile; the server still has its request."""
    delayed: list[Commit] = []

    def held_back(commit: Commit) -> Response:
        delayed.append(commit)
        return failure(503, TimeoutError("busy"))

    first = started(server)
    server.around.append(held_back)
    with pytest.raises(OSError, match=r"did not take batch 0 \(.*busy.*none of its rows, or all"):
        first.write(NO_SPARK, numbers(1), 0)
    second = started(server, 0, "driver-2")
    assert delayed[0]().status_code == 409
    second.write(NO_SPARK, numbers(1), 0)
    assert rows(server) == [1]


def test_a_token_that_is_refused_is_not_shown(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SKYPANE_TEST_TOKEN", "hunter2")
    with pytest.raises(
        ConfigError, match=r"shop.answers of catalog prod at http://127.* cannot be used \(.*no such"
    ) as raised:
        started(server)
    assert "hunter2" not in str(raised.value)


def test_a_server_that_is_gone_fails_the_batch_which_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SKYPANE_TEST_TOKEN", TOKEN)
    with running(tmp_path) as one:
        sink = started(one)
    with pytest.raises(OSError, match="did not take batch 0"):
        sink.write(NO_SPARK, numbers(1), 0)
    with running(tmp_path) as one:
        started(one, 0, "driver-2").write(NO_SPARK, numbers(1), 0)
        assert rows(one) == [1]
