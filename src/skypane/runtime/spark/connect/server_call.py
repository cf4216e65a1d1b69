"""Calls that run on a Python worker of the server, which reaches the checkpoint also if the client does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from skypane.types import CheckpointError, ConfigError, SkypaneError

_ANSWER: Final = StructType([
    StructField("value", BinaryType()),
    StructField("kind", StringType()),
    StructField("error", StringType()),
])  # fmt: skip
_ARROW: Final = pa.schema({"value": pa.binary(), "kind": pa.string(), "error": pa.string()})

_ERRORS: Final[Mapping[str, type[SkypaneError]]] = {
    error.__name__: error for error in (SkypaneError, ConfigError, CheckpointError)
}


def bytes_from_server(spark: SparkSession, work: Callable[[], bytes]) -> bytes:
    """Return what `work`, which is pickled, returns on a worker; raise the SkypaneError that it raises there."""
    (row,) = spark.range(0, 1, 1, 1).mapInArrow(_Working(work), _ANSWER).collect()
    if row.error is not None:
        raise _ERRORS.get(row.kind, SkypaneError)(row.error)
    return bytes(row.value)


def from_server(spark: SparkSession, work: Callable[[], Any]) -> Any:
    """Return the JSON value that `work` returns on a worker; raise the SkypaneError that it raises there."""
    return json.loads(bytes_from_server(spark, _AsJson(work)))


@dataclass(frozen=True, slots=True)
class _AsJson:
    """Work whose value travels as JSON."""

    work: Callable[[], Any]

    def __call__(self) -> bytes:
        return json.dumps(self.work()).encode()


@dataclass(frozen=True, slots=True)
class _Working:
    """A stage that does some work for the only row that it receives; travels to the worker."""

    work: Callable[[], bytes]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if sum(batch.num_rows for batch in batches):
            yield pa.RecordBatch.from_pylist([self._answer()], _ARROW)

    def _answer(self) -> dict[str, Any]:
        try:
            return {"value": self.work()}
        except SkypaneError as error:
            return {"kind": type(error).__name__, "error": str(error)}
        except OSError as error:
            return {"kind": CheckpointError.__name__, "error": f"the checkpoint cannot be used on the server: {error}"}
