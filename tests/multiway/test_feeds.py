"""Answers of feeds against the definition, whatever arrives when."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.multiway.test_ready_merge import Tuple, arrivals, streams

import skypane as sp
from skypane.multiway import Feeds
from skypane.operators.window_query import WindowAnswer
from skypane.plan import Plan
from skypane.runtime import local
from skypane.types import BadInputError, ConfigError

WINDOWS = sp.Windows(4, 2)
QUERY = sp.Aggregate("of", n=sp.count(), last=sp.last("n", order="t"))
SCHEMA = pa.schema([("t", pa.timestamp("us")), ("of", pa.int64()), ("n", pa.int64())])


def table(batch: list[Tuple]) -> pa.Table:
    return pa.table([list(column) for column in zip(*batch, strict=True)] or [[], [], []], schema=SCHEMA)


def told(answers: list[WindowAnswer]) -> list[tuple[int, list[dict[str, object]]]]:
    return [(one.window, sorted(one.rows.to_pylist(), key=lambda row: int(str(row["of"])))) for one in answers]


@given(st.data(), streams())
def test_feeds_answer_as_is_defined_whatever_arrives_when(data: st.DataObject, inputs: list[list[Tuple]]):
    names = [str(number) for number in range(len(inputs))]
    feeds, answers = Feeds(names, QUERY, WINDOWS, time="t"), list[WindowAnswer]()
    newest = dict.fromkeys(names, -1)
    for batch in data.draw(arrivals(inputs)):
        for number, name in enumerate(names):
            mine = [one for one in batch if one[1] == number]
            newest[name] = mine[-1][0] if mine else newest[name]
            answers += feeds.push(name, table(mine))
        ends = [WINDOWS.bounds(one.window)[1] for one in answers]
        assert all(end <= min(newest.values()) for end in ends)
    for name in names:
        answers += feeds.leave(name)
    assert feeds.waiting == 0
    everything = table(sorted(one for tuples in inputs for one in tuples))
    assert told(answers) == told(list(local.answers(Plan(QUERY, WINDOWS, "t"), [everything, local.Drain()])))


def test_a_window_is_answered_as_soon_as_no_feed_can_change_it():
    feeds = Feeds(["a", "b"], QUERY, WINDOWS, time="t")
    assert feeds.push("a", table([(1, 0, 0), (9, 0, 1)])) == []
    assert feeds.waiting == 2
    assert [one.window for one in feeds.push("b", table([(3, 1, 0)]))] == [-1]
    assert [one.window for one in feeds.push("b", table([(4, 1, 1)]))] == [0]
    assert [one.window for one in feeds.leave("b")] == [1, 2]
    assert [one.window for one in feeds.leave("a")] == [3, 4]  # windows without rows have no answer


def test_rows_that_a_query_cannot_rank_are_counted():
    feeds = Feeds(["a"], sp.Skyline(sp.low("n")), WINDOWS, time="t")
    rows = pa.table([[1, 2], [0, 0], [None, 3]], schema=SCHEMA)
    feeds.push("a", rows)
    assert [one.rows["n"].to_pylist() for one in feeds.leave("a")] == [[3], [3]]
    assert feeds.rejected == {"null n": 1}


def test_what_cannot_be_merged_is_refused_and_adds_nothing():
    feeds = Feeds(["a", "b"], QUERY, WINDOWS, time="t")
    with pytest.raises(BadInputError, match="row 1 of a has no t"):
        feeds.push("a", pa.table([[1, None], [0, 0], [0, 1]], schema=SCHEMA))
    feeds.push("a", table([(5, 0, 0)]))
    with pytest.raises(BadInputError, match="goes backwards"):
        feeds.push("a", table([(6, 0, 1), (4, 0, 2)]))
    assert feeds.waiting == 1
    with pytest.raises(ConfigError, match="unknown feed 'c'; there are a, b"):
        feeds.push("c", table([]))
    with pytest.raises(ConfigError, match="rows of a need a column 't' of timestamps"):
        feeds.push("a", pa.table({"t": [1]}))
    with pytest.raises(ConfigError, match="names must be one or more different names"):
        Feeds(["a", "a"], QUERY, WINDOWS, time="t")
