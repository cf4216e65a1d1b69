"""Rejected rows, parsed again from their raw text, which may have been repaired."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from skypane.operators.entry.raw_text import ENCODING, ERROR, FORMAT, KEPT, OFFSET, TEXT
from skypane.operators.entry.reject_reasons import REASON
from skypane.runtime.columns_to_read import set_as_spark, with_places
from skypane.runtime.local_times import UTC, zone_for
from skypane.runtime.row_parser import Malformed, RowFormat, form_of
from skypane.runtime.spark.sources.many.message_rows import tables
from skypane.runtime.spark.spark_schema import arrow_schema, from_spark, struct_of
from skypane.types import ConfigError


def reparsed(rows: DataFrame, schema: str | StructType | None = None) -> DataFrame:
    """Return rejected rows, those of a late sink, with the values that their raw text has, where it parses.

    rows     rows with raw_text, raw_encoding and raw_format, as readmit() gives them to its `repair`
    schema   columns to parse, which may differ from those with which the rows were read; default: those of the rows

    A row whose text does not parse, or that has none, stays as it is; raw_error says why. Values that a text lacks, such as
    the name of the input, are kept. Texts are parsed as sp.inputs() parses lines and messages of csv and JSON.

    >>> from pyspark.sql import functions as sf
    >>> rejected = spark.createDataFrame([(None, '{"price": 2,5}', "utf-8", "json")],
    ...     "price double, raw_text string, raw_encoding string, raw_format string")
    >>> sp.reparsed(rejected.withColumn("raw_text", sf.replace("raw_text", sf.lit("2,5"), sf.lit("2.5")))).select("price").show()
    +-----+
    |price|
    +-----+
    |  2.5|
    +-----+
    """
    lacking = [name for name in (TEXT, ENCODING, FORMAT) if name not in rows.columns]
    if lacking:
        raise ConfigError(
            f"the rows have no {', '.join(lacking)}: only rows of a late sink that kept their raw text have"
        )
    there = [one for one in rows.schema if one.name not in (*KEPT.names, REASON)]
    wanted = StructType(there) if schema is None else struct_of(schema)
    names = {one.name for one in there}
    all_columns = StructType([*rows.schema, *(one for one in wanted if one.name not in names)])
    spark = rows.sparkSession
    columns = arrow_schema(spark.createDataFrame([], wanted))
    zone = spark.conf.get("spark.sql.session.timeZone") or UTC
    columns = set_as_spark(columns, zone_for(columns, zone), case_sensitive=True)
    return rows.mapInArrow(_Reparse(columns), all_columns)


@dataclass(frozen=True)
class _Reparse:
    """Parses the texts of batches of rows; travels to the workers."""

    columns: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in from_spark(batches):
            yield from self._parsed(pa.Table.from_batches([batch])).combine_chunks().to_batches()

    def _parsed(self, rows: pa.Table) -> pa.Table:
        found, errors = [], dict[int, str | None]()
        told = rows.select([TEXT, ENCODING, FORMAT]).to_pylist()
        by_form: dict[str, dict[int, bytes]] = {}
        for at, row in enumerate(told):
            if row[TEXT] is not None and row[FORMAT] is not None:
                try:
                    by_form.setdefault(row[FORMAT], {})[at] = _bytes(row[TEXT], row[ENCODING])
                except binascii.Error as error:
                    errors[at] = f"raw_text is not base64: {error}"
        for form, values in by_form.items():
            known = form_of(form)
            if known is None:
                errors |= dict.fromkeys(values, f"raw_format {form!r} is neither json nor csv")
                continue
            layout = RowFormat(known[0], with_places(self.columns), known[1])
            for part in tables(layout, [*values.values()], [*values]):
                if isinstance(part, Malformed):
                    errors[part.offset] = part.error
                else:
                    found.append(part)
        return self._filled(rows, found, errors)

    def _filled(self, rows: pa.Table, found: list[pa.Table], errors: dict[int, str | None]) -> pa.Table:
        """Return the rows with the values that were found, by the numbers of the rows."""
        place = np.full(rows.num_rows, -1)
        places = [part.column(OFFSET).to_numpy() for part in found]
        numbers = np.concatenate([*places, np.empty(0, np.int64)])
        place[numbers] = np.arange(len(numbers))
        index = pa.array(place, mask=place < 0)
        parsed = pa.concat_tables([self.columns.empty_table(), *(part.select(self.columns.names) for part in found)])
        for column in self.columns:
            values = parsed.column(column.name).combine_chunks().take(index)
            at = rows.schema.get_field_index(column.name)
            if at < 0:
                rows = rows.append_column(column, values)
            else:
                before = rows.column(at)
                rows = rows.set_column(at, rows.schema.field(at), pc.coalesce(values.cast(before.type), before))
        if ERROR in rows.column_names:
            before = rows.column(ERROR).to_pylist()
            told = [errors.get(at, None if place[at] >= 0 else one) for at, one in enumerate(before)]
            at = rows.schema.get_field_index(ERROR)
            rows = rows.set_column(at, rows.schema.field(at), pa.array(told, pa.string()))
        return rows


def _bytes(text: str, encoding: str | None) -> bytes:
    return b64decode(text, validate=True) if encoding == "base64" else text.encode()
