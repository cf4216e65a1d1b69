from __future__ import annotations

import pytest

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.exchange import (
    CONFIRM,
    LONGEST_WAIT,
    PROBE_EVERY,
    TRIAL,
    Exchange,
    ExchangeState,
    SourceSpread,
)
from skypane.types import ConfigError

MILLION = 1_000_000
COST = DEFAULT_COSTS.exchanging(MILLION)
EXCHANGE = Exchange()


def spread(
    busy: tuple[float, ...], *, partials: int = 100, merge_seconds: float = 0.0, row_count: int = MILLION
) -> SourceSpread:
    return SourceSpread(row_count, busy, panes=100, partials=partials, merge_seconds=merge_seconds, workers=2)


def settled(seen: SourceSpread, policy: Exchange = EXCHANGE) -> ExchangeState:
    """Return the state after batches that all lay so."""
    state = policy.init()
    for _ in range(CONFIRM):
        state = policy.observe(state, seen)
    return state


def exchanges(state: ExchangeState) -> bool:
    return EXCHANGE.decide(state)[1].value


def test_rows_stay_where_they_are_until_something_is_measured():
    assert not exchanges(EXCHANGE.init())


def test_an_even_source_needs_no_exchange():
    even = spread((0.5, 0.5))
    assert not exchanges(settled(even))
    assert EXCHANGE.figures(even) == pytest.approx({"balance": 0, "whole_panes": 0, "exchange": COST, "partitions": 1})


def test_one_source_partition_leaves_workers_idle():
    """Alone it takes 1.0 s, on two workers 0.5 s: half a second is more than the exchange costs."""
    alone = spread((1.0,))
    assert exchanges(settled(alone))
    assert EXCHANGE.figures(alone)["balance"] == pytest.approx(0.5)


def test_a_decision_states_its_reason_with_figures():
    _, decision = EXCHANGE.decide(settled(spread((1.0,), partials=400, merge_seconds=0.6)))
    assert decision.what == "exchange"
    for figure in ("500 ms", "152 ms", "4.00 partitions", "410 ms"):
        assert figure in decision.because


def test_a_slow_start_is_not_accepted():
    state = EXCHANGE.init()
    for busy in ((1.0,), (1.0,), (0.5, 0.5), (1.0,), (1.0,)):
        state = EXCHANGE.observe(state, spread(busy))
        assert not exchanges(state)
    assert exchanges(EXCHANGE.observe(state, spread((1.0,))))


def test_whole_panes_save_rows_that_are_merged_but_not_what_a_window_costs_anyway():
    """A hundred windows cost 80 ms however few their rows are; of the rest, four partitions are 4^0.25 = 1.41 whole ones."""
    cut = spread((0.5, 0.5), partials=400, merge_seconds=2.08)
    saved = 2 * (1 - 4**-0.25)
    assert exchanges(settled(cut))
    assert EXCHANGE.figures(cut) == pytest.approx(
        {"balance": 0, "whole_panes": saved, "exchange": COST, "partitions": 4}
    )
    assert not exchanges(settled(spread((0.5, 0.5), partials=400, merge_seconds=1.4)))


def test_whole_panes_leave_one_partial_in_so_many_if_results_do_not_grow():
    top = Exchange(growth=0)
    assert top.figures(spread((0.5, 0.5), partials=400, merge_seconds=0.68))["whole_panes"] == pytest.approx(0.45)
    with pytest.raises(ConfigError, match="0 <= growth <= 1, got growth=2"):
        Exchange(growth=2)


@pytest.mark.parametrize(("idle", "needed"), [(COST * 0.99, False), (COST * 1.01, True)])
def test_the_gain_is_held_against_the_cost(idle: float, needed: bool):
    assert exchanges(settled(spread((2 * idle,)))) is needed


def test_gains_add_up():
    assert not exchanges(settled(spread((0.5,))))
    assert not exchanges(settled(spread((0.25, 0.25), partials=200, merge_seconds=1.3)))
    assert exchanges(settled(spread((0.5,), partials=200, merge_seconds=1.3)))


