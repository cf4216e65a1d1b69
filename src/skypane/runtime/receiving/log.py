"""The log of one input, as its one receiver writes it: what append() has returned for is on disk for good.

    append:  lines -> the last segment -> fsync -> checksum -> `end` -> return      whoever sent them is told now, not before

After a kill the last segment may end within a line, which nobody was told of: it is cut off. Whole lines after `end`
are kept, since not every sender sends again; so what was not acknowledged may be there, and come once more.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from skypane.runtime.growing import Growing
from skypane.runtime.receiving.hold import Hold
from skypane.runtime.receiving.segments import END, end_of, end_text, segment_name, segments_of
from skypane.runtime.receiving.sums import Sums, note_checked, remove
from skypane.types import CheckpointError, ConfigError

SEGMENT_BYTES = 64 << 20


class SegmentLog:
    """Appends lines to a folder of segments. Not for two threads at once.

    folder         made if it is not there; refused while another receiver has it
    segment_bytes  a segment that has reached so many is followed by a new one

    Raises ConfigError if the folder cannot be written or is held, CheckpointError if the log is damaged.
    """

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = folder
        self._most = segment_bytes
        self._hold: Hold | None = None
        self._files: list[int] = []
        self._sums: Sums | None = None
        #: whether there may be something in the last segment after the log's end
        self._torn = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._hold = Hold(folder)
            self._mark = self._opened(END)
            self._begin, self.end = self._recovered()
            os.ftruncate(self._mark, len(end_text(0)))
            self._segment = self._opened(segment_name(self._begin), os.O_APPEND)
            os.fsync(self._segment)
            self._sums = Sums(str(self.folder / segment_name(self._begin)), self.end - self._begin)
            note_checked(folder, self._begin)
            self._note(self.end)
            self._sync_folder()
        except OSError as error:
            self.close()
            raise ConfigError(f"cannot write to {folder}: {error.strerror or error}; name another folder") from error
        except BaseException:
            self.close()
            raise

    def append(self, lines: bytes) -> int:
        """Add whole lines; return where the log ends, when they are on disk for good.

        Raises OSError, with nothing added, if there is no room for them.
        """
        if not lines:
            return self.end
        if not lines.endswith(b"\n"):
            raise ValueError("a log holds whole lines, and these end within one")
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
            # What a full disk has cut short is not the beginning of the next line, and what a sync has failed on is
            # not known to be there.
            self._torn = True
            with suppress(OSError):
                self._cut()
            raise
        self.end = end
        return end

    def close(self) -> None:
        """Let another receiver have the folder."""
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _opened(self, name: str, flags: int = 0) -> int:
        file = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | flags, 0o644)
        self._files.append(file)
        return file

    def _recovered(self) -> tuple[int, int]:
        """Return where the last segment begins and where the log ends, after what is not a whole line is cut off."""
        segments, known = segments_of(str(self.folder)), end_of(str(self.folder)) or 0
        if not segments:
            return known, known
        last = segments[-1]
        end = last.begin + Growing(last.path).complete(0, last.end - last.begin)
        if end < known:
            raise CheckpointError(
                f"the log {self.folder} ends at byte {end:,}, and was on disk up to {known:,}: {last.path} was cut or "
                "replaced; restore it from a copy, or name another folder"
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
            sums = Sums(str(self.folder / name), 0)
            self._sync_folder()
        except OSError:
            self._closed(fresh)
            remove(str(self.folder / name))  # the log goes on in the segment before
            raise
        if self._sums is not None:
            self._sums.close(full=True)
        self._closed(self._segment)
        self._segment, self._begin, self._sums = fresh, self.end, sums

    def _closed(self, file: int) -> None:
        self._files.remove(file)
        os.close(file)

    def _note(self, end: int) -> None:
        """Let readers go up to `end`. It need not be synced: an older number is as true."""
        os.pwrite(self._mark, end_text(end), 0)

    def _sync_folder(self) -> None:
        file = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _write(file: int, content: bytes) -> None:
    """Write all of it: one call may write less."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
