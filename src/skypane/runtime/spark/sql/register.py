"""The table functions of SQL: one for each query, registered in a session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, StructField, StructType

from skypane.runtime.spark.machine.interpreter import check_workers
from skypane.runtime.spark.sql.called_query import QUERIES, sql_name
from skypane.runtime.spark.sql.row_transfer import BY_COLUMNS
from skypane.runtime.spark.sql.table_function import handler


def register(spark: SparkSession) -> tuple[str, ...]:
    """Register each query as a table function of SQL, and return the names of the functions.

    For example: SELECT * FROM skypane_skyline(TABLE(offers), 'price MIN, rating MAX', by => 'city'). The first argument
    is the table; the others are constants, in order or by name, and mean what they mean in skyline(), top_k(),
    k_dominant(), top_delta() and aggregate(). skypane_aggregate takes its functions as a text:
    'count() AS n, sum(amount) AS total'.

    The functions are those of this session, classic or over Spark Connect, and static tables only. A query of another
    package, an entry point of skypane.queries, is a function, too. docs/sql.md describes arguments, speed and limits.

    >>> functions = sp.register(spark)
    >>> offers.createOrReplaceTempView("offers")
    >>> spark.sql('''
    ...     SELECT city, price FROM skypane_skyline(TABLE(offers), 'price MIN, rating MAX') ORDER BY price
    ... ''').show()
    +-----+-----+
    | city|price|
    +-----+-----+
    |Basel| 60.0|
    |Basel| 90.0|
    | Bern| 95.0|
    +-----+-----+
    """
    check_workers(spark)
    for kind in QUERIES:
        spark.udtf.register(sql_name(kind), _function(kind))
    return tuple(map(sql_name, QUERIES))


def _function(kind: str) -> Any:
    """Return the function in PySpark's terms: it receives Arrow batches where Spark has such functions, else single rows."""
    function: Any = sf.udtf(handler(kind), useArrow=False)
    if BY_COLUMNS:
        # PySpark's own decorator refuses these if their columns depend on the call (SPARK-53286); its planner and workers do not.
        like: Any = sf.arrow_udtf(_Columns, returnType=_Columns.TYPE)
        function.evalType = like.evalType
    return function.asDeterministic()


class _Columns:
    """A function of Arrow batches, from which PySpark says how it calls these."""

    TYPE = StructType([StructField("column", IntegerType())])

    def eval(self) -> None: ...
