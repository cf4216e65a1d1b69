"""What was read of a folder, against a definition that keeps each name and version."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.runtime.objects import read_objects
from skypane.runtime.objects.folder_listing import StoredObject
from skypane.runtime.objects.read_objects import SETTLING, FolderChanges, ReadObjects, in_order

MINUTE = 60_000_000


@dataclass
class Folder:
    """A folder, and a reader of it that keeps what it has read in a few texts."""

    there: dict[str, StoredObject] = field(default_factory=dict)
    read: ReadObjects = field(default_factory=ReadObjects)
    rows: list[StoredObject] = field(default_factory=list)
    rewritten: list[StoredObject] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    now: int = 1_700_000_000_000_000

    def put(self, name: str, *, back: int = 0) -> StoredObject:
        """Write an object; it shows a time that is `back` microseconds ago."""
        self.there[name] = StoredObject(name, self.now - back, 10, f"{name} at {self.now}")
        return self.there[name]

    def look(self) -> FolderChanges:
        self.read = ReadObjects.of(json.loads(json.dumps(self.read.to_json())))
        return self.read.compared(self.there.values)

    def step(self, most: int = 1_000) -> FolderChanges:
        """List the folder, and read what is new, at most so many objects; note what is reported."""
        found = self.look()
        taken, left = found.new[:most], found.new[most:]
        self.rows += taken
        self.rewritten += found.rewritten
        self.hidden += found.hidden
        since = min((one.modified for one in left), default=None)
        self.read = found.read.with_read([*taken, *found.rewritten], since)
        return found

    def live(self, new: Iterable[str]) -> None:
        """Write an object a minute, and read what is new after each."""
        for name in new:
            self.put(name)
            self.now += MINUTE
            self.step()

    def check(self, new: Iterable[StoredObject] = (), rewritten: Iterable[StoredObject] = ()) -> None:
        """Check that these are found, that nothing is hidden, and that nothing is found once more."""
        found = self.step()
        assert (found.new, found.rewritten, found.hidden) == (tuple(new), tuple(rewritten), ())
        assert self.step() == FolderChanges((), (), (), self.read)


names = st.text("abc/", min_size=1, max_size=4)


@given(st.lists(st.tuples(st.lists(names, max_size=8), st.integers(0, 8 * MINUTE), st.integers(0, 5), st.booleans()),
                max_size=12))  # fmt: skip
def test_each_object_is_read_once_whatever_its_name_and_in_the_order_of_time(steps):
    """Names in any order; times up to eight minutes back; some are removed after they were read; a few a batch."""
    folder, written = Folder(), set[str]()
    for given_names, back, most, remove in steps:
        folder.now += 3 * MINUTE
        for name in given_names:
            if name not in written:
                folder.put(name, back=back)
                written.add(name)
        found = folder.step(most)
        assert found.new == in_order(found.new)
        if remove and folder.rows:
            folder.there.pop(folder.rows[0].name, None)
    while folder.step(3).new:
        pass
    assert sorted(one.name for one in folder.rows) == sorted(written)
    assert (folder.rewritten, folder.hidden) == ([], [])


def settled(count: int = 40) -> Folder:
    """Return a folder of which most objects are settled."""
    folder = Folder()
    folder.live(f"{at:04}" for at in range(count))
    assert len(folder.read.recent) < count / 2
    return folder


@given(at=st.integers(0, 39))
def test_an_object_that_is_written_again_is_reported_once_and_not_read_however_old_it_is(at: int):
    folder = settled()
    again = folder.put(f"{at:04}")
    folder.put("0100")
    for _ in range(20):
        folder.now += MINUTE
        folder.step()
    assert folder.rewritten == [again]
    assert [one.name for one in folder.rows] == [*(f"{n:04}" for n in range(40)), "0100"]
    assert folder.hidden == []


def test_the_same_contents_may_be_written_again_while_an_object_is_recent():
    folder = settled()
    stamp = folder.there["0039"].stamp
    folder.there["0039"] = StoredObject("0039", folder.now, 10, stamp)
    folder.live(f"{at:04}" for at in range(40, 80))
    assert [one.name for one in folder.rows] == [f"{n:04}" for n in range(80)]
    assert (folder.rewritten, folder.hidden) == ([], [])


@given(minutes=st.integers(11, 45), name=names)
def test_an_object_that_shows_a_time_long_ago_is_found_by_the_sums(minutes: int, name: str):
    folder = settled()
    late = folder.put(name, back=minutes * MINUTE)
    found = folder.step()
    assert found.new == (late,)
    assert folder.step().new == ()
    assert folder.hidden == []


def test_several_that_show_one_time_long_ago_are_reported_by_their_number():
    folder = settled()
    for name in "xyz":
        folder.put(name, back=20 * MINUTE)
    assert folder.step().new == ()
    (why,) = folder.hidden
    assert why.startswith("has 3 objects more than were read among those written from 20")
    assert folder.step() == FolderChanges((), (), (), folder.read)


def test_several_are_found_if_nothing_else_of_their_time_is_there_also_by_batches_that_read_one_each():
    folder = settled()
    folder.there.clear()  # as a program does that removes what it has read
    assert folder.step().new == ()
    late = [folder.put(name, back=20 * MINUTE) for name in "xyz"]
    for one in late:
        assert folder.step(1).new[0] == one
    assert folder.step().new == ()
    assert folder.hidden == []


@given(names=st.sets(st.integers(0, 39), min_size=1))
def test_many_that_are_written_again_are_reported_while_names_ascend(names: set[int]):
    folder = settled()
    again = [folder.put(f"{n:04}") for n in sorted(names)]
    new = folder.put("0100")
    found = folder.step()
    assert sorted(found.rewritten) == again
    assert (found.new, found.hidden) == ((new,), ())


def test_two_of_a_span_are_reported_among_others_with_names_in_any_order():
    folder = settled()
    again = [folder.put(name) for name in ("0003", "0007")]
    new = [folder.put(name) for name in ("0003x", "a", "0007x")]
    found = folder.step()
    assert (sorted(found.rewritten), sorted(found.new), found.hidden) == (again, sorted(new), ())


def read_by_listings_of_the_last_names(folder: Folder, minutes: int) -> None:
    """Read an object a minute, while the whole folder is not listed."""
    for at in range(minutes):
        folder.now += MINUTE
        new = folder.put(f"new-{at:04}")
        folder.rows.append(new)
        folder.read = folder.read.with_read([new], None)


def test_names_before_those_of_listings_are_read_however_much_was_read_before_the_whole_folder_is_listed():
    """As where each of many writers has a folder: listings have those of the last one only."""
    folder = settled()
    read_by_listings_of_the_last_names(folder, 20)
    others = [folder.put(f"0000-{n:02}") for n in range(30)]
    read_by_listings_of_the_last_names(folder, 90)
    folder.check(new=others)


@pytest.mark.parametrize("name", ["0010", "0185", "0198"])
def test_an_object_that_was_written_again_long_before_the_whole_folder_is_listed_is_reported(name: str):
    folder = settled(200)
    again = folder.put(name)
    read_by_listings_of_the_last_names(folder, 120)
    folder.check(rewritten=[again])


def test_what_is_removed_while_others_are_written_hides_none_of_these():
    """Only in one span of time could what is removed hide an object that was written again."""
    folder = settled(200)
    for name in ("0000", "0001", "0002"):  # the rule of a bucket removes the oldest
        del folder.there[name]
    again, new = folder.put("0100"), folder.put("zzz")
    folder.check(new=[new], rewritten=[again])


def test_what_is_kept_is_short_whatever_the_history():
    folder = Folder()
    for at in range(1_500):
        folder.now += 7 * MINUTE
        folder.put(f"{at:06}")
        if at % 50 == 0:
            folder.step()
    folder.step()
    assert len(folder.read.spans) <= read_objects._MOST_SPANS
    assert sum(one.objects for one in folder.read.spans) + len(folder.read.recent) == 1_500
    assert len(json.dumps(folder.read.to_json())) < 2_000
    assert folder.look().new == ()


@pytest.mark.parametrize("of_one_time", [False, True])
def test_many_at_once_are_known_by_name_only_as_far_as_their_time_is_the_same(of_one_time: bool):
    folder = Folder()
    for at in range(2_000):
        folder.now += not of_one_time
        folder.put(f"{at:04}")
    while folder.step(300).new:
        pass
    assert len(folder.rows) == len(set(folder.rows)) == 2_000
    assert len(folder.read.recent) <= (2_000 if of_one_time else read_objects.MOST_RECENT)


def test_an_object_that_waits_never_counts_as_read():
    """Late ones, more than a batch takes, while others have settled what is after them."""
    folder = settled()
    for at in range(30):
        folder.put(f"late-{at:02}", back=SETTLING - MINUTE)
    for _ in range(40):
        folder.now += MINUTE
        folder.put(f"new {folder.now}")
        folder.step(3)
    while folder.step(3).new:
        pass
    assert len(folder.rows) == len({one.name for one in folder.rows}) == 40 + 30 + 40
