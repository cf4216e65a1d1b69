"""Approximate aggregates in little memory, with stated error bounds: the number of distinct values, and quantiles.

Both depend on the rows alone, as everything in a partial does: they use no random numbers, and the order of merging
makes no difference. (Sketches that compact at random, such as KLL, or whose estimate depends on the order of arrival,
such as HyperLogLog before it is merged, would break the laws of a query.)

ApproxDistinct  the k least 64-bit hashes of the values; the share of all hashes that they span gives the number of
                values (bottom-k, Bar-Yossef et al. 2002): standard error 1 / sqrt(k - 2), exact below k values
ApproxQuantile  the number of values in buckets whose bounds grow by a factor (DDSketch, Masson et al. 2019): the error
                is at most a given share of the value itself
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skypane.kernels import elementary
from skypane.operators.aggregates.list_columns import as_lists, listed, valid_values
from skypane.operators.aggregates.stable_hashes import can_be_hashed, hashes_of
from skypane.preference.column_checks import field_of
from skypane.types import ConfigError, FloatArray, IntArray

_MIDDLE = 1 << 20
"""Added to bucket numbers, so that the bucket of the least float64 is positive at the finest error."""
_INFINITE, _UNKNOWN = (1 << 30), (1 << 30) + 1
_BUCKET = pa.struct([("bucket", pa.int32()), ("count", pa.int64())])
_FINEST, _COARSEST = 1e-3, 0.5


@dataclass(frozen=True)
class ApproxDistinct:
    """The least hashes of a column's values, nulls left out."""

    column: str
    error: float = 0.02

    def __post_init__(self) -> None:
        _check_error(self.error)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def most(self) -> int:
        """The number of hashes to keep."""
        return math.ceil(1 / (self.error * self.error)) + 2

    def state_type(self, schema: pa.Schema) -> pa.DataType:
        kind = field_of(schema, self.column).type
        if not can_be_hashed(kind):
            raise ConfigError(f"column {self.column!r} of type {kind} cannot be hashed: cast it to a number or a text")
        return pa.list_(pa.int64())

    def output_type(self, schema: pa.Schema) -> pa.DataType:
        del schema
        return pa.int64()

    def lift(self, rows: pa.Table, groups: IntArray, n: int) -> pa.Array:
        values, owners = valid_values(rows, self.column, groups)
        return self._least(hashes_of(values), owners, n)

    def combine(self, states: pa.Array, groups: IntArray, n: int) -> pa.Array:
        hashes, owners = listed(states, groups)
        return self._least(hashes.to_numpy(zero_copy_only=False), owners, n)

    def lower(self, states: pa.Array) -> pa.Array:
        hashes, owners = listed(states, np.arange(len(states)))
        counts = np.bincount(owners, minlength=len(states))
        estimates = counts.astype(np.float64)
        full = np.flatnonzero(counts == self.most)
        last = hashes.to_numpy(zero_copy_only=False)[np.cumsum(counts)[full] - 1]
        estimates[full] = (self.most - 1) / ((last.astype(np.float64) + 2.0**63) / 2.0**64)
        return pa.array(np.rint(estimates).astype(np.int64))

    def _least(self, hashes: IntArray, groups: IntArray, n: int) -> pa.Array:
        order = np.lexsort((hashes, groups))
        hashes, groups = hashes[order], groups[order]
        new = np.ones(len(hashes), np.bool_)
        new[1:] = (hashes[1:] != hashes[:-1]) | (groups[1:] != groups[:-1])
        hashes, groups = hashes[new], groups[new]
        place = np.arange(len(groups)) - np.searchsorted(groups, groups)
        kept = place < self.most
        return as_lists(pa.array(hashes[kept]), groups[kept], n)


