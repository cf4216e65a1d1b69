"""python -m tests.differential.spark.extremes: every ordered type at both ends of its range, through every query and on every way.

A case is a few rows whose values lie beside one another, so that float64 would take some for equal. Many cases are tried at once: the
column `case` forms groups. A definition in Python answers each, and the code of workers, static DataFrames, SQL and a stream agree.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from tests.differential.definition.aggregate import chosen, collected, different, mode, taken
from tests.differential.definition.values import dense, key, lines, order
from tests.differential.spark import extreme_fronts, files
from tests.differential.spark.seeds import run
from tests.oracles import k_dominant_indices, skyline_indices, top_delta_indices

import skypane as sp
from skypane.jobs.user_code import AllowedModules
from skypane.operators.aggregates.function_text import function_of
from skypane.runtime.spark.spark_schema import spark_schema

Rows: TypeAlias = list[dict[str, Any]]
ByCase: TypeAlias = dict[int, Any]

CASES: Final = 60
_ROWS: Final = 7
_ALONE: Final = 10
"""Cases that are tried without groups, too."""
_EXACT: Final = Context(prec=60)
_WAIT: Final = 300.0


class Ordered(NamedTuple):
    """A type, and values of it in ascending order, times as whole numbers."""

    type: pa.DataType
    values: list[Any]

    @property
    def is_number(self) -> bool:
        """Whether a value has a distance to a number."""
        tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        return any(test(self.type) for test in tests)

    @property
    def is_text(self) -> bool:
        """Whether values are not better or worse, but have an order."""
        return any(test(self.type) for test in (pa.types.is_string, pa.types.is_binary))


def _whole(least: int, most: int) -> list[int]:
    near = {end + step for end in (least, -(2**60), -(2**53), 0, 2**53, 2**60, most) for step in range(-3, 4)}
    return sorted(one for one in near if least <= one <= most)


def _stored(bits: int) -> list[int]:
    return _whole(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _decimals(precision: int, scale: int) -> Ordered:
    most = 10**precision - 1
    values = [_EXACT.scaleb(Decimal(one), -scale) for one in _whole(-most, most)]
    return Ordered(pa.decimal128(precision, scale), values)


def _floats(kind: Any) -> list[float]:
    most, least = np.finfo(kind).max, np.finfo(kind).smallest_subnormal
    positive = [least, kind(1), np.nextafter(kind(1), kind(2)), np.nextafter(most, kind(0)), most, kind(np.inf)]
    return [float(one) for one in (*(-one for one in reversed(positive)), kind(-0.0), kind(0.0), *positive)]


TYPES: Final[dict[str, Ordered]] = {
    "tinyint": Ordered(pa.int8(), _stored(8)),
    "bigint": Ordered(pa.int64(), _stored(64)),
    "double": Ordered(pa.float64(), _floats(np.float64)),
    "decimal(38,18)": _decimals(38, 18),
    "string": Ordered(pa.string(), ["", "\0", " ", "A", "a", "a\0", "a ", "ab", "ä", "\uffff", "\U00010000", "\U0010ffff"]),
    "timestamp": Ordered(pa.timestamp("us", "UTC"), _stored(64)),
    "smallint": Ordered(pa.int16(), _stored(16)),
    "int": Ordered(pa.int32(), _stored(32)),
    "float": Ordered(pa.float32(), _floats(np.float32)),
    "decimal(5,2)": _decimals(5, 2),
    "decimal(18,2)": _decimals(18, 2),
    "decimal(38,0)": _decimals(38, 0),
    "boolean": Ordered(pa.bool_(), [False, True]),
    "binary": Ordered(pa.binary(), [b"", b"\0", b"\0\0", b"\x7f", b"\x80", b"\xff", b"\xff\0", b"\xff\xff"]),
    "date": Ordered(pa.date32(), _stored(32)),
    "timestamp_ntz": Ordered(pa.timestamp("us"), _stored(64)),
    "interval": Ordered(pa.duration("us"), _stored(64)),
}  # fmt: skip


def table(rng: np.random.Generator, of: Ordered, cases: int = CASES) -> pa.Table:
    """Return the rows of so many cases: case, id, and three columns v, w, u of the type; and a time, the same for all."""
    length = cases * _ROWS
    columns = {"case": pa.array(np.repeat(np.arange(cases), _ROWS), pa.int32()),
               "id": pa.array(np.tile(np.arange(_ROWS), cases), pa.int32()),
               "ts": pa.array(np.full(length, 1_767_225_600_000_000)).cast(pa.timestamp("us", "UTC"))}  # fmt: skip
    for name in ("v", "w", "u"):
        begins = np.repeat(rng.integers(0, max(len(of.values) - 2, 1), cases), _ROWS)
        places = np.minimum(begins + rng.integers(0, 3, length), len(of.values) - 1)
        columns[name] = _array([of.values[place] for place in places], of.type)
    rows = pa.table(columns)
    return rows.take(pa.array(rng.permutation(length)))


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_temporal(kind):
        return pa.array(values, kind)
    return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)


class Asked(NamedTuple):
    """A query of groups, the same in SQL, and what it means: the answer of a case from its rows.

    make   returns the query of some groups
    """

    make: Callable[[Any], sp.Query]
    sql: str
    meaning: Callable[[Rows], Any]


def _of_rows(chosen_of: Callable[[Any], Any], *columns: tuple[str, int]) -> Callable[[Rows], list[int]]:
    """Return what a query means that chooses rows by points: by columns, each smaller (1) or larger (-1) is better."""

    def meaning(rows: Rows) -> list[int]:
        points = np.column_stack([sense * dense([row[name] for row in rows]) for name, sense in columns]).astype(float)
        return sorted(rows[at]["id"] for at in chosen_of(points))

    return meaning


def _top(rows: Rows, *, largest: bool) -> list[int]:
    sense = -1 if largest else 1
    ranks = sense * dense([row["v"] for row in rows])
    return [row["id"] for _, row in sorted(zip(ranks, rows, strict=True), key=lambda one: (one[0], one[1]["id"]))][:3]


def _nearest(rows: Rows, target: Any) -> list[int]:
    floats = isinstance(target, float)
    away = [abs(row["v"] - target) if floats else abs(Fraction(row["v"]) - Fraction(target)) for row in rows]
    places = [{"id": row["id"], "v": one, "w": row["w"]} for row, one in zip(rows, away, strict=True)]
    return _of_rows(skyline_indices, ("v", 1), ("w", -1))(places)


def _apart(rows: Rows) -> list[int]:
    """The least id of each value."""
    found: dict[Any, int] = {}
    for row in rows:
        found[key(row["v"])] = min(row["id"], found.get(key(row["v"]), row["id"]))
    return sorted(found.values())


def _of_values(meaning: Callable[[list[Any]], Any]) -> Callable[[Rows], Any]:
    return lambda rows: meaning([row["v"] for row in rows])


FUNCTIONS: Final[dict[str, tuple[str, Callable[[Rows], Any]]]] = {
    "least": ("min(v)", _of_values(partial(min, key=order))),
    "most": ("max(v)", _of_values(partial(max, key=order))),
    "earliest": ("first(id, order=v)", lambda rows: chosen(rows, "id", "v", last=False)),
    "latest": ("last(id, order=v)", lambda rows: chosen(rows, "id", "v", last=True)),
    "low": ("min_by(id, v)", lambda rows: chosen(rows, "id", "v", last=False)),
    "high": ("max_by(id, v)", lambda rows: chosen(rows, "id", "v", last=True)),
    "frequent": ("mode(v)", _of_values(mode)),
    "number": ("count_distinct(v)", _of_values(lambda values: len(set(map(key, values))))),
    "each": ("collect_set(v)", _of_values(different)),
    "listed": ("collect_list(id, order=v)", lambda rows: collected(rows, "id", "v")),
    "part": ("percentile_approx(v, 0.3)", _of_values(lambda values: taken(values, 0.3))),
}  # fmt: skip


def asked(of: Ordered, target: Any) -> dict[str, Asked]:
    """Return the queries over rows of a type; `target` is a number to which values have distances."""
    functions = {name: one for name, one in FUNCTIONS.items() if name != "part" or of.is_number}
    texts = ", ".join(f"{text} AS {name}" for name, (text, _) in functions.items())
    made = {name: function_of(text, AllowedModules()) for name, (text, _) in functions.items()}
    every = {
        "largest": Asked(lambda by: sp.TopK(3, "v", by), "top_k(TABLE(rows), 3, 'v', 'case')", partial(_top, largest=True)),
        "smallest": Asked(lambda by: sp.TopK(3, "v", by, largest=False), "top_k(TABLE(rows), 3, 'v', 'case', false)", partial(_top, largest=False)),
        "apart": Asked(lambda by: sp.Skyline("id MIN, v DIFF", by), "skyline(TABLE(rows), 'id MIN, v DIFF', 'case')", _apart),
        "aggregate": Asked(lambda by: sp.Aggregate(by, functions=made), f"aggregate(TABLE(rows), '{texts}', by => 'case')",
                           lambda rows: {name: meaning(rows) for name, (_, meaning) in functions.items()}),
    }  # fmt: skip
    if of.is_text:
        return every
    two, three = "v MIN, w MAX", "v MIN, w MAX, u MIN"
    by_two, by_three = (("v", 1), ("w", -1)), (("v", 1), ("w", -1), ("u", 1))
    every |= {
        "skyline": Asked(partial(sp.Skyline, two), f"skyline(TABLE(rows), '{two}', 'case')", _of_rows(skyline_indices, *by_two)),
        "k_dominant": Asked(partial(sp.KDominant, 2, three), f"k_dominant(TABLE(rows), 2, '{three}', 'case')",
                            _of_rows(lambda points: k_dominant_indices(points, 2), *by_three)),
        "top_delta": Asked(partial(sp.TopDelta, 1, three), f"top_delta(TABLE(rows), 1, '{three}', 'case')",
                           _of_rows(lambda points: top_delta_indices(points, 1)[0], *by_three)),
    }  # fmt: skip
    if of.is_number:
        near = f"v AROUND {f'{target:f}' if isinstance(target, Decimal) else repr(target)}, w MAX"
        every["around"] = Asked(
            partial(sp.Skyline, near),
            f"skyline(TABLE(rows), '{near}', 'case')",
            partial(_nearest, target=target),
        )
    return every


def by_case(answers: pa.Table, name: str) -> ByCase:
    """Return the answer of each case, in the form that its meaning has."""
    found: ByCase = {}
    for row in lines(answers):
        case = row.pop("case", 0)
        if name == "aggregate":
            found[case] = {of: row[of] for of in row if of in FUNCTIONS}
        else:
            found.setdefault(case, []).append(row["id"])
    return found if name in {"aggregate", "largest", "smallest"} else {case: sorted(ids) for case, ids in found.items()}


def differing(spark: SparkSession, seed: int, kind: str, folder: Path) -> Iterator[str | int]:
    """Yield the cases of a type that are answered wrongly, and how many each way has answered."""
    rng, of = np.random.default_rng([seed, 3]), TYPES[kind]
    rows = table(rng, of)
    queries = asked(of, _finite(of, rng))
    frame = spark.createDataFrame(rows, spark_schema(rows.schema))
    frame.createOrReplaceTempView("rows")
    cases: dict[int, Rows] = {}
    for row in lines(rows.sort_by("id")):
        cases.setdefault(row["case"], []).append(row)
    wanted = {name: {case: one.meaning(mine) for case, mine in cases.items()} for name, one in queries.items()}
    for way, name, answers in _ways(spark, queries, frame, rows, folder):
        found: ByCase = {case: [] for case in range(CASES)} | by_case(
            answers, name
        )  # perhaps no row of a case is an answer
        right = wanted[name] if way != "alone" else {case: wanted[name][case] for case in range(_ALONE)}
        yield len(right)
        for case in [case for case in right if repr(found[case]) != repr(right[case])][:2]:
            values = [[row[of] for of in ("v", "w", "u")] for row in cases[case]]
            yield f"{kind}, {name} {way}: {found[case]} for {right[case]}, of {values}"
    for target in () if of.is_text else (None, _finite(of, rng)) if of.is_number else (None,):
        yield from _differing_fronts(spark, frame, rows, target, folder / f"front of {target}")


def _finite(of: Ordered, rng: np.random.Generator) -> Any:
    finite = [one for one in of.values if not isinstance(one, float) or (np.isfinite(one) and one)]
    return finite[int(rng.integers(len(finite)))]


def _differing_fronts(
    spark: SparkSession, frame: DataFrame, rows: pa.Table, target: Any, folder: Path
) -> Iterator[str | int]:
    for way, changed, right in extreme_fronts.changes(spark, frame, rows, target, folder):
        yield CASES
        for case in sorted({case for case, *_ in changed ^ right})[:2]:
            mine = [sorted(one for one in some if one[0] == case) for some in (changed, right)]
            yield f"{rows['v'].type}, continuous skyline {way}, target {target}: {mine[0]} for {mine[1]}"


def _ways(
    spark: SparkSession, queries: dict[str, Asked], frame: DataFrame, rows: pa.Table, folder: Path
) -> Iterator[tuple[str, str, pa.Table]]:
    """Yield the way, the name of the query, and the answers that it has."""
    made = {name: one.make("case") for name, one in queries.items()}
    for name, one in queries.items():
        yield "by workers", name, _merged(made[name], rows)
        parts = [rows.filter(pa.array(rows["case"].to_numpy() == case)) for case in range(_ALONE)]
        alone = [_merged(one.make(()), part) for part in parts]
        numbered = [part.drop_columns("case") if "case" in part.column_names else part for part in alone]
        yield (
            "alone",
            name,
            pa.concat_tables(
                part.append_column("case", pa.array([case] * len(part), pa.int32()))
                for case, part in enumerate(numbered)
            ),
        )
        schema = made[name].output_schema(rows.schema)
        yield "static", name, files.in_schema(sp.ask(frame, made[name]).toArrow(), schema)
        yield "in SQL", name, files.in_schema(spark.sql(f"SELECT * FROM skypane_{one.sql}").toArrow(), schema)  # noqa: S608 - its own texts
    frame.write.parquet(str(folder / "in"))
    arriving = spark.readStream.schema(frame.schema).parquet(str(folder / "in"))
    outputs = {name: sp.Memory() for name in queries}
    job = sp.streams(arriving, made, time="ts", window="1 hour", checkpoint=str(folder / "state"), output=outputs)
    handle = job.start(trigger="availableNow")
    handle.await_termination(_WAIT)
    handle.drain()
    for name, output in outputs.items():
        yield "in a stream", name, output.table()


def _merged(query: sp.Query, rows: pa.Table) -> pa.Table:
    """Return the answer of workers, who have the rows in three parts."""
    parts = [rows.slice(at, len(rows) // 3 + 1) for at in range(0, len(rows), len(rows) // 3 + 1)]
    return query.lower(query.combine([query.lift(part) for part in parts]))


def tried(spark: SparkSession, seed: int) -> tuple[list[str], int]:
    """Draw cases of the type of a seed; return those that are answered wrongly, and how many answers there were."""
    sp.register(spark)
    with tempfile.TemporaryDirectory() as folder:
        found = [*differing(spark, seed, [*TYPES][seed % len(TYPES)], Path(folder))]
    return [one for one in found if isinstance(one, str)], sum(one for one in found if isinstance(one, int))


def main() -> int:
    """Run what the arguments say; return the exit code."""
    return run("extremes", tried)


if __name__ == "__main__":
    sys.exit(main())
