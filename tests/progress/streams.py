"""Late streams as tests draw them: batches of event times, nearly sorted, in whole microseconds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from skypane.progress import PaneArrivals, SourceCount
from skypane.windows import Windows

PANE = 10
PANES = Windows(PANE, PANE)


def tuples():
    """A tuple, given by how far time moves on before it, and how late it is."""
    delay = st.one_of(st.just(0), st.integers(0, 5), st.integers(0, 200))
    return st.tuples(st.integers(0, 12), delay)


def batches(max_batches: int = 12):
    """Batches of event times; a batch has at least one row."""
    return st.lists(st.lists(tuples(), min_size=1, max_size=12), min_size=1, max_size=max_batches).map(_in_order)


def _in_order(drawn: list[list[tuple[int, int]]]) -> list[list[int]]:
    now, out = 1_000, []
    for batch in drawn:
        times = []
        for advance, delay in batch:
            now += advance
            times.append(now - delay)
        out.append(times)
    return out


def arrivals(times: list[int]) -> PaneArrivals:
    return PaneArrivals.at_once(times, PANES)


def counted(times, names, windows, closed=None):
    """The arrivals of a batch with the sources of its rows; late are those whose pane ends by the punctuation `closed`."""
    late = np.zeros(len(times), bool) if closed is None else windows.pane_end(windows.panes_at(times)) <= closed
    sources = {
        str(name): SourceCount(int(mine.sum()), int(late[mine].sum()), int(times[mine].max()))
        for name in np.unique(names).tolist()
        for mine in [names == name]
    }
    return replace(PaneArrivals.at_once(times, windows), sources=sources)


def states(policy, event, batch, windows=1_000_000):
    """Yield the state after each batch of so many rows; windows that are a number are panes of that length."""
    windows = Windows(windows, windows) if isinstance(windows, int) else windows
    state = policy.init()
    for start in range(0, len(event), batch):
        state = policy.decide(state, PaneArrivals.at_once(event[start : start + batch], windows))[0]
        yield state


def steps(policy, stream, windows=PANES, begun=None):
    """The state after each batch, taken as the engine takes it, from the first state on or from one that has begun."""
    state, out = begun or policy.init(), []
    for times in stream:
        state = policy.decide(state, PaneArrivals.at_once(times, windows))[0]
        out.append(state)
    return out


def in_order_of_arrival(event, delay):
    """The event times in the order in which their rows arrive, in whole microseconds."""
    return event[np.argsort(event + delay, kind="stable")].astype(np.int64)


def heavy_tailed(rows: int, shape: float, scale: float, rng: np.random.Generator):
    """Event times in order of arrival: a tuple per millisecond on average, Pareto delays, scale in seconds."""
    event = np.cumsum(rng.exponential(1_000, rows))
    arrival = event + rng.pareto(shape, rows) * scale * 1e6
    seen = arrival <= event[-1]
    return event[seen][np.argsort(arrival[seen], kind="stable")].astype(np.int64)
