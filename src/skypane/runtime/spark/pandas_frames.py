"""pandas-on-Spark frames: Spark DataFrames with an index, which the functions for static DataFrames take too."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import DataFrame

if TYPE_CHECKING:  # its import takes seconds
    from pyspark.pandas import DataFrame as PandasOnSpark

Static: TypeAlias = "DataFrame | PandasOnSpark[Any]"
"""A static DataFrame of Spark, or of pandas on Spark."""


def as_spark(rows: Any) -> Any:
    """Return the Spark DataFrame of a pandas-on-Spark one, without its index; anything else as it is."""
    kind = type(rows)
    if (kind.__module__, kind.__name__) != ("pyspark.pandas.frame", "DataFrame"):
        return rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark warns that the index is lost
        frame: DataFrame = rows.to_spark()
    return frame
