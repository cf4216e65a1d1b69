"""Points that dominate most rows of a query, chosen from a sample, by which rows are dropped before they are moved.

The points are rows that were read once, the rows are read again. A row is dropped if a point dominates it on the first
level of the preference, in the same group. That is right if each point has a *witness*: a row of the second reading, of
the same group, that is as good as the point on every criterion of this level. Whatever a point dominates, its witness
dominates, too: a dropped row is in no answer, and no row is in the answer because it was dropped. So the answer is
exact if all points have witnesses, wherever the points come from; only the number of dropped rows depends on them.

A witness need not be a certain row, and it is found in the skyline of the rows that were kept: a row that is as good as
the point is in the skyline, or a row of the skyline is at least as good. Further levels keep one of the rows that the
first level ranks equal, at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from skypane.kernels.sample_cover import sample_cover
from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.entry.reject_reasons import rankable
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.preference.criteria import Around, Criterion, Level
from skypane.preference.groups import group_codes
from skypane.preference.orient import orient
from skypane.types import BoolArray, FloatArray, IntArray

MOST: Final = 16
"""Largest number of points: each is compared with each row."""
LEAST_GAIN: Final = 0.02
"""Share of the rows that each point must drop in addition: to compare a row with a point costs about a fiftieth of moving it."""
LEAST_SHARE: Final = 0.3
"""Share of the sample that all points must dominate together, or the rows are not compared with any."""

_FARTHEST: Final = 2**52
"""Targets up to this have distances from 32-bit integers that float64 holds exactly, if they are whole."""
_FRACTION: Final = 65


@dataclass(frozen=True, slots=True)
class Prefilter:
    """The rules by which points of a sample drop rows.

    level     the first level of the preference, in which points and rows are compared
    groups    columns on which a point and a row must agree
    required  columns that need a value: those of the level and of later ones
    lead      the component in which a point must be strictly better: the one with the fewest ties, by its type
    """

    level: Level
    groups: tuple[str, ...]
    required: tuple[str, ...]
    lead: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in which points and rows are compared, without repetition."""
        ranked = (criterion.column for component in self.level for criterion in component)
        return tuple(dict.fromkeys((*ranked, *self.groups)))

    @property
    def unread(self) -> tuple[str, ...]:
        """Columns that need a value and need not be read to compare rows: all but the first of each component."""
        first = {component[0].column for component in self.level}
        return tuple(name for name in self.required if name not in first)

    def choose(self, sample: pa.Table) -> pa.Table:
        """Return the rows of a sample, with the columns compared, that drop most rows; none if they would drop few."""
        rows, _ = rankable(sample, self.required)
        values, codes = orient(rows, self.level).values, group_codes(rows, self.groups)
        cover = sample_cover(values, codes, self.lead, MOST, LEAST_GAIN)
        chosen = cover.indices if cover.share >= LEAST_SHARE else cover.indices[:0]
        return rows.select(self.columns).take(pa.array(chosen, pa.int64()))

    def without_witness(self, points: pa.Table, skyline: pa.Table) -> int:
        """Return the number of points for which the skyline of the rows that were kept has no witness."""
        # In one table, because ranks can be compared in one call only.
        both = pa.concat_tables([_plain(skyline, self.columns), _plain(points, self.columns)])
        values, codes = orient(both, self.level).values, group_codes(both, self.groups)
        rows = skyline.num_rows
        return sum(not _as_good(values, codes, rows, point).any() for point in range(rows, len(values)))


def _as_good(values: FloatArray, codes: IntArray | None, rows: int, point: int) -> BoolArray:
    """Return the mask of the first `rows` rows that are of the point's group and as good as the point everywhere."""
    found: BoolArray = (values[:rows] <= values[point]).all(axis=1)
    return found if codes is None else found & (codes[:rows] == codes[point])


def _plain(rows: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    """Return columns of a table without what may differ between two readings: metadata, and whether nulls may occur."""
    return pa.table({name: rows.column(name) for name in columns})


def prefilter_of(query: Query, schema: pa.Schema) -> Prefilter | None:
    """Return the rules by which rows of `schema` may be dropped before the query; None if none may be.

    None is returned for queries other than skylines and the dominance queries over them, also for subclasses, whose
    lift may keep what a skyline does not; and for around() on types whose distances Spark may round in another way.
    """
    skyline = _skyline_of(query)
    if skyline is None:
        return None
    level = skyline.preference.levels[0]
    criteria = (criterion for component in level for criterion in component)
    if not all(_same_in_spark(criterion, schema.field(criterion.column).type) for criterion in criteria):
        return None
    bits = [sum(_resolution(schema.field(criterion.column).type) for criterion in one) for one in level]
    return Prefilter(level, skyline.groups, tuple(skyline.required), bits.index(max(bits)))


def _skyline_of(query: Query) -> Skyline | None:
    if isinstance(query, Skyline) and type(query) is Skyline:
        return query
    if isinstance(query, KDominant | TopDelta) and type(query) in (KDominant, TopDelta):
        return query.skyline
    return None


def _same_in_spark(criterion: Criterion, kind: pa.DataType) -> bool:
    """Return whether Spark compares values as this process does: their order always, distances where float64 is exact."""
    if not isinstance(criterion, Around) or pa.types.is_floating(kind):
        return True
    whole = pa.types.is_integer(kind) and kind.bit_width <= 32
    return whole and all(isinstance(one, int) and abs(one) <= _FARTHEST for one in (criterion.lo, criterion.hi))


def _resolution(kind: pa.DataType) -> int:
    """Return the bits by which values are distinguished; fractions are tied less often than whole numbers as wide."""
    fractions = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return _FRACTION if fractions else int(kind.bit_width)
