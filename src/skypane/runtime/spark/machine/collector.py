"""The garbage collector of Java in a local session.

Java's default on most machines, G1, collects in several threads beside the program. A session of one or two threads does as well
with the serial collector, which needs less memory and, in most runs, less CPU time (docs/limits.md has figures). Java does not
start with two collectors, so a user's choice is looked for wherever Spark and Java take options from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyspark

from skypane.runtime.spark.machine.java import OPTION_VARIABLES

SERIAL: Final = "-XX:+UseSerialGC"

_MOST_THREADS: Final = 2
"""The serial collector is not measured with more threads: they keep Java's default."""
_DEFAULT_OPTIONS: Final = "spark.driver.defaultJavaOptions"
"""The setting whose options of Java precede those of the session."""
_VARIABLES: Final = (*OPTION_VARIABLES, "PYSPARK_SUBMIT_ARGS")
"""Variables of the environment with options of Java, or with settings that have some."""
_CHOICE: Final = re.compile(
    r"-XX:\S*(GC|G1)"  # a collector, or how one works
    r"|-XX:Flags=|-XX:VMOptionsFile=|(^|[\s=])@|--properties-file"  # files with options, which are not read here
)


def with_collector(options: str, threads: int, settings: Mapping[str, str]) -> str:
    """Return options of Java, followed by the serial collector if a session has few threads and nobody has chosen another.

    options    those of the session
    threads    how many tasks the session runs at once
    settings   the session's, which may have other options for its Java

    Never raises: what cannot be read leaves Java its own default.
    """
    if threads > _MOST_THREADS:
        return options
    try:
        variables = [os.environ.get(name, "") for name in _VARIABLES]
        given = [options, settings.get(_DEFAULT_OPTIONS, ""), *variables, _defaults_file()]
    except (OSError, ValueError):  # no permission to read; not a text
        return options
    if any(map(_CHOICE.search, given)):
        return options
    return f"{options} {SERIAL}".lstrip()


def _defaults_file() -> str:
    """Return the text of spark-defaults.conf as Spark finds it, "" if there is none."""
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    folder = os.environ.get("SPARK_CONF_DIR") or f"{home}/conf"
    file = Path(folder, "spark-defaults.conf")
    return file.read_text(encoding="utf-8") if file.exists() else ""
