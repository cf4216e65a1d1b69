"""Which PLQ worker gets a row: the static policies of paper 1, section 4.1.2, behind the seam of the adaptive ones.

A policy looks at what is known of a batch before its rows move, and answers with a routing; the runtime turns the
routing into whatever moves rows there. Answers to queries never depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class ByPane:
    """Every pane has one owner: worker = pane mod workers."""

    workers: int

    def owner(self, pane: int) -> int:
        return pane % self.workers


@dataclass(frozen=True, slots=True)
class AnyWorker:
    """Rows go to workers in turn, whatever their pane: every pane has a partition on every worker."""

    workers: int


Routing: TypeAlias = ByPane | AnyWorker


class Splitting(Protocol):
    """A splitting policy: frozen, pure."""

    @property
    def name(self) -> str: ...

    def route(self, workers: int) -> Routing:
        """Return the routing of one batch over `workers` >= 1 workers."""
        ...


@dataclass(frozen=True, slots=True)
class PaneRoundRobin:
    """PB_RR: panes to workers in turn; least merging afterwards, but a burst lands on one worker."""

    name: str = "PB_RR"

    def route(self, workers: int) -> Routing:
        return ByPane(workers)


@dataclass(frozen=True, slots=True)
class TupleRoundRobin:
    """TB_RR: rows to workers in turn; perfect balance, but every pane is merged from every worker."""

    name: str = "TB_RR"

    def route(self, workers: int) -> Routing:
        return AnyWorker(workers)


_POLICIES: dict[str, Splitting] = {policy.name: policy for policy in (PaneRoundRobin(), TupleRoundRobin())}


def splitting(policy: str | Splitting) -> Splitting:
    """Return the policy of that name, or the policy itself."""
    if not isinstance(policy, str):
        return policy
    if policy not in _POLICIES:
        raise ConfigError(f"splitting must be one of {', '.join(_POLICIES)}, got {policy!r}")
    return _POLICIES[policy]
