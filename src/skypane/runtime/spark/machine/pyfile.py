"""The package as a zip file, which Spark brings to Python on the workers, as it does with any file of Python modules."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from skypane.types import ConfigError

_PACKAGE: Final = "skypane"
_LEFT_OUT: Final = "__pycache__"
_THEN: Final = (1980, 1, 1, 0, 0, 0)
"""The time of each file in the archive, the first that zip knows, so that the same files give the same bytes."""


def pyfile(folder: str | os.PathLike[str] = ".") -> str:
    """Write the package as a zip file into `folder`, and return its path.

    The path is for spark.addArtifacts(path, pyfile=True) of a client of Spark Connect: queries over static DataFrames then
    run on a server without skypane, as long as it has the packages that skypane needs, which are not in the file. Streams
    need an installation there. The name has the package's version, and the same package gives the same bytes.

    Raises ConfigError if the file cannot be written.

    >>> sp.pyfile()
    'skypane-....zip'
    """
    release = _release()
    path = Path(folder) / f"{_PACKAGE}-{release}.zip"
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with ZipFile(draft, "w", ZIP_DEFLATED) as archive:
            for name, content in _contents(release):
                archive.writestr(ZipInfo(name, _THEN), content, ZIP_DEFLATED)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise ConfigError(f"the archive {path} cannot be written: {error}") from error
    return str(path)


def _release() -> str:
    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        raise ConfigError("skypane is not installed here, so its version is not known: install it, with pip") from None


def _contents(release: str) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files; with the metadata, the workers know the version."""
    yield from sorted(_files_in(files(_PACKAGE), _PACKAGE))
    metadata = f"Metadata-Version: 2.1\nName: {_PACKAGE}\nVersion: {release}\n"
    yield f"{_PACKAGE}-{release}.dist-info/METADATA", metadata.encode()


def _files_in(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name != _LEFT_OUT:
                yield from _files_in(entry, f"{name}/{entry.name}")
        else:
            yield f"{name}/{entry.name}", entry.read_bytes()
