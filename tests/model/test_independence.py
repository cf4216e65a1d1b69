"""What a stroke goes by, and what a program may still change."""

from __future__ import annotations

from graphlib import CycleError
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.model.disk import EMPTY, Disk, Operation
from tests.model.independence import Change, ahead, changes, look

PATHS = st.sampled_from(["/a", "/b", "/a/b", "/b/a", "/a/b/c", "/b/a/c"])
WRITERS = st.sampled_from(["one", "two"])


def operations(*names: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Operation]:
    return st.builds(Operation, st.sampled_from(names), st.tuples(*arguments.values()))


STROKES = st.one_of(
    operations("kind", "names", "make", "unlink", "remove_folder", "read", path=PATHS),
    operations("rename", path=PATHS, target=PATHS),
    operations("create", path=PATHS, writer=WRITERS),
    operations("fill", writer=WRITERS, content=st.sampled_from([b"", b"text"])),
)


def after(disk: Disk, strokes: list[Operation]) -> Disk:
    for stroke in strokes:
        disk, _ = stroke.on(disk)
    return disk


@given(st.lists(STROKES, max_size=12), STROKES, st.lists(STROKES, max_size=6))
def test_a_stroke_independent_of_others_changes_gets_the_same_answer(
    before: list[Operation], stroke: Operation, others: list[Operation]
):
    disk = after(EMPTY, before)
    left, answer = stroke.on(disk)
    assume(left == disk)
    minded, now = look(stroke, disk), disk
    for other in others:
        now, was = other.on(now)[0], now
        assume(not any(minded.minds(change) for change in changes(was, now)))
        # A name that is opened again is another file's: writers of the model open each of theirs once.
        assume(stroke.name != "fill" or other.name != "create")
        assert stroke.on(now) == (now, answer)


@pytest.mark.parametrize(
    ("name", "arguments", "change", "is_minded"),
    [
        ("names", ("/a",), Change("/a/new"), True),
        ("names", ("/a",), Change("/a/b/new"), False),
        ("kind", ("/a/b/new",), Change("/a/b"), False),
        ("read", ("/a/b/new",), Change("/a/b"), True),
        ("read", ("/a/c",), Change("/a/c", is_content=True), True),
        ("unlink", ("/a/new",), Change("/a/c", is_content=True), False),
        ("rename", ("/a/new", "/a/c"), Change("/a/new"), True),
        ("remove_folder", ("/a",), Change("/a/b/new"), False),
    ],
)
def test_a_stroke_depends_on_no_more_than_necessary(name: str, arguments: Any, change: Change, *, is_minded: bool):
    disk: Disk = {**EMPTY, "/a": None, "/a/b": None, "/a/c": b"text"}
    stroke = Operation(name, arguments)
    assert stroke.on(disk)[0] == disk
    assert look(stroke, disk).minds(change) == is_minded


def test_what_is_ahead_grows_less_along_the_way():
    edges = {(0, 1): 0b001, (1, 2): 0b010, (1, 3): 0b100, (2, 4): 0, (3, 4): 0}
    assert ahead(edges) == {0: 0b111, 1: 0b110, 2: 0, 3: 0, 4: 0}


def test_a_program_that_comes_back_to_where_it_was_is_refused():
    with pytest.raises(CycleError):
        ahead({(0, 1): 0, (1, 2): 0, (2, 1): 0})
