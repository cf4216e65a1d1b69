"""A real server of S3's API behind a proxy that spoils requests: what a store does is what it would do without."""

from __future__ import annotations

import importlib.util
import random
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from tests.chaos.driver import drive
from tests.chaos.naive import rows
from tests.parameters import slow_but
from tests.servers import s3
from tests.servers.fault_proxy import AFTER, BAD_KEY, BEFORE, DENIED, FINE, SKEWED, FaultProxy, Request
from tests.servers.s3 import BUCKET
from tests.stores.streams import SCENARIOS, BucketStream

from skypane.locations import Location
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.checkpoint_head import HEAD
from skypane.runtime.stores import object_client
from skypane.runtime.stores.object_store import ObjectStore
from skypane.runtime.stores.store import ConflictError
from skypane.types import CheckpointError, ConfigError

FAULTS = (*BEFORE, *AFTER)
WRITES = ("PUT", "POST")
KINDS = (*WRITES, "GET", "HEAD", "LIST")


@pytest.fixture
def store(proxy: FaultProxy) -> ObjectStore:
    proxy.choose = lambda _: FINE
    return ObjectStore(Location.of(f"s3://{BUCKET}/{uuid.uuid4().hex}"))


def _often(chance: random.Random, _: Request) -> str:
    """Choose a fault for a tenth of the requests."""
    return chance.choice([*BEFORE, *AFTER[:2]]) if chance.random() < 0.1 else FINE


def once(proxy: FaultProxy, fault: str, kind: str) -> None:
    """Let the next request of a kind have a fault."""
    left = [1]

    def choose(request: Request) -> str:
        if request.kind != kind or not left:
            return FINE
        left.pop()
        return fault

    proxy.choose = choose


@pytest.mark.parametrize("fault", slow_but((*BEFORE, "reset after", "503 after"), FAULTS))
def test_a_conditional_write_happens_once_whatever_comes_of_its_answer(
    proxy: FaultProxy, store: ObjectStore, fault: str
):
    once(proxy, fault, "PUT")
    first = store.create("a", b"first")
    assert store.stamp("a") == first
    once(proxy, fault, "PUT")
    second = store.replace("a", b"second", first)
    assert (store.read("a"), store.stamp("a")) == (b"second", second)
    once(proxy, fault, "PUT")
    with pytest.raises(ConflictError):
        store.replace("a", b"third", first)
    once(proxy, fault, "PUT")
    with pytest.raises(ConflictError):
        store.create("a", b"third")
    assert store.read("a") == b"second"


@pytest.mark.parametrize("fault", slow_but((*BEFORE, "reset after", "503 after"), FAULTS))
def test_other_requests_are_repeated(proxy: FaultProxy, store: ObjectStore, fault: str):
    once(proxy, fault, "PUT")
    store.put("a", b"first")
    once(proxy, fault, "GET")
    assert store.read("a") == b"first"
    once(proxy, fault, "HEAD")
    assert store.has("a")
    once(proxy, fault, "LIST")
    assert store.listed("file") == ["a"]
    once(proxy, fault, "PUT")
    with store.open_output("b") as stream:
        stream.write(b"second")
    assert store.read("b") == b"second"
    once(proxy, fault, "POST")
    store.remove(["a", "none"])
    assert store.listed("file") == ["b"]


def test_a_store_that_does_not_answer_at_all_is_reported_in_one_line(proxy: FaultProxy, store: ObjectStore):
    proxy.choose = lambda _: "503 before"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(object_client, "RETRIES", {"max_retries": 1})
        object_client._connected.cache_clear()
        with pytest.raises(OSError, match="503") as raised:
            store.create("a", b"first")
    object_client._connected.cache_clear()
    assert "\n" not in str(raised.value)


def stream_in(folder: Path, seed: int = 3, scenario: str = "skyline") -> BucketStream:
    folder.mkdir()
    return BucketStream(scenario, folder, rows(seed, 3), 0, -1)


