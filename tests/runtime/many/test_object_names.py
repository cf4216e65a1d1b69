"""Objects with any name that S3 takes: each row is read once, and an object that no client can request is one row."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from datetime import timedelta
from urllib.request import Request, urlopen

import pytest
from obstore import sign
from obstore.store import GCSStore, S3Store
from tests.runtime.many.read_batches import NOTHING, kept, numbers
from tests.runtime.many.test_object_folders import FOLDER, forget, no_pauses, planner, read_all, rows
from tests.servers import fault_proxy, s3

from skypane.locations import Location
from skypane.runtime.objects import folder_listing
from skypane.runtime.objects.folder_listing import objects_of
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.runtime.stores import object_client, s3_addresses
from skypane.types import CheckpointError

__all__ = ["no_pauses"]  # for all tests of this module

READ = [
    "a//b.json", "/x.json", "//y.json", "a///b.json", "a\rb.json", "a\tb.json", "a\x01b.json", "\x7f.json", "a\x1b[31m.json",
    "dir/", "%2e%2e/z.json", "%2F/a%2Fb.json", "a%b.json", "é//é.json", "\u202e//n.json", "a b//c d.json",
    "a+b//c+d.json", "a?b//c?.json", "a#b//n.json", "[a]//*.json", "'\"//n.json", "x" * 900 + "//n.json", "~//n.json",
    "a\\b//n.json", "a{b}//n.json", "a^|`//n.json", "<x>&amp;//n.json", "日本//n.json", " lead// .json ", "a;b=c&d//n.json",
    "a:@!$(),//n.json", "day//_d=1/a.json", "good.json", "a/b.json", "x.json", "é.json", "z b.json", "a../b...json",
]  # fmt: skip
"""Names of objects that are read."""
UNREAD = {name: name for name in ("./a.json", "../a.json", "a/./b.json", "a/../b.json", "c/..")} | {"b//": "b/"}
"""Names of objects that are not read, and how they are reported."""
HIDDEN = [".a//b.json", "_a//b.json", "a//_SUCCESS", "a//.b/c.json", "../_b.json"]


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "7")  # so that listings have many pages
        with s3.running() as port:
            yield port


@pytest.fixture(autouse=True)
def store(server: int) -> Iterator[fault_proxy.FaultProxy]:
    """A server with an empty bucket, as this process sees it."""
    s3.empty(server)
    with fault_proxy.before(server) as (proxy, own), s3.connected(own):
        forget()
        yield proxy
    forget()


def lists(proxy: fault_proxy.FaultProxy) -> int:
    return sum(one.kind == "LIST" for one in proxy.requests)


def restarted() -> Planner:
    return planner({"objects": FOLDER, "format": "json", "rescan": "0 seconds"})


@pytest.mark.long
@pytest.mark.parametrize("most", [None, 5])
def test_each_name_is_read_once_or_reported_once_over_batches_and_restarts(server: int, most: int | None):
    names = [*READ, *UNREAD, *HIDDEN]
    found, place = list[int | str](), NOTHING
    for some in (names[::2], names[1::2], []):
        for name in some:
            s3.put(server, f"in/{name}", numbers(names.index(name)))
        more, place = read_all(restarted(), place, most)
        assert bool(more) == bool(some)
        found += more
    assert sorted(n for n in found if isinstance(n, int)) == [*range(len(READ))]
    reported = sorted(text for text in found if isinstance(text, str))
    assert [text.partition(" is not read")[0] for text in reported] == sorted(
        f"{FOLDER}{name}" for name in UNREAD.values()
    )


@pytest.mark.long
@pytest.mark.parametrize("first", ["dir", "dir/", "both"])
def test_names_that_differ_by_a_slash_at_the_end_are_not_taken_for_each_other(server: int, first: str):
    names, found, place = ["dir", "dir-x", "dir/", "dir/x"], list[int | str](), NOTHING
    begin = names if first == "both" else [first]
    for some in (begin, [name for name in names if name not in begin], []):
        for name in some:
            s3.put(server, f"in/{name}", numbers(names.index(name)))
        more, place = read_all(restarted(), place)
        found += more
    wrong = sorted(str(one).partition(": ")[0] for one in found if isinstance(one, str))
    again = [f"{FOLDER}dir was written again after it was read"] if first == "dir/" else []
    assert wrong == [*again, f"{FOLDER}dir/ is not read"]
    assert sorted(one for one in found if isinstance(one, int)) == ([1, 2, 3] if again else [0, 1, 3])


@pytest.mark.long
def test_a_batch_that_is_replayed_has_the_same_rows_or_names_what_is_gone(server: int):
    for n, name in enumerate(["a\x01//b.json", "../a.json", "dir/", "z.json"]):
        s3.put(server, f"in/{name}", numbers(n))
    end = kept(restarted().latest(NOTHING, None))
    first = rows(restarted(), NOTHING, end)
    assert len(first) == 4
    assert rows(restarted(), NOTHING, end) == first
    client, key = next(s3_addresses.clients_of(Location.of(FOLDER).child("a\x01//b.json")))
    assert isinstance(client, S3Store)
    urlopen(Request(sign(client, "DELETE", key, timedelta(minutes=1)), method="DELETE")).close()  # noqa: S310
    with pytest.raises(CheckpointError, match=r"in/a\\x01//b\.json was removed, but a started batch needs"):
        rows(restarted(), NOTHING, end)


@pytest.mark.long
def test_a_drain_reads_all_that_is_there_though_the_last_one_cannot_be_read(server: int):
    s3.put(server, "in/a.json", numbers(1))
    s3.put(server, "in/z/../a.json", numbers(2))
    plan = restarted()
    plan.stop_here(NOTHING)
    s3.put(server, "in/z/../b.json", numbers(3))
    s3.put(server, "in/zz.json", numbers(4))
    (n, reported), _ = read_all(plan)
    assert n == 1
    assert "z/../a.json is not read" in str(reported)


@pytest.mark.long
def test_a_name_outside_the_pattern_is_not_reported(server: int):
    s3.put(server, "in/a.json", numbers(1))
    for name in ("b/c//d.txt", "b/../e.csv", "f\x01"):
        s3.put(server, f"in/{name}", b"\0")
    assert read_all(planner({"objects": f"{FOLDER}*.json"}))[0] == [1]


@pytest.mark.long
def test_a_name_costs_one_request_of_a_listing(store, server: int, monkeypatch):
    monkeypatch.setattr(folder_listing, "_PAGE", 7)
    for n in range(20):
        s3.put(server, f"in/{n:02}.json", numbers(n))
    assert len([*objects_of(Location.of(FOLDER))]) == 20
    assert lists(store) == 3
    s3.put(server, "in/10//a.json", numbers(20))
    store.requests.clear()
    assert [one.name for one in objects_of(Location.of(FOLDER))][9:12] == ["09.json", "10.json", "10//a.json"]
    assert lists(store) == 4


@pytest.mark.long
def test_a_listing_begins_after_any_name(server: int):
    names = ["a.json", "b//c.json", "d\x01.json", "dir", "dir/", "dir/x", "e.json"]
    for name in names:
        s3.put(server, f"in/{name}", numbers(1))
    for at, name in enumerate(names):  # obstore lists "dir/" once more: it requests what is after "dir"
        assert [one.name for one in objects_of(Location.of(FOLDER), after=name)] == names[at + (name != "dir/") :]


@pytest.mark.long
def test_a_folder_at_the_root_of_a_bucket_has_names_that_begin_with_a_slash(server: int):
    for n, name in enumerate(["/a.json", "//b.json", "c.json", "d/"]):
        s3.put(server, name, numbers(n))
    assert sorted(map(str, read_all(planner({"objects": "s3://bucket/", "format": "json"}))[0])) == ["0", "1", "2", "3"]


def test_the_object_of_the_folder_itself_is_not_in_it(server: int):
    s3.put(server, "in/", numbers(1))
    s3.put(server, "in/a.json", numbers(2))
    assert read_all(restarted())[0] == [2]


@pytest.mark.long
def test_a_list_is_requested_again_and_no_error_has_a_signature(store, server: int, monkeypatch):
    monkeypatch.setattr(s3_addresses, "_PAUSES", (0, 0))
    s3.put(server, "in/a//b.json", numbers(1))
    for fault in ("503 before", "reset after"):
        store.choose = lambda _, fault=fault: fault if lists(store) in (2, 3) else fault_proxy.FINE
        store.requests.clear()
        assert [one.name for one in objects_of(Location.of(FOLDER))] == ["a//b.json"]
        assert lists(store) == 4
    for fault, error in (
        ("503 before", "SlowDown"),
        (fault_proxy.BAD_KEY, "InvalidAccessKeyId"),
        ("reset after", "no list"),
    ):
        store.choose = lambda _, fault=fault: fault if lists(store) > 1 else fault_proxy.FINE
        store.requests.clear()
        with pytest.raises((OSError, CheckpointError), match=error) as raised:
            [*objects_of(Location.of(FOLDER))]
        assert lists(store) == (2 if fault == fault_proxy.BAD_KEY else 4)
        shown = "".join(traceback.format_exception(raised.value))
        assert "X-Amz" not in shown
        assert "unheard-of" not in shown


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["gs", "s3"])
def test_where_no_address_is_signed_the_query_ends_and_the_error_has_the_name(server: int, scheme: str, monkeypatch):
    """Google's client before this server, whose answers are like Google's; and one of S3 without credentials."""
    s3.put(server, "in/a\x1b//b.json", numbers(1))
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    if scheme == "gs":
        address = f"http://127.0.0.1:{server}"
        google = GCSStore(
            "bucket", config={"skip_signature": True, "base_url": address}, client_options={"allow_http": True}
        )
        monkeypatch.setattr(object_client, "_connected", lambda *_: google)
    error = rf"{scheme}://bucket/in.*a\\x1b//b\.json.*copy the object to another name"
    with pytest.raises(CheckpointError, match=error):
        [*objects_of(Location.of(f"{scheme}://bucket/in/"))]
