"""A folder of answers that appears at once: its files are written beside it, and one rename makes all of them visible.

    <parent>/.<name>.skypane-<run>/written/    files of tasks, also of attempts that have failed or still run; earlier runs
    <parent>/.<name>.skypane-<run>/answers/    the files that count; they become <parent>/<name>
    <parent>/.<name>.skypane-<run>/replaced/   the folder that was there before, until they have

Readers ignore names that begin with a dot. A run that begins moves the folders of earlier runs of the same output into its
`written`: a run that was killed leaves nothing, and one that is still alive has lost its files and fails, so that the later
run decides. Of two that begin at the same time one is left: the first of the two moves makes the other one fail. If a run
was killed between its two renames, it has both `answers` and `replaced`, and the latter are moved back.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias, get_args

from pyarrow import fs

from skypane.locations import Location
from skypane.naming import instead
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.sinks.folder_owner import OWNER
from skypane.types import ConfigError, SkypaneError

IfExists: TypeAlias = Literal["error", "overwrite"]
"""A run whose folder has files already is refused, or its answers replace them."""

WRITTEN: Final = "written"
_ANSWERS: Final = "answers"
_REPLACED: Final = "replaced"
_DATA: Final = (".parquet", ".csv", ".json", ".crc")
"""Endings of the files that may be replaced, beside those that readers ignore."""


def check_if_exists(if_exists: str) -> None:
    """Raise ConfigError unless `if_exists` is "error" or "overwrite"."""
    if if_exists not in get_args(IfExists):
        raise ConfigError(f"if_exists: {instead(str(if_exists), get_args(IfExists))}")


@dataclass(frozen=True, slots=True)
class AnswerFolder:
    """One run's right to put answers into the folder `name` of `parent`.

    run   name of the run's own folder, beside it
    """

    parent: DocumentStore
    name: str
    run: str
    if_exists: IfExists

    @classmethod
    def at(cls, place: Location, if_exists: IfExists) -> Self:
        """Return the right of a new run, at a place_of(); begin() takes it."""
        parent, _, name = place.path.rpartition("/")
        run = f".{name}.skypane-{uuid.uuid4().hex}"
        return cls(DocumentStore(str(replace(place, path=parent))), name, run, if_exists)

    def begin(self) -> None:
        """Create the run's own folder; earlier runs of the same output can no longer put answers into theirs.

        Raises ConfigError if the folder may not be created or replaced; then nothing has changed.
        """
        try:
            self.check()
            for part in (WRITTEN, _ANSWERS):  # without the first, which is made once, this run can move no other
                self._mine.child(part).make()
            self._end_others()
            self.check()  # again: a run that was killed may have left the answers before it
        except OSError as error:
            self.abandon()
            raise ConfigError(
                f"output: answers are written beside {self.path} first, and {self.parent.root} cannot have another "
                f"folder: {error}"
            ) from error
        except BaseException:
            self.abandon()
            raise

    @property
    def path(self) -> str:
        """The folder of the answers."""
        return self.parent.path(self.name)

    @property
    def written(self) -> DocumentStore:
        """The folder for the files of tasks; each attempt of a task needs a name of its own."""
        return self._mine.child(WRITTEN)

    def check(self) -> None:
        """Raise ConfigError if there are files that may not be replaced."""
        target = self.parent.child(self.name)
        if _is_file(target):
            raise ConfigError(f"output: {self.path} is a file: name a folder")
        files, folders = target.names(), target.folders()
        if not files and not folders:
            return
        if self.if_exists == "error":
            raise ConfigError(
                f"output: {self.path} has files already: name another folder, or replace them with if_exists='overwrite'"
            )
        others = [name for name in files if not name.startswith(("_", ".")) and not name.endswith(_DATA)]
        if OWNER in files:
            raise ConfigError(
                f"output: {self.path} has the answers of a stream, whose checkpoint counts them as delivered: name another "
                f"folder, or remove this one"
            )
        if folders or others:
            raise ConfigError(
                f"output: {self.path} has {(folders or others)[0]!r}, which is not a file of answers: name another folder, or "
                f"remove this one"
            )

    def publish(self, files: Sequence[str]) -> None:
        """Let the folder have these files of `written`, in this order, and no others; readers see all of them, or none.

        Raises SkypaneError, with the folder as it was before, if a later run of the same output has begun, or another
        program has put files there.
        """
        answers = self._mine.child(_ANSWERS)
        try:
            for index, name in enumerate(files):
                self.written.move(name, answers, f"part-{index:05d}.parquet")
            answers.sync("")
            self._replace()
        except OSError as error:
            raise self.lost(error) from error
        self.parent.sync("")
        self.abandon()

    def abandon(self) -> None:
        """Remove the run's own folder, unless it has the only answers there are, which the next run moves back."""
        with suppress(OSError):  # the next run removes what is left
            if self.parent.has(self.name) or not self._holds_replaced:
                self.parent.remove_folder(self.run)

    def lost(self, error: BaseException) -> SkypaneError:
        """Return the error of a run whose answers cannot be put into the folder."""
        ended = not self.written.exists
        why = "a later run of the same output has begun" if ended else cause(error)
        return SkypaneError(f"output: {self.path} is as before, without the answers of this run: {why}")

    @property
    def _mine(self) -> DocumentStore:
        return self.parent.child(self.run)

    @property
    def _holds_replaced(self) -> bool:
        return _is_between(self._mine) or next(self._with_replaced(self.written), None) is not None

    def _replace(self) -> None:
        """Rename the answers to the folder, and before that the folder that is there to one that is removed later."""
        target = self.parent.child(self.name)
        if target.exists:
            self.check()
            self.parent.move(self.name, self._mine, _REPLACED)
        try:
            self._mine.move(_ANSWERS, self.parent, self.name)
        except OSError:
            if not target.exists:
                with suppress(OSError):  # else the next run moves it back
                    self._mine.move(_REPLACED, self.parent, self.name)
            raise

    def _end_others(self) -> None:
        """Move the folders of earlier runs into this one's, and move back the answers that one of them was replacing."""
        for other in self.parent.folders():
            if not self._is_run(other) or other == self.run:
                continue
            with suppress(FileNotFoundError):  # it has just ended, or another run has moved it
                self.parent.move(other, self.written, other)
        holder = next(self._with_replaced(self.written), None)
        if holder is not None and not self.parent.has(self.name):
            holder.move(_REPLACED, self.parent, self.name)

    def _is_run(self, folder: str) -> bool:
        """Return whether a folder is that of a run whose answers go to the same folder as those of this one."""
        return re.fullmatch(rf"\.{re.escape(self.name)}\.skypane-[0-9a-f]{{32}}", folder) is not None

    def _with_replaced(self, folder: DocumentStore) -> Iterator[DocumentStore]:
        """Yield the folders of runs, at any depth below `folder`, that ended between their two renames."""
        for name in filter(self._is_run, folder.folders()):
            run = folder.child(name)
            if _is_between(run):
                yield run
            yield from self._with_replaced(run.child(WRITTEN))


def place_of(output: str | os.PathLike[str]) -> Location:
    """Return the location of an output; raise ConfigError, with the remedy, if no rename can make it appear at once."""
    place = Location.of(output, "output").resolved()  # a link to a folder stays, and the folder is replaced
    place.check_writable("output")
    if place.is_object:
        raise ConfigError(
            f"output: {place} is in an object store, where files cannot appear at once: let Spark write them, "
            f"with sp.ask(...).write.parquet({str(place)!r}) and the committer of that store"
        )
    if not place.path.strip("/"):
        raise ConfigError(f"output: {place} is the root of a file system: name a folder in it")
    if place.is_local and Path(place.path).is_mount():
        raise ConfigError(f"output: {place} is where a disk is mounted, which no rename replaces: name a folder in it")
    return place


def _is_between(run: DocumentStore) -> bool:
    """Return whether a run has taken the answers before it away, and has not put its own in their place."""
    return run.has(_REPLACED) and run.has(_ANSWERS)


def _is_file(target: DocumentStore) -> bool:
    filesystem, path = target.place.files
    return bool(filesystem.get_file_info(path).type == fs.FileType.File)