@pytest.mark.parametrize(("fault", "reason"), [(DENIED, "AccessDenied"), (BAD_KEY, "InvalidAccessKeyId")])
@pytest.mark.parametrize("kind", KINDS)
def test_credentials_that_are_refused_are_reported_in_one_line(
    proxy: FaultProxy, store: ObjectStore, kind: str, fault: str, reason: str
):
    operations: dict[str, Callable[[], object]] = {
        "PUT": lambda: store.create("a", b"first"),
        "GET": lambda: store.read("a"),
        "HEAD": lambda: store.has("a"),
        "LIST": lambda: store.listed("file"),
        "POST": lambda: store.remove(["a"]),
    }
    proxy.choose = lambda request: fault if request.kind == kind else FINE
    with pytest.raises(CheckpointError, match="refuses these credentials") as raised:
        operations[kind]()
    assert "\n" not in str(raised.value)
    assert f"s3://{BUCKET}" in str(raised.value)
    assert kind == "HEAD" or reason in str(raised.value), "an answer to HEAD has no text"


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_store_whose_clock_is_off_holds_a_stream_as_any_does(proxy: FaultProxy, ahead: timedelta, tmp_path: Path):
    made = replace(stream_in(tmp_path / f"{ahead.total_seconds():.0f}"), drained=1)
    proxy.choose, proxy.ahead = lambda _: FINE, ahead
    try:
        drive(made, random.Random(3))
        written = ObjectStore(Location.of(f"{made.place}/checkpoint/skypane"))._client.head(
            f"{made.folder.name}/checkpoint/skypane/{HEAD}"
        )["last_modified"]
        assert abs(written - datetime.now(UTC) - ahead) < timedelta(minutes=30), "so the store dates it"
        made.check()
    finally:
        proxy.ahead = timedelta(0)


def test_a_store_that_refuses_requests_for_their_date_is_reported_with_the_remedy(
    proxy: FaultProxy, store: ObjectStore
):
    proxy.choose = lambda _: SKEWED
    for request in (lambda: store.read("a"), lambda: store.create("a", b""), lambda: store.listed("file")):
        with pytest.raises(CheckpointError, match="the clock of this machine and that of the object store") as raised:
            request()
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        (dict.fromkeys(WRITES, DENIED), "refuses these credentials .*list and read there, and .* to write and delete"),
        (dict.fromkeys(KINDS, BAD_KEY), "refuses these credentials .InvalidAccessKeyId"),
        (dict.fromkeys(KINDS, SKEWED), "clock"),
    ],
    ids=["read-only", "wrong key", "wrong clock"],
)
def test_a_query_that_may_not_write_ends_at_its_start_and_changes_nothing(
    proxy: FaultProxy, faults: dict[str, str], message: str, tmp_path: Path
):
    made = stream_in(tmp_path / uuid.uuid4().hex)
    proxy.choose = lambda request: faults.get(request.kind, FINE)
    with pytest.raises(CheckpointError, match=message) as raised:
        drive(made, random.Random(3))
    assert "\n" not in str(raised.value)
    proxy.choose = lambda _: FINE
    assert DocumentStore.at(made.place).folders() == []


def test_a_bucket_that_is_missing_is_reported_in_one_line(store: ObjectStore):
    del store
    missing = ObjectStore(Location.of("s3://no-such-bucket/folder"))
    for request in (lambda: missing.listed("file"), lambda: missing.read("a"), lambda: missing.create("a", b"")):
        with pytest.raises(CheckpointError, match=r"there is no bucket 'no-such-bucket'$"):
            request()


def test_the_extra_that_is_missing_is_reported_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "obstore" else find(name))
    with pytest.raises(ConfigError, match=r"^checkpoint: s3://bucket/x is in an object store.*skypane\[cloud\]"):
        DocumentStore.at("s3://bucket/x", "checkpoint")
    with pytest.raises(ConfigError, match="not installed"):
        object_client.client_of(Location.of("s3://bucket/x"))


@pytest.mark.parametrize(
    "seeds",
    [
        range(2),
        pytest.param(range(2, 14), marks=pytest.mark.slow),
        pytest.param(range(14, 60), marks=pytest.mark.night),
    ],
)
def test_a_stream_answers_each_row_once_among_faults(proxy: FaultProxy, seeds: range, tmp_path: Path):
    for seed in seeds:
        made = stream_in(tmp_path / f"faults-{seed}", seed, random.Random(seed).choice(SCENARIOS))
        proxy.choose = partial(_often, random.Random(seed))
        drive(made, random.Random(seed))
        proxy.choose = lambda _: FINE
        made.check()


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("gs://bucket/a b", "GCSStore"),
        ("abfss://container@account.dfs.core.windows.net/a b", "AzureStore"),
        ("s3a://bucket/a b", "S3Store"),
    ],
)
def test_each_cloud_has_its_client(address: str, kind: str):
    with s3.connected(1):
        place = Location.of(address)
        assert type(object_client.client_of(place)).__name__ == kind
        assert ObjectStore(place).key("c") == "a b/c"
