"""Folders of object stores among the inputs: planned and read as a batch's driver and tasks do it, without Spark."""

from __future__ import annotations

import gzip
import json
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.exceptions import AlreadyExistsError, GenericError
from tests.runtime.compressed.packing import PACK
from tests.runtime.many import read_batches
from tests.runtime.many.read_batches import NOTHING, N, batches, kept, numbers, parts_of, read_in_step, values_of
from tests.runtime.receiving.test_retention import checkpoint
from tests.servers import fault_proxy, s3
from tests.stores.memory import in_memory

from skypane.locations import Location
from skypane.runtime.compressed.formats import FORMATS
from skypane.runtime.objects import object_text, read_objects
from skypane.runtime.objects.folder_listing import StoredObject, objects_of
from skypane.runtime.spark.sources.many import folder_catalog, object_batches, object_folders
from skypane.runtime.spark.sources.many.discovery import KINDS, listed, to_text
from skypane.runtime.spark.sources.many.event_times import EventTimes
from skypane.runtime.spark.sources.many.input_lag import lag_of_inputs
from skypane.runtime.spark.sources.many.lacking_columns import LackingColumns
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.runtime.stores.object_client import client_of, in_words
from skypane.types import CheckpointError, ConfigError

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

FOLDER = "s3://bucket/in/"
JSON = {"objects": FOLDER, "format": "json"}
OFTEN, SELDOM = {**JSON, "rescan": "0 seconds"}, {**JSON, "rescan": "1 day"}


@pytest.fixture(autouse=True, scope="module")
def no_pauses() -> Iterator[None]:
    """Let each plan list, and list the whole folder as often as it likes: no time passes here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_catalog, "PAUSE", 0)
        patch.setattr(folder_catalog, "_SHARE", 0)
        patch.setattr(object_folders, "clock", lambda: 0.0)
        yield


def forget() -> None:
    """Let this process be a driver, or a task, that has just started."""
    folder_catalog._catalogs.clear()
    object_text._texts.clear()


@contextmanager
def bucket() -> Iterator[Client]:
    """Yield a bucket in memory, empty at first."""
    forget()
    with in_memory():
        yield client_of(Location.of("s3://bucket"))
    forget()


@pytest.fixture
def store() -> Iterator[Client]:
    with bucket() as one:
        yield one


def put(store: Client, name: str, content: bytes) -> None:
    store.put(f"in/{name}", content)


def change(store: Client, name: str, content: bytes | None) -> None:
    """Write an object again, or remove it."""
    if content is None:
        store.delete(f"in/{name}")
    else:
        put(store, name, content)


def planner(*given: object, on_loss: str = "fail", times: EventTimes | None = None) -> Planner:
    """Return the planner of a driver that has just started."""
    forget()
    return read_batches.planner(*given, on_loss=on_loss, times=times)


def rows(plan: Planner, start: Offsets, end: Offsets) -> list[int | str]:
    """Return n of all rows of a batch, as its tasks read them; of malformed ones the error."""
    return [n for _, found in parts_of(plan, start, end, N) for n in values_of(found, lambda one: one.error)]


def read_all(plan: Planner, start: Offsets = NOTHING, most: int | None = None) -> tuple[list[int | str], Offsets]:
    """Return the rows of all batches from `start` on, and where they end."""
    found = list[int | str]()
    for begin, end in batches(plan, most, start):
        found += rows(plan, begin, end)
        start = end
    return found, start


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_the_log_names_a_column_that_no_object_has(store: Client, ending: str, caplog: pytest.LogCaptureFixture):
    plan = planner({"objects": FOLDER, "format": "csv", "header": True})
    plan.lacking = LackingColumns(pa.schema([("ts", pa.int64()), ("price", pa.int64())]))
    plan.latest(NOTHING, None)
    assert not caplog.messages  # no object is there yet
    text = b"ts, prise\n1,2\n"
    put(store, f"a.{ending}", gzip.compress(text) if ending.endswith("gz") else text)
    plan.latest(NOTHING, None)
    (named,) = caplog.messages
    assert named.endswith("null in every row: 'price': did you mean 'prise'?")


NAMES = st.text("ab/é =+", min_size=1, max_size=5).map(lambda name: "/".join(filter(None, name.split("/"))) or "x")


@pytest.mark.long
@given(data=st.data())
def test_each_row_is_read_once_in_the_order_of_arrival_over_batches_and_restarts(data):
    """Names in any order, with folders; plain and compressed; each batch is read again by a driver that knows only Spark's log."""
    with bucket() as store:
        written, seen, place, names = 0, list[int | str](), NOTHING, set[str]()
        plan, batches = planner(JSON), list[tuple[Offsets, Offsets, list[int | str]]]()
        for _ in range(data.draw(st.integers(1, 5))):
            for name in data.draw(st.lists(NAMES, max_size=4)):
                form = data.draw(st.sampled_from(["", *FORMATS]))
                full = name + (FORMATS[form].ending if form else "")
                if any(f"{full}/".startswith(f"{one}/") or f"{one}/".startswith(f"{full}/") for one in names):
                    continue
                names.add(full)
                count = data.draw(st.integers(1, 40))
                text = numbers(*range(written, written + count))
                text = text[: len(text) - data.draw(st.integers(0, 1))]  # the last line may have no line end
                put(store, full, PACK[form](text) if form else text)
                written += count
            for _ in range(data.draw(st.integers(0, 3))):
                if data.draw(st.booleans()):
                    plan = planner(JSON)
                most = data.draw(st.sampled_from([None, 1, 7, 50]))
                end = kept(plan.latest(place, most))
                found = rows(plan, place, end)
                assert most is None or len(found) <= most
                batches.append((place, end, found))
                seen, place = seen + found, end
        for start, end, found in batches:  # whatever has arrived since then
            assert rows(planner(JSON), start, end) == found
        found, place = read_all(plan, place)
        assert seen + found == list(range(written))
        assert planner(JSON).latest(place, 10) == place
        assert rows(planner(JSON), NOTHING, place) == list(range(written))  # as one batch


