from __future__ import annotations

import pytest

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.exchange import CONFIRM, PROBE_EVERY, Exchange, Layout

MILLION = 1_000_000
COST = DEFAULT_COSTS.exchanging(MILLION)


def layout(busy: tuple[float, ...], *, partials: int = 100, merge_seconds: float = 0.0, rows: int = MILLION) -> Layout:
    return Layout(rows=rows, busy=busy, panes=100, partials=partials, merge_seconds=merge_seconds)


def decide(seen: Layout) -> Exchange:
    """Return the decision of a stream whose batches all lie so."""
    exchange = Exchange()
    for _ in range(CONFIRM):
        exchange = exchange.observe(seen, workers=2)
    return exchange


def test_rows_stay_where_they_are_until_something_is_measured():
    assert not Exchange().needed


def test_an_even_source_needs_no_exchange():
    decided = decide(layout((0.5, 0.5)))
    assert decided == Exchange(
        needed=False,
        because="balance would save 0 ms, whole panes 0 ms (1.00 partitions a pane), an exchange costs 410 ms",
    )


def test_one_source_partition_leaves_workers_idle():
    """Alone it takes 1.0 s, on two workers 0.5 s: half a second is more than the exchange costs."""
    decided = decide(layout((1.0,)))
    assert decided.needed
    assert decided.because.startswith("balance would save 500 ms, whole panes 0 ms")


def test_a_slow_start_is_not_believed():
    exchange = Exchange()
    for busy in ((1.0,), (1.0,), (0.5, 0.5), (1.0,), (1.0,)):
        exchange = exchange.observe(layout(busy), workers=2)
        assert not exchange.needed
    assert exchange.observe(layout((1.0,)), workers=2).needed


def test_panes_cut_in_four_cost_three_quarters_of_the_merging():
    decided = decide(layout((0.5, 0.5), partials=400, merge_seconds=0.6))
    assert decided.needed
    assert "whole panes 450 ms (4.00 partitions a pane), an exchange costs 410 ms" in decided.because


@pytest.mark.parametrize(("idle", "needed"), [(COST * 0.99, False), (COST * 1.01, True)])
def test_the_gain_is_held_against_the_cost(idle: float, needed: bool):
    assert decide(layout((2 * idle,))).needed is needed


def test_gains_add_up():
    assert not decide(layout((0.5,))).needed
    assert not decide(layout((0.25, 0.25), partials=200, merge_seconds=0.5)).needed
    assert decide(layout((0.5,), partials=200, merge_seconds=0.5)).needed


def test_more_source_partitions_than_workers_are_no_waste():
    """Four tasks of 0.5 s keep two workers busy for a second, whatever is done."""
    assert not decide(layout((0.5,) * 4)).needed


def test_small_batches_are_not_worth_a_job():
    assert not decide(layout((0.05,), rows=1_000)).needed


def test_a_batch_of_late_rows_only_has_no_panes_to_judge_by():
    assert not decide(Layout(10, (0.001,), 0, 0, 0.0)).needed


def test_an_empty_batch_changes_nothing():
    before = Exchange(needed=False, because="even")
    assert before.observe(Layout(0, (), 0, 0, 0.0), workers=2) == before


def test_while_rows_are_exchanged_nothing_is_learnt_until_the_source_is_probed():
    needed = exchange = decide(layout((1.0,)))
    for age in range(1, PROBE_EVERY):
        exchange = exchange.observe(None, workers=2)
        assert (exchange.needed, exchange.because, exchange.age) == (True, needed.because, age)
    probe = exchange.observe(None, workers=2)
    assert not probe.needed
    assert probe.because == f"looking at the source again after {PROBE_EVERY} batches"
    assert probe.observe(layout((1.0,)), workers=2) == needed, "still uneven: exchanged for as long again"
    assert not probe.observe(layout((0.5, 0.5)), workers=2).needed


def test_where_an_exchange_costs_nothing_any_gain_is_worth_it():
    exchange = Exchange()
    for _ in range(CONFIRM):
        exchange = exchange.observe(layout((0.01,), rows=10), workers=2, costs=Costs(exchange=0, exchange_per_row=0))
    assert exchange.needed
