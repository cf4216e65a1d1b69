"""Every policy of progress keeps the laws; the kit that says so is found to see what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.parameters import examples, slow_but
from tests.progress.streams import arrivals
from tests.subclasses import concrete

import skypane.progress
from skypane.policy import Decision
from skypane.progress import AqKSlack, KSlack, PaneArrivals, ProgressPolicy, Readiness, SourceCount, Watermark
from skypane.progress.aqkslack import AdaptiveProgress
from skypane.progress.progress_policy import Punctuation
from skypane.progress.slack_policy import SlackPolicy
from skypane.progress.state import Progress
from skypane.testing.progress_kit import check_progress_policy
from skypane.types import Duration, micros

POLICIES: list[SlackPolicy[Any]] = [
    Watermark("20 microseconds", max_ahead="1000 us"),
    Watermark("2 minutes", behind=True),
    KSlack(),
    KSlack(max_slack="60 us", max_ahead=None),
    AqKSlack(0.3, reserve=1, max_slack="100 us", max_ahead="1000 us"),
    AqKSlack(0.01),
    AqKSlack(max_amended=0.2),
    Readiness("100 us", max_ahead="1000 us"),
    Readiness("1 day", sources=("east", "south")),
]


@pytest.mark.long
@pytest.mark.parametrize("policy", slow_but([*POLICIES[:4], *POLICIES[5:6], *POLICIES[7:]], POLICIES))
def test_every_policy_keeps_the_laws(policy: ProgressPolicy):
    check_progress_policy(policy, tries=examples(1 / 3))


def test_no_policy_is_left_out():
    assert concrete(SlackPolicy, skypane.progress) == {type(policy) for policy in POLICIES}  # type: ignore[type-abstract]


def after_late_rows(sources: Mapping[str, SourceCount]) -> AdaptiveProgress:
    """Return the state after a batch of these sources, two of whose rows are late."""
    policy = AqKSlack(0.1)
    state = policy.decide(policy.init(), arrivals([1_000] * 9))[0]
    return policy.decide(state, replace(arrivals([1, 2, 1_000]), sources=sources))[0]


def test_the_state_names_the_first_by_name_of_equally_late_sources():
    """A micro-batch's sources come in the order in which tasks have ended."""
    counts = {name: SourceCount(1, 1, 2) for name in ("a", "b")}
    one, other = (after_late_rows(dict(order)) for order in (counts.items(), reversed(counts.items())))
    assert one == other
    assert one.lagging == "b"


@pytest.mark.parametrize(("lates", "named"), [((3, 2, 1), "a"), ((2, 2, 1), None), ((0, 0, 0), None)])
def test_a_source_lags_that_sends_half_of_the_late_rows_or_more(lates: tuple[int, int, int], named: str | None):
    counts = {name: SourceCount(5, late, 2) for name, late in zip("abc", lates, strict=True)}
    assert after_late_rows(counts).lagging == named


@dataclass(frozen=True)
class Fixed(SlackPolicy[Progress]):
    """A sound policy; its faults are made of it below."""

    delay: Duration = "1 second"

    def init(self) -> Progress:
        return Progress(slack=micros(self.delay))

    def _measure(self, before: Progress, counted: Progress, arrivals: PaneArrivals) -> Progress:
        del before, arrivals
        return counted


class GoesBack(Fixed):
    """Follows the last batch, however old it is."""

    def decide(self, state: Progress, known: PaneArrivals) -> tuple[Progress, Decision[Punctuation]]:
        after, decision = super().decide(state, known)
        after = replace(after, punctuation=int(known.newest.max())) if len(known) else after
        return after, replace(decision, value=replace(decision.value, time=after.punctuation))


class CountsNoLate(Fixed):
    def decide(self, state: Progress, known: PaneArrivals) -> tuple[Progress, Decision[Punctuation]]:
        after, decision = super().decide(state, known)
        return replace(after, dropped=state.dropped), decision


class IsAhead(Fixed):
    """Closes a minute that has not come yet."""

    def _punctuation(self, before: Progress, measured: Progress) -> int | None:
        del before
        return None if measured.newest is None else measured.newest + 60_000_000


class ForgetsItsPause(Fixed):
    def restore(self, snapshot: Any) -> Progress:
        state: Progress = super().restore(snapshot)
        return replace(state, slack=0)


class CountsCalls(Fixed):
    """Keeps something beside the state."""

    def _measure(self, before: Progress, counted: Progress, arrivals: PaneArrivals) -> Progress:
        del before, arrivals
        turn = getattr(self, "_turn", 0)
        object.__setattr__(self, "_turn", turn + 1)
        return replace(counted, slack=turn)


class SaysTooMuch(Fixed):
    def explain(self, state: Progress) -> str:
        return f"{state.slack}\nmicroseconds"


class TakesAnything(Fixed):
    def restore(self, snapshot: Any) -> Progress:
        given = snapshot if isinstance(snapshot, dict) else {}
        fields = self.snapshot(self.init())
        state: Progress = super().restore({name: given.get(name, fields[name]) for name in fields})
        return state


@dataclass(frozen=True)
class Everything(Progress):
    times: tuple[int, ...] = ()


@dataclass(frozen=True)
class Hoards(SlackPolicy[Everything]):
    """Keeps all times that it has seen."""

    State = Everything

    def _measure(self, before: Everything, counted: Everything, arrivals: PaneArrivals) -> Everything:
        return replace(counted, times=(*before.times, *arrivals.newest.tolist()))


def test_the_kit_accepts_what_the_broken_ones_are_made_of():
    check_progress_policy(Fixed(), tries=5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "broken"),
    [
        (GoesBack(), "never decrease"),
        (CountsNoLate(), "is dropped if its pane was closed before"),
        (IsAhead(), "rows in order are never late"),
        (ForgetsItsPause(), "restored from JSON"),
        (CountsCalls(), "equal states and inputs|order of rows"),
        (SaysTooMuch(), "its reason in one line"),
        (TakesAnything(), "raises CheckpointError for anything"),
        (Hoards(), "does not grow"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_kit_names_the_law_that_is_broken(policy: ProgressPolicy, broken: str):
    with pytest.raises(AssertionError, match=broken):
        check_progress_policy(policy)
