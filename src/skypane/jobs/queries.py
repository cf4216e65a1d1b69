"""The `query` section: which of the four, and what it needs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from skypane.jobs.fields import Columns, Part
from skypane.operators.dominance import KDominantQuery, TopDeltaQuery
from skypane.operators.query import Query
from skypane.operators.skyline import SkylineQuery
from skypane.operators.topk import TopKQuery
from skypane.preference import Preference, Score


def _is_preference(text: str) -> str:
    Preference.of(text)
    return text


def _is_score(text: str) -> str:
    Score.of(text)
    return text


#: "price MIN, rating MAX"
PreferenceText: TypeAlias = Annotated[str, AfterValidator(_is_preference)]
#: arithmetic over columns: "2 * rating - log(price)"
ScoreText: TypeAlias = Annotated[str, AfterValidator(_is_score)]


class _Asked(Part):
    by: Columns = ()

    @model_validator(mode="after")
    def _can_be_built(self) -> Any:
        self.build()  # raises where the parts do not fit, as a k above the number of criteria
        return self

    def build(self) -> Query:
        """Return the query itself."""
        raise NotImplementedError


class Skyline(_Asked):
    """Rows that no other row is better than."""

    kind: Literal["skyline"]
    preference: PreferenceText

    def build(self) -> Query:
        return SkylineQuery(Preference.of(self.preference), self.by)


class TopK(_Asked):
    """The k rows with the best score."""

    kind: Literal["top_k"]
    k: PositiveInt
    score: ScoreText
    largest: bool = True

    def build(self) -> Query:
        return TopKQuery(self.k, Score.of(self.score), self.by, self.largest)


class KDominant(_Asked):
    """Rows that no other row k-dominates."""

    kind: Literal["k_dominant"]
    preference: PreferenceText
    k: PositiveInt

    def build(self) -> Query:
        return KDominantQuery(self.k, Preference.of(self.preference), self.by)


class TopDelta(_Asked):
    """About delta rows: the k-dominant skyline of the smallest k that has more."""

    kind: Literal["top_delta"]
    preference: PreferenceText
    delta: PositiveInt

    def build(self) -> Query:
        return TopDeltaQuery(self.delta, Preference.of(self.preference), self.by)


AnyQuery: TypeAlias = Annotated[Skyline | TopK | KDominant | TopDelta, Field(discriminator="kind")]