def test_objects_without_data_are_left_out_and_a_pattern_chooses(store):
    put(store, "a.json", numbers(1))
    put(store, "day=1/b.json.gz", PACK["gzip"](numbers(2)))
    put(store, "_day=1/c.json", numbers(3))
    put(store, "d.csv", b"4\n")
    for name in ("_SUCCESS", "_temporary/e.json", "day=1/.f.json"):
        put(store, name, numbers(0))
    put(store, "empty.json", b"")
    store.put("in-other/a.json", numbers(0))
    assert read_all(planner(f"{FOLDER}*.json*"))[0] == [1, 2, 3]
    assert read_all(planner({"path": FOLDER, "match": "*.csv", "format": "csv"}))[0] == [4]
    assert read_all(planner({"objects": f"{FOLDER}day=1", "format": "json"}))[0] == [2]


def test_an_object_in_the_folders_of_two_inputs_is_read_for_both(store):
    put(store, "day=1/a.json", numbers(1))
    assert read_all(planner(JSON, {**JSON, "objects": f"{FOLDER}day=1"}))[0] == [1, 1]


def test_the_first_line_of_each_object_names_its_columns(store):
    columns = pa.schema([("n", pa.int64()), ("town", pa.string())])
    put(store, "a.csv", b"n,town\n1,Bern\n2,Chur\n3,Brig\n")
    put(store, "b.csv.gz", PACK["gzip"](b"town,n\nThun,4\nBiel,5\n"))
    plan = planner({"objects": f"{FOLDER}*.csv*", "format": "csv", "header": True})
    found = [
        row
        for start, end in batches(plan, 2)
        for _, table in parts_of(plan, start, end, columns)
        for row in cast("pa.Table", table).to_pylist()
    ]
    towns = ("Bern", "Chur", "Brig", "Thun", "Biel")
    assert found == [{"n": n, "town": town} for n, town in enumerate(towns, 1)]


def test_a_line_that_does_not_parse_names_its_object_and_its_place(store):
    put(store, "a.json", numbers(1))
    put(store, "b.json", numbers(2) + b"no\n")
    found, _ = read_all(planner(JSON))
    assert found == [1, "a row must be an object, from { to } (byte 9 of s3://bucket/in/b.json)", 2]