def test_more_source_partitions_than_workers_waste_nothing():
    """Four tasks of 0.5 s keep two workers busy for a second, whatever is done."""
    assert not exchanges(settled(spread((0.5,) * 4)))


def test_small_batches_are_not_worth_a_job():
    assert not exchanges(settled(spread((0.05,), row_count=1_000)))


def test_a_batch_of_late_rows_only_has_no_panes_to_judge_by():
    assert not exchanges(settled(SourceSpread(10, (0.001,), 0, 0, 0.0, workers=2)))


def test_an_empty_batch_changes_nothing():
    before = ExchangeState(needed=False, because="even")
    assert EXCHANGE.observe(before, SourceSpread(0, (), 0, 0, 0.0, workers=2)) == before


def test_while_rows_are_exchanged_nothing_is_learnt_until_the_source_is_probed():
    state = begun = settled(spread((1.0,)))
    for age in range(1, PROBE_EVERY):
        state = EXCHANGE.observe(state, None)
        assert (state.needed, state.because, state.age) == (True, begun.because, age)
    probe = EXCHANGE.observe(state, None)
    assert not exchanges(probe)
    assert EXCHANGE.observe(probe, spread((1.0,))) == begun, "still uneven: exchanged for as long again"
    assert not exchanges(EXCHANGE.observe(probe, spread((0.5, 0.5))))


def test_where_an_exchange_costs_nothing_any_gain_is_worth_it():
    free = Exchange(Costs(exchange=0, exchange_per_row=0))
    assert exchanges(settled(spread((0.01,), row_count=10), free))
    assert not exchanges(settled(spread((0.01,), row_count=10)))


def test_an_exchange_that_turns_out_dearer_than_it_saves_ends():
    """Half a second is saved; by the costs it was begun with a third is spent, by those that its batches show a second."""
    state, dear = settled(spread((1.0,))), Exchange(Costs(exchange=1.0))
    for _ in range(TRIAL - 1):
        state = dear.observe(state, None)
        assert exchanges(state), "its batches have not shown what it costs"
    state = dear.observe(state, None)
    assert not exchanges(state)
    assert "would save 500 ms, but has cost 1350 ms" in state.because
    assert not exchanges(EXCHANGE.observe(state, spread((1.0,)))), "it has to pay several times again"


def test_a_state_without_a_saving_exchanges_rows_until_the_source_is_probed():
    """As in a checkpoint of an earlier version."""
    state = EXCHANGE.restore({"needed": True, "because": "told before", "age": 1, "confirmed": CONFIRM})
    for _ in range(PROBE_EVERY - 2):
        state = EXCHANGE.observe(state, None)
        assert exchanges(state)
    assert not exchanges(EXCHANGE.observe(state, None))


@pytest.mark.parametrize(("part", "tried"), [(0.05, False), (0.2, True)])
def test_an_exchange_that_might_pay_is_tried(part: float, tried: bool):
    """Only exchanged batches show the cost: a fifth of what it is assumed to be is worth a trial, a twentieth is not."""
    state, seen = EXCHANGE.init(), spread((2 * part * COST,))
    for _ in range(PROBE_EVERY):
        assert not exchanges(state)
        state = EXCHANGE.observe(state, seen)
    assert exchanges(state) is tried


def test_trials_in_vain_become_rare_and_one_that_pays_continues():
    seen, cheap = spread((0.4 * COST,)), Exchange(Costs(exchange=0.001, exchange_per_row=1e-9))
    state, waits = EXCHANGE.init(), []
    for _ in range(9):
        waits.append(0)
        while not exchanges(state):
            state = EXCHANGE.observe(state, seen)
            waits[-1] += 1
        assert f"{TRIAL} batches are exchanged to measure that" in state.because
        tried = state
        for _ in range(TRIAL):
            state = EXCHANGE.observe(state, None)
    assert waits == [min(PROBE_EVERY * 2**at, LONGEST_WAIT) for at in range(9)]
    for _ in range(TRIAL):
        tried = cheap.observe(tried, None)
    assert exchanges(tried)
    assert EXCHANGE.observe(state, spread((4 * COST,))).patience == PROBE_EVERY
