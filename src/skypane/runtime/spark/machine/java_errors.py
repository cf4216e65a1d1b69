"""Py4J's errors, for `except`. PySpark's package `pyspark-client` comes without Py4J: there nothing raises them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py4j.protocol import Py4JError, Py4JJavaError
else:
    try:
        from py4j.protocol import Py4JError, Py4JJavaError
    except ModuleNotFoundError:

        class Py4JError(Exception):
            """An error in the exchange with Java."""

        class Py4JJavaError(Py4JError):
            """An exception of Java."""

            java_exception: Any = None


__all__ = ["Py4JError", "Py4JJavaError"]
