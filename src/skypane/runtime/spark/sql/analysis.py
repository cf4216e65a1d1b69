"""The analysis of a call, when Spark plans it: the columns of the answers, those that are read, the partitions.

There is no session here, so the type of an expression in place of a column is unknown: a query whose answers depend on
it is refused, and the criteria of another one are checked when their first rows arrive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import DoubleType, FloatType, StructField, StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, PartitioningColumn, SelectedColumn

from skypane.naming import backticked, shortened
from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.query import TypedQuery
from skypane.plan import Plan, hidden
from skypane.preference.column import column_name
from skypane.preference.column_checks import field_of
from skypane.preference.written import Key, Written, expressions, name_in, named, unaliased
from skypane.runtime.spark.batch import gap_message
from skypane.runtime.spark.ignored_collations import compared_alike
from skypane.runtime.spark.spark_schema import answer_schema
from skypane.runtime.spark.sql.call_arguments import call_of
from skypane.runtime.spark.sql.called_query import CalledQuery, called_query, needed_of, parameters_of
from skypane.runtime.spark.sql.partition_answers import Answering
from skypane.runtime.spark.sql.row_transfer import BY_COLUMNS, as_integer, check_rows, with_type
from skypane.runtime.spark.sql.table_partitions import bucket
from skypane.runtime.spark.sql.text_parts import parts
from skypane.runtime.spark.versions import arrow_columns
from skypane.types import ConfigError

_NO_TYPE: Final = (PySparkException, AssertionError, TypeError, ValueError)
_ROW: Final = "row"
_QUOTED: Final = re.compile(r"`((?:[^`]|``)+)`")


@dataclass
class Analyzed(AnalyzeResult):
    """The analysis in Spark's terms, and, for the instances that receive rows, in skypane's."""

    answering: Answering | None = None


def analyzed(
    kind: str, arguments: Sequence[AnalyzeArgument], named_arguments: Mapping[str, AnalyzeArgument]
) -> Analyzed:
    """Return the analysis of a call of the function of a query; raise ConfigError, naming the argument or the column."""
    call = call_of(parameters_of(kind), needed_of(kind), arguments, named_arguments)
    return _Analysis(call.columns, called_query(kind, call.given)).result()


class _Analysis:
    """A call over columns: its query, in which each expression has the name of a column.

    computed   the SQL of each expression, by that name
    """

    def __init__(self, columns: StructType, called: CalledQuery) -> None:
        self._columns = columns
        self._called = called
        self._rows = _arrow(columns)
        query = called.query
        if isinstance(query, TypedQuery):
            query = query.for_types(compared_alike(self._rows, columns))
        names = _names(query, columns.names)
        self._computed = {name: sql for sql, name in names.values() if name not in columns.names}
        self._query: Any = named(query, {key: name for key, (_, name) in names.items()})
        # The type of an expression is not known: a number stands for a criterion, and an aggregate has conditions alone.
        kind = pa.bool_() if isinstance(called.query, Aggregate) else pa.float64()
        added = [pa.field(name, kind) for name in self._computed]
        self._schema = pa.schema([*self._rows, *added])
        self._plan = self._planned()

    def result(self) -> Analyzed:
        """Return the analysis; raise ConfigError if the query cannot run over these columns."""
        self._validate()
        read = self._read()
        if not BY_COLUMNS:
            check_rows(pa.schema([self._schema.field(name) for name in read]))
        unseen = hidden(self._query, tuple(self._computed))
        answering = Answering(
            self._query, self._plan, self._called.invalid, self._called.local, unseen, bool(self._computed),
            pa.schema([self._sent(name) for name in read] or [pa.field(_ROW, pa.bool_())]),
        )  # fmt: skip
        answers = self._answers(unseen)
        partition = None if self._called.local else bucket(self._query, self._plan, self._schema, self._sql)
        return Analyzed(
            schema=answers,
            withSinglePartition=partition is None and not self._called.local,
            partitionBy=[] if partition is None else [PartitioningColumn(partition)],
            select=self._select(read, partition),
            answering=answering,
        )

    def _planned(self) -> Plan | None:
        if self._called.windows is None:
            return None
        time = column_name(self._called.time, "time")
        if isinstance(time, Written):
            time = _named_column(time, self._columns.names) or _refused(time)
        field_of(self._schema, time)
        return Plan(self._query, self._called.windows, time, computed=tuple(self._computed))

    def _validate(self) -> None:
        if self._plan is not None:
            self._plan.gate.validate(self._schema)
        if not self._computed or isinstance(self._query, Aggregate):
            self._query.validate(self._schema)
        else:
            for name in self._query.required:
                field_of(self._schema, name)
        if self._called.local and self._query.output_schema(self._schema) != self._schema:
            raise ConfigError(
                "local is for queries whose answers are rows, and an aggregate answers keys: leave it out"
            )

    def _read(self) -> list[str]:
        if self._plan is not None:
            return list(self._plan.reads(self._schema))
        read = {*self._query.required, *self._query.reads(self._schema)}
        return [name for name in self._schema.names if name in read]

    def _answers(self, unseen: Sequence[str]) -> StructType:
        if self._plan is not None and not self._called.local:
            answers = self._plan.output_schema(self._schema)
        else:
            answers = self._query.output_schema(self._schema)
        kept = [field for field in answers if field.name not in unseen]
        schema = answer_schema(pa.schema(kept), self._columns, self._rows)
        # PySpark also sends an empty batch of this schema, and all batches have to be alike: Arrow's of answers allow nulls.
        return StructType([StructField(field.name, field.dataType, metadata=field.metadata) for field in schema])

    def _sent(self, name: str) -> pa.Field:
        """Return the field of a column that is sent; the type null stands for that of an expression."""
        return pa.field(name, pa.null()) if name in self._computed else self._schema.field(name)

    def _sql(self, name: str) -> str:
        """Return the SQL of a column."""
        return self._computed.get(name) or backticked(name)

    def _select(self, read: Sequence[str], partition: str | None) -> list[SelectedColumn]:
        """Return the columns that Spark sends, with others, which are left out when they arrive, if there are partitions.

        Spark puts the value of the partition behind these columns, but looks for it where it would be if all columns of
        the table were sent, and only these (FunctionTableSubqueryArgumentExpression.partitioningExpressionIndexes).
        """
        columns = [self._selected(name) for name in read] or [SelectedColumn("true", _ROW)]
        looked_for, spare = len(self._columns), max(self._schema.names, key=len)  # no name is as long as the spare ones
        if partition is not None and len(columns) > looked_for:
            columns.insert(looked_for, SelectedColumn(partition, f"{spare}_"))
        elif partition is not None:
            nothing = range(looked_for - len(columns))
            columns += [SelectedColumn("CAST(NULL AS BOOLEAN)", f"{spare}_{number}") for number in nothing]
        return columns

    def _selected(self, name: str) -> SelectedColumn:
        """Return what Spark sends as a column: a gap in it fails the query in Java, whose error is one line."""
        sql = plain = self._sql(name)
        checked = set(self._query.required) | ({self._plan.time} if self._plan is not None else set())
        kind = None if name in self._computed else self._columns[name].dataType
        if name in checked and self._called.invalid == "error":
            floating = isinstance(kind, FloatType | DoubleType)
            gap = f"{sql} IS NULL" + (f" OR isnan({sql})" if floating else "")
            sql = f"CASE WHEN {gap} THEN raise_error({_literal(gap_message(name, floating))}) ELSE {sql} END"
        if not BY_COLUMNS:
            sql = with_type(plain, sql) if kind is None else as_integer(sql, kind)
        return SelectedColumn(sql) if sql == plain and name not in self._computed else SelectedColumn(sql, name)


def _names(query: object, columns: Sequence[str]) -> dict[Key, tuple[str, str]]:
    """Return the SQL of each expression in a query, and the name of its column: one of the rows, or an unused one."""
    names: dict[Key, tuple[str, str]] = {}
    taken = {name.lower() for name in columns}
    for written in expressions(query):
        if written.key in names:
            continue
        column = _named_column(written, columns)
        if column is not None:
            names[written.key] = backticked(column), column
            continue
        if isinstance(query, Aggregate) and not written.quoted:
            _refused(written)
        name = next(name for name in _unused(name_in(written.sql)) if name.lower() not in taken)
        taken.add(name.lower())
        # Without parentheses, Spark would take "city street" for the column city under another name.
        names[written.key] = f"({unaliased(written.sql)})", name
    return names


def _named_column(written: Written, columns: Sequence[str]) -> str | None:
    """Return the column that a text names, in backticks or not; None for an expression. Raises ConfigError for others."""
    if written.sql in columns:
        return written.sql
    if not written.sql.strip():
        raise ConfigError(f"{written.argument} must name a column, got {written.sql!r}")
    if len(list(parts(written.sql))) > 1:
        raise ConfigError(
            f"{written.argument}: {shortened(written.sql)!r} has a comma; several columns are an array: array('city', 'day')"
        )
    quoted = _QUOTED.fullmatch(written.sql.strip())
    name = quoted[1].replace("``", "`") if quoted else ""
    return name if name in columns else None


def _unused(name: str) -> Iterator[str]:
    while True:
        yield name
        name += "_"


def _refused(written: Written) -> NoReturn:
    sql = shortened(written.sql)
    raise ConfigError(
        f"{written.argument}: {sql!r} is not a column, and the type of an expression is not known here: name it in the "
        f"table, TABLE(SELECT *, {sql} AS x ...)"
    )


def _arrow(columns: StructType) -> pa.Schema:
    """Return the Arrow schema of the columns; raise ConfigError for names or types that cannot be sent."""
    by_lower: dict[str, str] = {}
    for name in columns.names:
        if name.lower() in by_lower:
            raise ConfigError(f"columns {by_lower[name.lower()]!r} and {name!r} of the table are the same: rename one")
        by_lower[name.lower()] = name
    return pa.schema([_arrow_field(field) for field in columns])


def _arrow_field(field: StructField) -> pa.Field:
    try:
        return arrow_columns(StructType([field]))[0]
    except _NO_TYPE as error:
        kind = field.dataType.simpleString()
        raise ConfigError(
            f"column {field.name!r} is of type {kind}, which cannot be transferred to Python: leave it out of the "
            f"table, or cast it to a number or a text"
        ) from error


def _literal(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
