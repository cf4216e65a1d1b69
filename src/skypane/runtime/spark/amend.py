"""The argument `late=Amend(...)`: late rows correct the windows that were answered without them."""

from __future__ import annotations

from dataclasses import dataclass

from skypane.operators.amendments import MAX_BYTES, AmendRule
from skypane.runtime.spark.sinks.sink_arguments import Output
from skypane.types import ConfigError, Duration, Length, micros, truth


@dataclass(frozen=True)
class Amend:
    """Answers a window again when rows come for it that are at most `within` late; for `late=` of stream().

    within      event time for which a window can be amended after the punctuation has passed its end
    then        sink of the rows that are later, and of quarantined rows; without one they are only counted
    max_bytes   bytes of partials kept for it; with more, the oldest panes are discarded, and their windows are final
    changes     for sinks that can only append: a version has only the rows in which it differs from the one before it

    Answers have two more columns: version, 0 for the first answer of a window, and n for the one that replaces version
    n - 1 of the same window; and empty, true in the one row of a version without rows, whose other columns are null.
    With changes=True there is action instead of empty: "ADD" for a row that is new in this version, and "DEL" for a
    row of the version before it that is not in this one.

    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best", late=sp.Amend("1 day")
    ... )
    >>> handle = job.start(availableNow=True)
    >>> handle.await_termination()
    True
    >>> spark.read.parquet("best").columns[:4]
    ['window_start', 'window_end', 'version', 'empty']
    """

    within: Duration
    then: Output | None = None
    max_bytes: int = MAX_BYTES
    changes: bool = False

    def __post_init__(self) -> None:
        within, most = micros(self.within, "within"), self.max_bytes
        if within <= 0:
            raise ConfigError(f"Amend(within) must be longer than 0, got {self.within!r}")
        if type(most) is not int or most < 1:
            raise ConfigError(f"Amend(max_bytes) must be a whole number of bytes, at least 1, got {most!r}")
        if isinstance(self.then, Amend):
            raise ConfigError("Amend(then) must be a sink, got another Amend")
        object.__setattr__(self, "within", within)
        object.__setattr__(self, "changes", truth(self.changes, "Amend(changes)"))

    @property
    def rule(self) -> AmendRule:
        """The rule that the engine follows."""
        return AmendRule(micros(self.within), self.max_bytes, self.changes)


def amend_of(late: Output | Amend | None) -> tuple[AmendRule | None, Output | None]:
    """Return the rule of the argument `late`, None if it has none, and the sink of the rows that do not enter."""
    return (late.rule, late.then) if isinstance(late, Amend) else (None, late)


def in_words(rule: AmendRule) -> str:
    """Return the rule in a few words."""
    return f"amend answers for {Length(rule.within).words}"
