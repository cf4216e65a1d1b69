"""Whether answers keep the bound that `latency=` promises, judged by the latencies of the last batches.

The bound is kept as long as at most one answer in twenty took longer: their 95th percentile is within it. Latencies of
batches are known exactly, so no bucket blurs the judgement.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, Literal, TypeAlias

from skypane.policy import Decision, Policy
from skypane.snapshots import JsonState
from skypane.types import Micros
from skypane.wording import exact_stamp, seconds

RECENT: Final = 32
"""Batches with answers by which the bound is judged."""

Judgement: TypeAlias = Literal["kept", "missed"]


@dataclass(frozen=True, slots=True)
class AnsweredBatch:
    """A batch that began at this time, in seconds since the epoch: its number of answers, and their latency in seconds."""

    began: float
    answers: int
    latency: float


@dataclass(frozen=True, slots=True)
class PromiseState(JsonState):
    """The last batches with answers, oldest first."""

    began: tuple[float, ...] = ()
    answers: tuple[int, ...] = ()
    latency: tuple[float, ...] = ()


@dataclass(frozen=True)
class LatencyPromise(Policy[PromiseState, AnsweredBatch, float, Judgement]):
    """Judges the bound; it changes nothing, because the policies that have it do what they can to keep it."""

    State = PromiseState

    def init(self) -> PromiseState:
        return PromiseState()

    def observe(self, state: PromiseState, measured: AnsweredBatch) -> PromiseState:
        if not measured.answers:
            return state
        last = slice(1 - RECENT, None)
        return replace(
            state,
            began=(*state.began[last], measured.began),
            answers=(*state.answers[last], measured.answers),
            latency=(*state.latency[last], measured.latency),
        )

    def decide(self, state: PromiseState, known: float) -> tuple[PromiseState, Decision[Judgement]]:
        """Return whether the bound `known`, in seconds, is kept; it is until there is an answer."""
        if not state.answers:
            return state, Decision("latency", "kept", f"no answer yet; {seconds(known)} promised", {"promised": known})
        taken = sorted(zip(state.latency, state.answers, strict=True))
        # In whole numbers: 19 of 20 answers are 95 %.
        wanted = (95 * sum(state.answers) + 99) // 100
        ranks = accumulate(answers for _, answers in taken)
        p95 = next(latency for (latency, _), rank in zip(taken, ranks, strict=True) if rank >= wanted)
        since = exact_stamp(Micros(int(state.began[0]) * 1_000_000))
        because = f"answers took {seconds(p95)} (p95) for the promised {seconds(known)} since {since} UTC"
        judged: Judgement = "kept" if p95 <= known else "missed"
        return state, Decision("latency", judged, because, {"p95": p95, "promised": known})
