"""Batches: one with a value in each of its fields, made by hand, and any."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.reporting.made import HOUR, batch

from skypane.cause import Cause
from skypane.metrics import BatchMetrics, InputMetrics, QueryMetrics
from skypane.policy import Decision

COUNTS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 5), max_size=3)


@st.composite
def batches(draw: st.DrawFn) -> BatchMetrics:
    by_source, answers = draw(COUNTS), draw(st.integers(0, 3))
    return batch(
        rows=draw(st.integers(0, 9)),
        late_by_source=by_source,
        late_rows=sum(by_source.values()) + draw(st.integers(0, 3)),
        quarantined=draw(COUNTS),
        windows=draw(st.integers(0, 3)),
        answers=answers,
        latency=draw(st.floats(0, 400)) if answers else None,
        open_panes=draw(st.integers(0, 9)),
        wlq_where=draw(st.sampled_from(["driver", "threads", "spark"])),
        seconds={name: draw(st.floats(0, 400)) for name in ("total", "plq", "sink")},
    )


def full() -> BatchMetrics:
    return batch(
        rows=100,
        late_rows=3,
        quarantined={"null price": 2},
        late_by_source={"a": 1, "b": 1},
        punctuation=HOUR,
        newest=2 * HOUR,
        slack=HOUR,
        seen_rows=400,
        dropped_rows=4,
        totals={"read": 400, "answered": 320, "late": 4, "quarantined": 10, "held": 6, "open": 60},
        unavoidable_rows=1,
        drop_budget=0.05,
        amend_budget=0.1,
        open_panes=5,
        open_rows=60,
        open_bytes=7_000,
        windows=2,
        window_rows=9,
        latest_window={"start": 0, "end": HOUR, "rows": 3},
        empty_windows=1,
        early_windows=4,
        held_rows=6,
        rho=0.5,
        rho_wlq=None,
        workers={"plq": 2, "wlq": 3},
        executors=4,
        pause=0.25,
        front={"adds": 8, "dels": 7, "rows": 11, "stored": 20},
        amended={"windows": 2, "all_answered": 40, "all_amended": 3},
        inputs=(
            InputMetrics("x", 0, 1.0, 1.0, 12, 0, "behind", waiting=3.5),
            InputMetrics("y", 1, 1.0, 1.0, 1, 0, "behind", waiting=1.0),
            InputMetrics("z", 1, None, None, 0, 0, "gone"),
        ),
        answers=2,
        latency=4.0,
        decisions=(
            Decision("lift", "driver", "few rows"),
            Decision("latency", "kept", "4 s for the promised 5 s", {"promised": 5.0}),
        ),
        causes=(SLOW,),
    )


SLOW = Cause("slow sink", "", "slow batches", 7, 3, 1e6, 5, 7, "the sink", "a faster sink", examples=("price=1",))


def of_two_queries() -> BatchMetrics:
    """Return a batch of two queries, of which the second answered more and later windows."""
    one = QueryMetrics.of(full())
    other = QueryMetrics.of(
        batch(late_rows=5, quarantined={"null price": 1}, windows=7, punctuation=3 * HOUR, newest=4 * HOUR)
    )
    return batch(rows=100, late_rows=8, queries={"best": one, "load": other})