@dataclass(frozen=True)
class ApproxQuantile:
    """The number of a column's values in each bucket, nulls left out.

    quantiles  each in [0, 1]; the quantile q of n values is the value at place floor(q (n - 1)) in ascending order
    single     whether the answer is a number, not a list
    """

    column: str
    quantiles: tuple[float, ...]
    error: float = 0.01
    single: bool = True

    def __post_init__(self) -> None:
        _check_error(self.error)
        if not self.quantiles or not all(0.0 <= q <= 1.0 for q in self.quantiles):
            raise ConfigError(f"quantiles must lie between 0 and 1, got {self.quantiles!r}")

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def state_type(self, schema: pa.Schema) -> pa.DataType:
        kind = field_of(schema, self.column).type
        if not (pa.types.is_signed_integer(kind) or pa.types.is_floating(kind)):
            raise ConfigError(
                f"quantiles of column {self.column!r} of type {kind}: it holds no numbers; cast it to double"
            )
        return pa.list_(_BUCKET)

    def output_type(self, schema: pa.Schema) -> pa.DataType:
        del schema
        return pa.float64() if self.single else pa.list_(pa.float64())

    def lift(self, rows: pa.Table, groups: IntArray, n: int) -> pa.Array:
        values, owners = valid_values(rows, self.column, groups)
        # Integers beyond 2**53 are rounded, which is within any allowed error.
        numbers: FloatArray = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return self._summed(self._buckets(numbers), np.ones(len(numbers), np.int64), owners, n)

    def combine(self, states: pa.Array, groups: IntArray, n: int) -> pa.Array:
        items, owners = listed(states, groups)
        buckets, counts = (part.to_numpy(zero_copy_only=False) for part in items.flatten())
        return self._summed(buckets.astype(np.int64), counts, owners, n)

    def lower(self, states: pa.Array) -> pa.Array:
        items, owners = listed(states, np.arange(len(states)))
        buckets, counts = (part.to_numpy(zero_copy_only=False) for part in items.flatten())
        values, through = self._values(buckets.astype(np.int64)), np.cumsum(counts)
        totals = np.zeros(len(states), np.int64)
        np.add.at(totals, owners, counts)
        before = np.cumsum(totals) - totals
        answers = []
        for quantile in self.quantiles:
            places = np.floor(quantile * (totals - 1)).astype(np.int64)
            at = np.searchsorted(through, before + np.maximum(places, 0), side="right")
            found = values[np.minimum(at, len(values) - 1)] if len(values) else np.zeros(len(states))
            answers.append(pa.array(found, mask=totals == 0))
        if self.single:
            return answers[0]
        flat = pa.array(np.column_stack([answer.to_numpy(zero_copy_only=False) for answer in answers]).reshape(-1))
        edges = pa.array(np.arange(len(states) + 1, dtype=np.int32) * len(self.quantiles))
        return pa.ListArray.from_arrays(edges, flat, mask=pa.array(totals == 0))

    @property
    def _growth(self) -> float:
        return float(elementary.log((1 + self.error) / (1 - self.error)))

    def _buckets(self, numbers: FloatArray) -> IntArray:
        """Return each number's bucket; larger numbers have larger buckets."""
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.ceil(elementary.log(np.abs(numbers)) / self._growth)
        finite = np.isfinite(numbers) & (numbers != 0)
        buckets = np.where(finite, np.where(finite, size, 0.0).astype(np.int64) + _MIDDLE, 0)
        buckets[np.isinf(numbers)] = _INFINITE
        buckets = np.where(numbers < 0, -buckets, buckets)
        buckets[np.isnan(numbers)] = _UNKNOWN
        return buckets

    def _values(self, buckets: IntArray) -> FloatArray:
        size = np.abs(buckets)
        # In logarithms, as the bound of the largest bucket may exceed float64.
        logarithm = (size - _MIDDLE) * self._growth + float(elementary.log(1 - self.error))
        with np.errstate(over="ignore"):
            values = np.where(size == 0, 0.0, np.sign(buckets) * elementary.exp(logarithm))
        values[size == _INFINITE] = np.sign(buckets[size == _INFINITE]) * np.inf
        values[buckets == _UNKNOWN] = np.nan
        return values

    @staticmethod
    def _summed(buckets: IntArray, counts: IntArray, groups: IntArray, n: int) -> pa.Array:
        order = np.lexsort((buckets, groups))
        buckets, counts, groups = buckets[order], counts[order], groups[order]
        new = np.ones(len(buckets), np.bool_)
        new[1:] = (buckets[1:] != buckets[:-1]) | (groups[1:] != groups[:-1])
        firsts = np.flatnonzero(new)
        sums = np.add.reduceat(counts, firsts) if len(firsts) else counts
        columns = [pa.array(buckets[firsts].astype(np.int32)), pa.array(sums)]
        return as_lists(pa.StructArray.from_arrays(columns, fields=list(_BUCKET)), groups[firsts], n)


def _check_error(error: float) -> None:
    if not _FINEST <= error <= _COARSEST:
        raise ConfigError(f"error must lie between {_FINEST} and {_COARSEST}, got {error!r}")
