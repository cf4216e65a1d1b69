from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.exchange import CONFIRM, LONGEST_WAIT, PROBE_EVERY, TRIAL, Exchange, ExchangeState
from skypane.control.predictions import ExpectedBatch, SourceFigures, SourceSpread, SplittingOption, left
from skypane.policy import Decision
from skypane.types import ConfigError

MILLION = 1_000_000
COST = DEFAULT_COSTS.exchanging(MILLION)
EXCHANGE = Exchange()


def spread(
    busy: tuple[float, ...], *, partials: int = 100, merge_seconds: float = 0.0, rows: int = MILLION
) -> SourceSpread:
    """A batch of a hundred panes, on two workers."""
    return SourceSpread(rows, busy, (rows // 100,) * 100, partials, merge_seconds, workers=2)


def batch(rows: int = MILLION) -> ExpectedBatch:
    """The expected batch: PB_RR keeps panes whole and is even, TB_RR splits them all."""
    panes = dict.fromkeys(range(100), rows // 100)
    whole, everywhere = SplittingOption("PB_RR", rows // 2, (1,) * 100), SplittingOption("TB_RR", rows // 2, (2,) * 100)
    return ExpectedBatch(panes, 2, (whole, everywhere))


def step(
    state: ExchangeState, seen: SourceSpread | None, policy: Exchange = EXCHANGE, known: ExpectedBatch | None = None
) -> tuple[ExchangeState, Decision[str | None]]:
    """Return the state after a batch and the decision for the next one."""
    if known is None:
        known = batch() if seen is None else batch(seen.row_count)
    return policy.decide(policy.observe(state, seen), known)


def settled(
    seen: SourceSpread, policy: Exchange = EXCHANGE, known: ExpectedBatch | None = None
) -> tuple[ExchangeState, Decision[str | None]]:
    """Return the state and the decision after batches that all lay so."""
    state = policy.init()
    for _ in range(CONFIRM):
        state, decision = step(state, seen, policy, known)
    return state, decision


def exchanges(seen: SourceSpread, policy: Exchange = EXCHANGE) -> bool:
    return settled(seen, policy)[1].value is not None


def test_rows_stay_where_they_are_until_something_is_measured():
    assert EXCHANGE.decide(EXCHANGE.init(), batch())[1].value is None


def test_an_even_source_needs_no_exchange():
    even = spread((0.5, 0.5))
    assert not exchanges(even)
    assert settled(even)[1].figures == pytest.approx(
        {"as read": 0.5, "PB_RR": 0.5 + COST, "TB_RR": 0.5 + COST, "exchange": COST, "saving": 0}
    )


def test_one_source_partition_leaves_workers_idle():
    """Alone it takes 1.0 s, on two workers 0.5 s: half a second is more than the exchange costs."""
    _, decision = settled(spread((1.0,)))
    assert decision.value == "PB_RR"
    assert decision.figures["saving"] == pytest.approx(0.5)


def test_balance_is_that_of_the_expected_panes_not_a_perfect_one():
    """A single pane has one owner: an exchange by panes in turn would balance nothing, one by rows in turn everything."""
    one = replace(batch(), rows={7: MILLION}, options=(SplittingOption("PB_RR", MILLION, (1,)),))
    pane = SourceSpread(MILLION, (1.0,), (MILLION,), 1, 0.0, workers=2)
    assert settled(pane, known=one)[1].value is None
    both = replace(one, options=(*one.options, SplittingOption("TB_RR", MILLION // 2, (2,))))
    assert settled(pane, known=both)[1].value == "TB_RR"


def test_a_decision_states_its_reason_with_figures():
    """Of 0.6 s to merge 0.08 s are windows; of a hundred panes in four partitions each, 4^-0.25 is left if they are whole."""
    _, decision = settled(spread((1.0,), partials=400, merge_seconds=0.6))
    assert decision.what == "exchange"
    assert decision.because == (
        "PB_RR for balance: 1278 ms (lift 500, exchange 410, merge 368), as read 1520 ms (lift 1000, merge 520)"
    )
    _, decision = settled(spread((0.5, 0.5), partials=400, merge_seconds=4.0))
    assert decision.because.startswith("PB_RR for fewer merges: 3682 ms (lift 500, exchange 410, merge 2772)")
    _, decision = settled(spread((0.6, 0.4)))
    assert decision.because == (
        "as read 600 ms (lift 600, merge 0): PB_RR, the fastest exchange, takes 910 ms (lift 500, exchange 410, merge 0)"
    )


def test_policies_are_not_needed_where_even_the_best_case_does_not_pay():
    even = EXCHANGE.observe(EXCHANGE.init(), spread((0.51, 0.49)))
    assert not EXCHANGE.worth_routing(even, batch())
    _, decision = EXCHANGE.decide(even, replace(batch(), options=()))
    assert decision.value is None
    assert decision.because.endswith("an exchange takes at least 910 ms (lift 500, exchange 410, merge 0)")
    for seen in (spread((1.0,)), spread((0.6, 0.4))):  # that pays, or may do
        assert EXCHANGE.worth_routing(EXCHANGE.observe(EXCHANGE.init(), seen), batch())
    assert EXCHANGE.worth_routing(ExchangeState(needed=True), batch()), "one of them routes the batch"


@given(
    source=st.builds(
        SourceFigures, st.just(1.0), st.floats(1e-9, 1e-4), st.floats(0.1, 1), st.floats(1, 16), st.floats(0, 1e-4)
    ),
    panes=st.dictionaries(st.integers(0, 9), st.integers(1, MILLION), min_size=1, max_size=4),
    growth=st.floats(0, 1),
    data=st.data(),
)
def test_the_chosen_way_has_the_least_predicted_seconds_of_all(source, panes, growth, data):
    """By brute force over rows that stay, and every option."""
    total, workers = sum(panes.values()), data.draw(st.integers(1, 16))
    options = tuple(
        SplittingOption(
            name,
            data.draw(st.integers(-(-total // workers), total)),
            tuple(data.draw(st.integers(1, min(workers, count))) for count in panes.values()),
        )
        for name in ("PB_RR", "TB_RR", "AS", "AS_PID")
    )
    counts, policy = [*panes.values()], Exchange(growth=growth)
    merge = source.merging * left(counts, [min(source.partitions, count) for count in counts], growth)
    seconds: dict[str | None, float] = {None: total * source.longest * source.row_seconds + merge}
    for option in options:
        merge = source.merging * left(counts, option.partitions, growth)
        seconds[option.name] = option.busiest * source.row_seconds + DEFAULT_COSTS.exchanging(total) + merge
    known = ExpectedBatch(panes, workers, options)
    for needed in (False, True):
        state = ExchangeState(needed, age=TRIAL, confirmed=CONFIRM - 1, source=source, measured=not needed)
        routed = known if needed or policy.worth_routing(state, known) else replace(known, options=())
        chosen = policy.decide(state, routed)[1].value
        assert seconds[chosen] == pytest.approx(min(seconds.values()), rel=1e-9)


def test_an_exchange_ends_at_once_where_the_expected_rows_do_not_pay_for_it():
    state, _ = settled(spread((1.0,)))
    for _ in range(TRIAL):
        state, decision = step(state, None)
        assert decision.value == "PB_RR"
    assert step(state, None, known=batch(1_000))[1].value is None


def test_the_policy_changes_with_the_expected_panes():
    state, _ = settled(spread((1.0,)))
    one = (SplittingOption("PB_RR", MILLION, (1,)), SplittingOption("TB_RR", MILLION // 2, (2,)))
    state, decision = step(state, None, known=ExpectedBatch({7: MILLION}, 2, one))
    assert decision.value == "TB_RR"
    assert step(state, None)[1].value == "PB_RR"


def test_a_slow_start_is_not_accepted():
    state = EXCHANGE.init()
    for busy in ((1.0,), (1.0,), (0.5, 0.5), (1.0,), (1.0,)):
        state, decision = step(state, spread(busy))
        assert decision.value is None
    assert step(state, spread((1.0,)))[1].value == "PB_RR"


def test_whole_panes_save_rows_that_are_merged_but_not_what_a_window_costs_anyway():
    """A hundred windows cost 80 ms however few their rows are; of the rest, four partitions are 4^0.25 = 1.41 whole ones."""
    cut = spread((0.5, 0.5), partials=400, merge_seconds=2.08)
    assert exchanges(cut)
    assert settled(cut)[1].figures["saving"] == pytest.approx(2 * (1 - 4**-0.25))
    assert not exchanges(spread((0.5, 0.5), partials=400, merge_seconds=1.4))


def test_whole_panes_leave_one_partial_in_so_many_if_results_do_not_grow():
    cut = spread((0.5, 0.5), partials=400, merge_seconds=0.68)
    assert settled(cut, Exchange(growth=0))[1].figures["saving"] == pytest.approx(0.45)
    with pytest.raises(ConfigError, match="0 <= growth <= 1, got growth=2"):
        Exchange(growth=2)


@pytest.mark.parametrize(("seen", "pays"), [
    (spread((2 * COST * 0.99,)), False),
    (spread((2 * COST * 1.01,)), True),
    # Gains add up.
    (spread((0.5,)), False),
    (spread((0.25, 0.25), partials=200, merge_seconds=1.3), False),
    (spread((0.5,), partials=200, merge_seconds=1.3), True),
    # More source partitions than workers waste nothing: four tasks of 0.5 s keep two workers busy for a second anyway.
    (spread((0.5,) * 4), False),
    # A small batch is not worth a job.
    (spread((0.05,), rows=1_000), False),
])  # fmt: skip
def test_the_gain_is_held_against_the_cost(seen: SourceSpread, pays: bool):
    assert exchanges(seen) is pays


@pytest.mark.parametrize("rows", [0, 10])
def test_a_batch_without_a_row_in_a_pane_is_not_judged(rows: int):
    """It is empty, or all its rows are late: what batches before it have shown holds on."""
    nothing = SourceSpread(rows, (0.001,), (), 0, 0.0, workers=2)
    before, _ = step(EXCHANGE.init(), spread((1.0,)))
    assert before.confirmed == 1
    assert step(before, nothing)[0] == before
    assert step(EXCHANGE.init(), nothing)[0] == EXCHANGE.init()


def test_while_rows_are_exchanged_nothing_is_learnt_until_the_source_is_probed():
    state, _ = settled(spread((1.0,)))
    begun = state
    for age in range(1, PROBE_EVERY):
        state, decision = step(state, None)
        assert (decision.value, state.because, state.age) == ("PB_RR", begun.because, age)
    state, decision = step(state, None)
    assert decision.value is None
    resumed, decision = step(state, spread((1.0,)))
    assert (resumed, decision.value) == (begun, "PB_RR"), "still uneven: exchanged for as long again"
    assert step(state, spread((0.5, 0.5)))[1].value is None


def test_where_an_exchange_costs_nothing_any_gain_is_worth_it():
    free = Exchange(Costs(exchange=0, exchange_per_row=0))
    assert exchanges(spread((0.01,), rows=1_000), free)
    assert not exchanges(spread((0.01,), rows=1_000))


def test_an_exchange_that_turns_out_dearer_than_it_saves_ends():
    """Half a second is saved; by the costs it was begun with a third is spent, by those that its batches show a second."""
    (state, _), dear = settled(spread((1.0,))), Exchange(Costs(exchange=1.0))
    for _ in range(TRIAL - 1):
        state, decision = step(state, None, dear)
        assert decision.value == "PB_RR", "its batches have not shown what it costs"
    state, decision = step(state, None, dear)
    assert decision.value is None
    assert "as read 1000 ms" in decision.because
    assert "takes 1850 ms (lift 500, exchange 1350, merge 0)" in decision.because
    assert step(state, spread((1.0,)))[1].value is None, "it has to pay several times again"


def test_a_state_without_figures_exchanges_rows_until_the_source_is_probed():
    """As in a checkpoint of an earlier version; the first policy routes them, since there is nothing to choose by."""
    state = EXCHANGE.restore({"needed": True, "because": "told before", "age": 1, "confirmed": CONFIRM})
    for _ in range(PROBE_EVERY - 2):
        state, decision = step(state, None)
        assert (decision.value, decision.because) == ("PB_RR", "told before")
    assert step(state, None)[1].value is None


@pytest.mark.parametrize(("part", "tried"), [(0.05, False), (0.2, True)])
def test_an_exchange_that_might_pay_is_tried(part: float, tried: bool):
    """Only exchanged batches show the cost: a fifth of what it is assumed to be is worth a trial, a twentieth is not."""
    state, seen = EXCHANGE.init(), spread((2 * part * COST,))
    for _ in range(PROBE_EVERY - 1):
        state, decision = step(state, seen)
        assert decision.value is None
    assert (step(state, seen)[1].value is not None) is tried


def test_trials_in_vain_become_rare_and_one_that_pays_continues():
    cheap = Exchange(Costs(exchange=0.001, exchange_per_row=1e-9))
    seen = SourceSpread(MILLION, (0.4 * COST,), (MILLION,), 1, 0.0, workers=2)
    known = ExpectedBatch({0: MILLION}, 2, (SplittingOption("TB_RR", MILLION // 2, (2,)),))
    state, waits = EXCHANGE.init(), []
    for _ in range(8):
        waits.append(0)
        while not state.needed:
            state, decision = step(state, seen, known=known)
            waits[-1] += 1
        assert f"{TRIAL} batches are exchanged to measure that" in decision.because
        tried = state
        for _ in range(TRIAL):
            state, _ = step(state, None, known=known)
    assert waits == [min(PROBE_EVERY * 2**at, LONGEST_WAIT) for at in range(8)]
    for _ in range(TRIAL):
        tried, _ = step(tried, None, cheap, known)
    assert tried.needed
    assert step(state, replace(seen, busy=(4 * COST,)), known=known)[0].patience == PROBE_EVERY