@pytest.mark.parametrize("most", [None, 2])
def test_a_compressed_object_that_is_not_complete_is_reported_since_no_more_comes(store, most: int | None):
    first, text = PACK["gzip"](numbers(1, 2)), PACK["gzip"](numbers(*range(5_000)))
    put(store, "a.json.gz", first + text[: len(text) // 2])
    put(store, "b.json.gz", numbers(1))
    put(store, "c.json.gz", PACK["gzip"](numbers(7)))
    found, _ = read_all(planner(JSON), most=most and 1_500)
    assert [n for n in found if isinstance(n, int)] == [1, 2, 7]
    cut, wrong = [n for n in found if isinstance(n, str)]
    assert f"gzip member at byte {len(first)} of the file is damaged" in cut
    assert "it has not ended, although the file has" in cut
    assert "a.json.gz" in cut
    assert "begin no member of gzip" in wrong


def test_an_object_that_is_written_again_is_one_malformed_row_and_is_not_read_twice(store, monkeypatch):
    monkeypatch.setattr(read_objects, "SETTLING", 0)
    for n in range(5):
        put(store, f"{n}.json", numbers(n))
    found, place = read_all(planner(JSON))
    assert found == [*range(5)]
    put(store, "0.json", numbers(70))  # settled
    put(store, "4.json", numbers(71))  # recent
    put(store, "5.json", numbers(5))
    (*reported, five), place = read_all(planner(JSON), place)
    assert five == 5
    assert [str(one).partition(": ")[0] for one in reported] == [
        f"s3://bucket/in/{n}.json was written again after it was read" for n in (0, 4)
    ]
    assert read_all(planner(JSON), place)[0] == []


@pytest.mark.parametrize("form", ["", "gzip"])
def test_the_rest_of_an_object_that_is_written_again_or_removed_is_reported(store, form: str):
    ending = ".gz" if form else ""
    for name, again in (("a", None), ("b", b"other")):
        text = numbers(*range(100))
        put(store, f"{name}.json{ending}", PACK[form](text) if form else text)
        entry = {"objects": FOLDER, "match": f"{name}.*", "format": "json"}
        plan = planner(entry)
        end = plan.latest(NOTHING, 10)
        assert rows(plan, NOTHING, end) == [*range(10)]
        change(store, f"{name}.json{ending}", again)
        ((reported,), last) = read_all(plan, kept(end))
        what = f"s3://bucket/in/{name}.json{ending} {'was removed' if again is None else 'was written again'}"
        assert reported == f"{what} when its text was read up to byte 90: the rest is not read"
        assert read_all(planner(entry), last)[0] == []


@pytest.mark.parametrize(("again", "expected"), [
    (numbers(3), 3), (None, "s3://bucket/in/b.json was removed before it was read"),
])  # fmt: skip
def test_an_object_that_changes_before_it_is_read_is_read_as_it_is_then_or_is_reported(store, again, expected):
    put(store, "a.json", numbers(1))
    put(store, "b.json", numbers(2))
    plan = planner(JSON)
    end = plan.latest(NOTHING, 1)
    change(store, "b.json", again)
    assert rows(plan, NOTHING, end) == [1]
    assert read_all(plan, kept(end), 1)[0] == [expected]


def test_objects_that_change_while_several_batches_wait_are_noticed_before_their_batch_is_planned(store, monkeypatch):
    """Without a limit of rows the driver reads no objects, and it does not list while more of them wait than a batch takes."""
    for module in (folder_catalog, object_folders):
        monkeypatch.setattr(module, "MOST_OBJECTS", 2)
    for n in range(7):
        put(store, f"{n}.json", numbers(n))
    plan = planner(JSON)
    end = kept(plan.latest(NOTHING, None))
    assert rows(plan, NOTHING, end) == [0, 1]
    store.delete("in/2.json")
    put(store, "3.json", numbers(33))
    found, _ = read_all(plan, end)
    assert found == ["s3://bucket/in/2.json was removed before it was read", 4, 5, 6, 33]


@pytest.mark.parametrize("again", [None, numbers(3)])
def test_a_batch_that_needs_an_object_that_is_gone_fails_or_skips_it(store, again: bytes | None):
    put(store, "a.json", numbers(1))
    put(store, "b.json", numbers(2))
    end = kept(planner(JSON).latest(NOTHING, None))
    change(store, "a.json", again)
    message = r"in/a.json was (removed|written again), but a started batch needs the version"
    with pytest.raises(CheckpointError, match=message):
        rows(planner(JSON), NOTHING, end)
    reported, other = rows(planner(JSON, on_loss="skip"), NOTHING, end)
    assert str(reported).endswith("before all its rows were read")
    assert other == 2


def read_singly(store: Client, plan: Planner, place: Offsets, letter: str, values: Iterable[int]) -> Offsets:
    """Put objects, each of which is read before the next one is put; return where they end."""
    for n in values:
        put(store, f"{letter}{n}.json", numbers(n))
        found, place = read_all(plan, place)
        assert found == [n]
    return place


def settle(store: Client, monkeypatch: pytest.MonkeyPatch, entry: object = OFTEN) -> Offsets:
    """Read nine objects singly, of which all but the last are settled then; return where they end."""
    monkeypatch.setattr(read_objects, "SETTLING", 0)
    return read_singly(store, planner(entry), NOTHING, "m", range(9))


@pytest.fixture
def listings(monkeypatch) -> list[tuple[str, int]]:
    """The listings from now on: the name after which each begins, and the number of objects that it has."""
    found: list[tuple[str, int]] = []

    def recorded(folder: Location, match: str, after: str = "") -> list[StoredObject]:
        objects = list(objects_of(folder, match, after))
        found.append((after, len(objects)))
        return objects

    monkeypatch.setattr(folder_catalog, "objects_of", recorded)
    return found


def test_a_listing_begins_after_the_names_that_are_settled_and_finds_others_after_a_while(store, monkeypatch, listings):
    place = settle(store, monkeypatch)
    assert {after for after, _ in listings} == {""}
    plan = planner(SELDOM)
    assert plan.latest(place, None) == place
    listings.clear()
    place = read_singly(store, plan, place, "n", (10, 11, 12))
    assert {after for after, _ in listings} == {"m7.json"}
    assert max(length for _, length in listings) == 4
    put(store, "a.json", numbers(13))  # a name before those that were read
    assert plan.latest(place, None) == place
    found, place = read_all(planner(SELDOM), place)  # a start lists all
    assert found == [13]
    plan = planner(OFTEN)
    assert plan.latest(place, None) == place
    put(store, "b.json", numbers(14))
    assert read_all(plan, place)[0] == [14]


def test_several_that_become_visible_too_late_fail_the_query_or_are_one_row(store, monkeypatch):
    """As uploads in parts, which have the time of their beginning: here that of the first object."""
    place = settle(store, monkeypatch)
    (first,) = (one.modified for one in objects_of(Location.of(FOLDER)) if one.name == "m0.json")

    def shown(folder: Location, match: str, after: str = "") -> Iterator[StoredObject]:
        for one in objects_of(folder, match, after):
            yield one._replace(modified=first) if one.name.startswith("late") else one

    monkeypatch.setattr(folder_catalog, "objects_of", shown)
    late = {"late1.json": 10, "late2.json": 20, "late3.json": 30}
    for name, n in late.items():
        put(store, name, numbers(n))
    message = r"input s3://bucket/in/: the folder has 3 objects more .*, or set on_loss="
    for most in (None, 1):  # each start fails, until the folder has no such objects
        with pytest.raises(CheckpointError, match=message):
            planner(OFTEN).latest(place, most)

    ((reported,), after) = read_all(planner(OFTEN, on_loss="skip"), place)
    assert str(reported).startswith("s3://bucket/in/ has 3 objects more than were read among those written from 20")
    assert planner(OFTEN).latest(after, None) == after  # they were reported

    for name, n in late.items():  # the remedy
        store.delete(f"in/{name}")
        put(store, f"again-{name}", numbers(n))
    assert read_all(planner(OFTEN), place)[0] == [*late.values()]


def test_an_object_that_is_written_all_the_time_does_not_have_the_whole_folder_listed_for_each_batch(
    store, monkeypatch, listings
):
    place = settle(store, monkeypatch)
    plan = planner(SELDOM)
    monkeypatch.setattr(object_folders, "clock", count(1.0).__next__)
    assert plan.latest(place, None) == place
    monkeypatch.setattr(folder_catalog, "_SHARE", 1e9)
    listings.clear()
    for n in range(3):
        put(store, "m8.json", numbers(80 + n))
        put(store, f"n{n}.json", numbers(n))
        found, place = read_all(plan, place)
        assert found == [n]
    assert "" not in {after for after, _ in listings}
    monkeypatch.setattr(folder_catalog, "_SHARE", 0)
    ((reported,), _) = read_all(plan, place)
    assert str(reported).startswith("s3://bucket/in/m8.json was written again after it was read")


def test_a_folder_of_which_all_was_read_is_not_listed_for_a_moment(store, monkeypatch, listings):
    monkeypatch.setattr(folder_catalog, "PAUSE", 1e9)
    put(store, "a.json", numbers(1, 2))
    plan, place, found = planner(JSON), NOTHING, list[int | str]()
    for _ in range(5):  # as Spark does
        end = kept(plan.latest(place, 1))
        found, place = found + (rows(plan, place, end) if end != place else []), end
    assert found == [1, 2]
    assert len(listings) == 2  # none but those before a batch
    put(store, "b.json", numbers(3))
    assert plan.latest(place, 1) == place
    monkeypatch.setattr(folder_catalog, "PAUSE", 0)
    assert read_all(plan, place)[0] == [3]


def test_the_whole_folder_is_listed_when_many_objects_were_read_since_then(store, monkeypatch, listings):
    place = settle(store, monkeypatch)
    plan = planner(SELDOM)
    assert plan.latest(place, None) == place
    monkeypatch.setattr(folder_catalog, "_MOST_HELD", 3)
    listings.clear()
    read_singly(store, plan, place, "n", range(10, 20))
    assert 1 < [after for after, _ in listings].count("") < 10
    assert max(length for after, length in listings if after) <= 5


def test_names_of_many_writers_are_read_while_the_last_one_writes_more(store, monkeypatch):
    place = settle(store, monkeypatch, SELDOM)
    plan = planner(SELDOM)
    for n in range(5):
        put(store, f"a{n}.json", numbers(10 * n))
        put(store, f"n{n}.json", numbers(10 * n + 1))
        found, place = read_all(plan, place)
        assert 10 * n + 1 in found
    assert read_all(planner(SELDOM), place)[0] == [10, 20, 30, 40]


def test_what_is_written_while_the_whole_folder_is_listed_does_not_settle_before_it_is_read(store, monkeypatch):
    """Its name may be before those that the listing has reached."""
    monkeypatch.setattr(object_folders, "clock", count(0.0, 3_600.0).__next__)  # each listing takes an hour
    place = settle(store, monkeypatch, SELDOM)
    (mark,) = place.marks.values()
    assert len(read_objects.ReadObjects.of(mark[2:]).recent) == 9


def test_an_object_that_is_removed_for_a_while_is_one_that_is_written_again(store, monkeypatch):
    place = settle(store, monkeypatch, SELDOM)
    store.delete("in/m8.json")
    plan = planner(SELDOM)
    assert plan.latest(place, None) == place
    put(store, "m8.json", numbers(80))
    ((reported,), _) = read_all(plan, place)
    assert str(reported).startswith("s3://bucket/in/m8.json was written again after it was read")


def test_offsets_are_short_and_name_only_the_objects_of_their_batch(store, monkeypatch):
    monkeypatch.setattr(read_objects, "SETTLING", 0)
    for n in range(1_200):
        put(store, f"{n:06}.json", numbers(n))
    plan, lengths, found = planner(JSON), list[int](), list[int | str]()
    for place, end in batches(plan):
        found += rows(plan, place, end)
        lengths.append(len(end.marks[FOLDER][1]))
    assert found == [*range(1_200)]
    assert lengths == [500, 500, 200]
    put(store, "last.json", numbers(0))
    assert len(json.dumps(plan.latest(end, None).to_json())) < 500


@pytest.mark.parametrize("most", [None, 7])
@pytest.mark.parametrize("form", ["", "gzip"])
def test_a_query_that_stops_when_all_is_read_reads_all_that_is_there_and_no_more(store, most: int | None, form: str):
    for n in range(12):
        text = numbers(*range(10 * n, 10 * n + 10))
        put(store, f"{n:02}.json", PACK[form](text) if form else text)
    plan = planner({**JSON, "compression": form or "none"})
    plan.stop_here(NOTHING)
    put(store, "new.json", PACK[form](numbers(-1)) if form else numbers(-1))
    assert read_all(plan, NOTHING, most)[0] == [*range(120)]


def test_a_folder_that_has_the_name_of_another_kind_of_input_is_read_from_its_beginning(store):
    put(store, "a.json", numbers(1))
    plan = planner({**JSON, "name": "rows"})
    of_a_compressed_file = Offsets({"rows": 70}, marks={"rows": [30, 70]})
    assert read_all(plan, of_a_compressed_file)[0] == [1]
    with pytest.raises(CheckpointError, match="input rows: a started batch has an input of another kind"):
        planner({**JSON, "name": "rows"}).assigned(NOTHING, of_a_compressed_file)


def test_readers_that_are_free_share_the_objects_of_folders(store, monkeypatch):
    monkeypatch.setattr(object_batches, "_LEAST", 20)
    for n in range(40):
        store.put(f"large/{n:02}.json", numbers(100 + n))
    store.put("small/a.json", numbers(0))
    listing = listed([{"objects": f"s3://bucket/{name}/", "format": "json"} for name in ("large", "small")])
    plan = Planner(lambda: listing, 6)
    tasks = plan.assigned(NOTHING, plan.latest(NOTHING, None))
    read = [[table for _, table in KINDS["objects"].read(task, N)] for task in tasks]
    whole = [[n for table in tables for n in cast("pa.Table", table)["n"].to_pylist()] for tables in read]
    assert len(whole) == 6
    assert max(map(len, whole)) <= 9
    assert sorted(n for task in whole for n in task) == [0, *range(100, 140)]
    assert len(Planner(lambda: listing, 1).assigned(NOTHING, plan.latest(NOTHING, None))) == 1


@pytest.mark.long
def test_folders_of_unequal_size_stay_together_in_event_time(store):
    """1:10 rows over the same time, in objects: rows of the large one would be late by most of it with equal shares."""
    for at in range(5):
        store.put(f"few/{at}.json.gz", PACK["gzip"](numbers(*range(at * 20_000, at * 20_000 + 20_000, 50))))
        store.put(f"many/{at}.json", numbers(*range(at * 20_000, at * 20_000 + 20_000, 5)))
    folders = [{"objects": f"s3://bucket/{name}/", "format": "json"} for name in ("few", "many")]
    plan = planner(*folders, times=EventTimes(N, "n"))
    found, latest = read_in_step(plan, 1000, lambda start, end: list(map(int, rows(plan, start, end))))
    assert len(found) == 22_000
    assert latest < 30_000  # with equal shares it is 90,000


def test_the_metrics_count_the_rows_that_wait(store):
    for n in range(3):
        put(store, f"{n}.json", numbers(*range(100, 200)))
    plan = planner(JSON)
    end = plan.latest(NOTHING, 100)
    plan.assigned(NOTHING, end)
    ((one,)) = plan.seen(0.0, 0.0)
    assert (one.input, one.lag, one.state) == (FOLDER, 200, "behind")


def test_the_status_from_outside_begins_at_the_marks(store, tmp_path: Path):
    put(store, "a.json", numbers(*range(100, 200)))
    end = planner(JSON).latest(NOTHING, None)
    put(store, "b.json", numbers(*range(100, 130)))
    forget()
    (one,) = lag_of_inputs(to_text(listed([JSON])), checkpoint(tmp_path / "state", 0, end.to_json()))
    assert (one.input, one.lag) == (FOLDER, 30)


@pytest.mark.parametrize(
    "secret",
    [
        "s3://AKIA1:s3cr3t@bucket/in/*.json",
        "s3a://AKIA1:s3cr3t/+x@bucket/in/*.json",
        "abfss://in@a.dfs.core.windows.net/x/*.json?sv=1&sig=s3cr3t",
        "gs://bucket/in/*.json?X-Goog-Signature=s3cr3t",
    ],
)
@pytest.mark.parametrize("key", ["objects", "path"])
def test_a_login_or_a_signature_in_an_address_is_refused_and_not_shown(key: str, secret: str):
    with pytest.raises(ConfigError, match="has a login, a port or a signature") as refused:
        listed([{key: secret}])
    assert "s3cr3t" not in str(refused.value)


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    with s3.running() as port:
        yield port


@pytest.fixture
def s3_port(server: int) -> Iterator[int]:
    """The port of a server of S3's API with an empty bucket, of which this process knows nothing."""
    s3.empty(server)
    forget()
    yield server
    forget()


@pytest.mark.long
def test_a_server_of_s3_lists_the_names_after_one_and_sends_few_ranges(s3_port: int):
    with fault_proxy.before(s3_port) as (proxy, own), s3.connected(own):
        store = client_of(Location.of("s3://bucket"))
        for name in ("a b.json", "c.json", "d é=1/e.json.gz"):
            text = numbers(len(name))
            store.put(f"in/{name}", PACK["gzip"](text) if name.endswith("gz") else text)
        folder = Location.of(FOLDER)
        assert [one.name for one in objects_of(folder, after="a b.json")] == ["c.json", "d é=1/e.json.gz"]
        assert proxy.requests[-1].after == "in/a b.json"
        plan, before = planner(JSON), len(proxy.requests)
        found, place = read_all(plan)
        assert sorted(map(int, found)) == [6, 8, 15]
        assert sum(one.kind == "GET" for one in proxy.requests[before:]) == 4  # one for the rows' length
        store.put("in/c.json", numbers(1))
        (reported,), _ = read_all(planner(JSON), place)
        assert "in/c.json was written again after it was read" in str(reported)
        store.delete("in/a b.json")
        end = kept(planner(JSON).latest(NOTHING, None))
        store.put("in/c.json", numbers(1, 2, 3, 4))
        with pytest.raises(CheckpointError, match="was written again, but a started batch needs"):
            rows(planner(JSON), NOTHING, end)


@pytest.mark.parametrize("what", ["error sending request", "403 Forbidden", "NoSuchBucket", "RequestTimeTooSkewed"])
def test_no_traceback_shows_the_signature_of_an_address(what: str):
    told = GenericError(f"{what} for url (https://a.blob.core.windows.net/in?sv=1&sig=s3cr3t&comp=list)")
    with pytest.raises((OSError, CheckpointError)) as raised, in_words("abfss://in@a.dfs.core.windows.net/x", "in"):
        raise told
    shown = "".join(traceback.format_exception(raised.value))
    assert "cannot use abfss://in@a" in shown or "sig=(not shown)&comp=list" in shown
    assert "s3cr3t" not in shown


@pytest.mark.parametrize(
    "refused",
    [
        GenericError("Server returned non-2xx status code: 403 Forbidden: <Code>InvalidObjectState</Code>"),
        AlreadyExistsError("Server returned non-2xx status code: 409 Conflict: <Code>BlobArchived</Code>"),
    ],
)
def test_an_object_in_an_archive_is_reported_as_such(refused: Exception):
    archived = pytest.raises(CheckpointError, match=r"cannot read s3://bucket/in/a\.json: it is in an archive")
    with archived, in_words("s3://bucket/in/a.json", "bucket"):
        raise refused


@pytest.mark.long
def test_credentials_are_in_no_offset_and_no_error(s3_port: int):
    with fault_proxy.before(s3_port) as (proxy, own), s3.connected(own):
        client_of(Location.of("s3://bucket")).put("in/a.json", numbers(1))
        end = planner(JSON).latest(NOTHING, None)
        kept_text = json.dumps(end.to_json()) + to_text(listed([JSON]))
        assert not any(secret in kept_text for secret in ("unheard-of", '"key"'))
        proxy.choose = lambda _: fault_proxy.BAD_KEY
        with pytest.raises(CheckpointError, match="refuses these credentials") as refused:
            planner(JSON).latest(NOTHING, None)
        assert "unheard-of" not in str(refused.value)
