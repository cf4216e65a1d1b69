"""The log of one input, written by its one receiver: lines are durable when append() returns.

    append:  lines -> the last segment -> fsync -> checksum -> `end` -> return      only then acknowledged to the sender

After a kill the last segment may end within a line, which was never acknowledged: it is cut off. Whole lines after
`end` are kept, because not every sender sends again; so unacknowledged lines may be in the log, and arrive once more.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from skypane.runtime.growing_files import GrowingFile
from skypane.runtime.receiving.checksums import ChecksumWriter, note_checked, remove
from skypane.runtime.receiving.segments import END, end_of, end_text, segment_name, segments_of
from skypane.types import CheckpointError, ConfigError

SEGMENT_BYTES = 64 << 20
_HELD = ".receiver"


class FolderLock:
    """Locks a folder, which is created if missing, for one receiver; the kernel unlocks it when the process ends.

    Raises ConfigError, with the holder's process, if it is locked.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file: int | None = os.open(folder / _HELD, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            who = os.pread(self._file, 100, 0).decode(errors="replace").strip() or "unknown"
            self.release()
            raise ConfigError(
                f"{folder} is locked by another receiver (process {who}); stop that one, or use another folder"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Unlock the folder; repeated calls do nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class SegmentLog:
    """Appends lines to a folder of segments. Not thread-safe.

    folder         created if missing; locked against other receivers
    segment_bytes  size at which a segment is followed by a new one

    Raises ConfigError if the folder is not writable or is locked, and CheckpointError if the log is damaged.
    """

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = folder
        self._most = segment_bytes
        self._hold: FolderLock | None = None
        self._files: list[int] = []
        self._sums: ChecksumWriter | None = None
        #: whether the last segment may have bytes after the log's end
        self._torn = False
        try:
            self._hold = FolderLock(folder)
            self._mark = self._opened(END)
            self._begin, self.end = self._recovered()
            os.ftruncate(self._mark, len(end_text(0)))
            self._segment = self._opened(segment_name(self._begin), os.O_APPEND)
            os.fsync(self._segment)
            self._sums = ChecksumWriter(str(self.folder / segment_name(self._begin)), self.end - self._begin)
            note_checked(folder, self._begin)
            self._note(self.end)
            self._sync_folder()
        except OSError as error:
            self.close()
            raise ConfigError(f"cannot write to {folder}: {error.strerror or error}; use another folder") from error
        except BaseException:
            self.close()
            raise

    def append(self, lines: bytes) -> int:
        """Append whole lines; return the log's new end when they are durable.

        Raises OSError, with nothing appended, if they cannot be written.
        """
        if not lines:
            return self.end
        if not lines.endswith(b"\n"):
            raise ValueError("lines must end with a line end")
        if self._torn:
            self._cut()
        end = self.end + len(lines)
        try:
            if self.end - self._begin >= self._most:
                self._roll()
            _write(self._segment, lines)
            os.fsync(self._segment)
            if self._sums is not None:
                self._sums.add(lines)
            self._note(end)
        except OSError:
            # A write that a full disk cut short must not begin the next line, and bytes whose sync failed may be lost.
            self._torn = True
            with suppress(OSError):
                self._cut()
            raise
        self.end = end
        return end

    def close(self) -> None:
        """Close all files and unlock the folder."""
        if self._sums is not None:
            self._sums.close()
            self._sums = None
        for file in self._files:
            os.close(file)
        self._files.clear()
        if self._hold is not None:
            self._hold.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _opened(self, name: str, flags: int = 0) -> int:
        file = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | flags, 0o644)
        self._files.append(file)
        return file

    def _recovered(self) -> tuple[int, int]:
        """Cut off an unfinished last line; return where the last segment begins and where the log ends."""
        segments, known = segments_of(str(self.folder)), end_of(str(self.folder)) or 0
        if not segments:
            return known, known
        last = segments[-1]
        end = last.begin + GrowingFile(last.path).complete(0, last.end - last.begin)
        if end < known:
            raise CheckpointError(
                f"the log {self.folder} ends at byte {end:,}, but was durable up to {known:,}: {last.path} was cut or "
                "replaced; restore it from a copy, or use another folder"
            )
        os.truncate(last.path, end - last.begin)
        return last.begin, end

    def _cut(self) -> None:
        os.ftruncate(self._segment, self.end - self._begin)
        if self._sums is not None:
            self._sums.restore()
        self._torn = False

    def _roll(self) -> None:
        name = segment_name(self.end)
        fresh = self._opened(name, os.O_APPEND)
        try:
            sums = ChecksumWriter(str(self.folder / name), 0)
            self._sync_folder()
        except OSError:
            self._closed(fresh)
            remove(str(self.folder / name))  # the log continues in the previous segment
            raise
        if self._sums is not None:
            self._sums.close(full=True)
        self._closed(self._segment)
        self._segment, self._begin, self._sums = fresh, self.end, sums

    def _closed(self, file: int) -> None:
        self._files.remove(file)
        os.close(file)

    def _note(self, end: int) -> None:
        """Let readers read up to `end`. It is not synced, because an older number is valid, too."""
        os.pwrite(self._mark, end_text(end), 0)

    def _sync_folder(self) -> None:
        file = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _write(file: int, content: bytes) -> None:
    """Write all bytes; one call of os.write may write fewer."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
