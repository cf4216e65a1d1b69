"""Where files lie: one reading of paths and URIs, so that Spark, pyarrow and this process mean the same by a text.

A text is read as Hadoop reads it: nothing in it is percent-encoded, "//" and ".." are settled in the text, a colon
before the first slash ends a scheme. Only a path without a scheme is read as Python reads it: it is one of this
machine, as seen from the working folder, whose "~" is the user's home.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from skypane.types import ConfigError

LOCAL = "file"

_SCHEME = re.compile(r"([^/:]*):(.*)", re.DOTALL)
_AUTHORITY = re.compile(r"//([^/]*)(.*)", re.DOTALL)

_ARROW = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "hdfs": "hdfs",
    "viewfs": "viewfs",
    "abfs": "abfs",
    "abfss": "abfss",
}
"""Schemes of Hadoop by what pyarrow calls them."""

_REMEDIES = {
    "dbfs": "write it as the folder that it is mounted at: /dbfs/... for dbfs:/...",
    "wasb": "write it as abfss://container@account.dfs.core.windows.net/...",
    "wasbs": "write it as abfss://container@account.dfs.core.windows.net/...",
}
_OTHERWISE = (
    f"use a path, or a URI of one of {', '.join(['file', *_ARROW])}; ./ before a folder's name that has a colon"
)


@dataclass(frozen=True)
class Place:
    """A file or folder: on this machine if the scheme is "file", else in what `authority` names (a bucket, a host)."""

    scheme: str
    authority: str
    path: str
    """From the root, without a slash at its end."""

    @classmethod
    def of(cls, where: object, field: str = "path") -> Place:
        """Return the place that a path or URI means; raise ConfigError, naming `field`, if it means none.

        >>> str(Place.of("file:/data/../out/")), str(Place.of("s3a://bucket/a b"))
        ('/out', 's3a://bucket/a b')
        """
        text = os.fspath(where) if isinstance(where, (str, os.PathLike)) else ""
        if not text or "\0" in text:
            raise ConfigError(f"{field} must be a path or a URI, got {where!r}")
        match = _SCHEME.fullmatch(text)
        if match is None:
            return cls(LOCAL, "", _normal(os.path.abspath(os.path.expanduser(text))))  # noqa: PTH100, PTH111 - texts
        scheme, rest = match[1].lower(), match[2]
        authority, path = split.groups() if (split := _AUTHORITY.fullmatch(rest)) else ("", rest)
        if path and not path.startswith("/"):
            raise ConfigError(f"{field}: {text!r} has the scheme {scheme!r} and no path from the root; {_OTHERWISE}")
        if scheme == LOCAL and authority:
            raise ConfigError(f"{field}: {text!r} names the host {authority!r}; files of this machine are file:///...")
        if scheme in _ARROW and scheme not in {"hdfs", "viewfs"} and not authority:
            raise ConfigError(f"{field}: {text!r} names no bucket; write {scheme}://bucket/... (a text, not a Path)")
        return cls(scheme, authority, _normal(path))

    def __str__(self) -> str:
        """Return the path if it is of this machine, else a URI: what of() reads as the same place."""
        return self.path or "/" if self.is_local else self.spark

    @property
    def is_local(self) -> bool:
        return self.scheme == LOCAL

    @property
    def spark(self) -> str:
        """The URI by which Spark means this place, whatever its default file system is."""
        return f"{self.scheme}://{self.authority}{self.path or '/'}"

    def child(self, name: str) -> Place:
        return replace(self, path=f"{self.path}/{name}")

    def resolved(self) -> Place:
        """Return the one name that all names of this place have: symbolic links followed, s3a and s3 the same."""
        if self.is_local:
            return replace(self, path=os.path.realpath(self.path or "/"))
        return replace(self, scheme=_ARROW.get(self.scheme, self.scheme))

    def of_this_machine(self, what: str) -> str:
        """Return the path; raise ConfigError, which begins with `what` is done, if it is not one of this machine."""
        if not self.is_local:
            raise ConfigError(f"{what} files of this machine, got {self}")
        return str(self)

    def check_writable(self, field: str = "path") -> None:
        """Raise ConfigError, naming `field`, if this is on a kind of file system that pyarrow does not reach."""
        if not self.is_local and self.scheme not in _ARROW:
            remedy = _REMEDIES.get(self.scheme, _OTHERWISE)
            raise ConfigError(f"{field}: {self} is on a file system {self.scheme!r}, which pyarrow lacks; {remedy}")

    @cached_property
    def files(self) -> tuple[fs.FileSystem, str]:
        """The file system, as pyarrow knows it, and the path there; ConfigError if there is no way to it."""
        if self.is_local:
            return fs.LocalFileSystem(), self.path
        self.check_writable()
        try:
            filesystem, path = fs.FileSystem.from_uri(
                f"{_ARROW[self.scheme]}://{self.authority}{quote(self.path, safe='/')}"
            )
        except (OSError, pa.ArrowException) as error:
            raise ConfigError(f"cannot reach {self}: {error}") from error
        return filesystem, path.rstrip("/")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give the name of a draft, which takes the place of `path` when all went well: others see the whole file or none."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield draft
        draft.replace(path)
    finally:
        with suppress(OSError):  # what went wrong before is what matters
            draft.unlink(missing_ok=True)


def _normal(path: str) -> str:
    """Return a path from the root without "//", "." and ".."; the root itself is ""."""
    kept: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del kept[-1:]
        elif name not in {"", "."}:
            kept.append(name)
    return "".join(f"/{name}" for name in kept)
