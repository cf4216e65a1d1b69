"""What an address answers, asked for in turn; each answer that differs from the last one is appended once.

Before an answer is appended, a note beside the log says what it is and where it will end. A receiver that was killed in
between finds how much of it is there, and adds the rest if the server still gives the same.
"""

from __future__ import annotations

import asyncio
import email.utils
import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from skypane.places import whole
from skypane.runtime.background import in_background
from skypane.runtime.environment import held
from skypane.runtime.receiving.cutting import cut
from skypane.runtime.receiving.inputs import Http
from skypane.runtime.receiving.intake import Intake
from skypane.runtime.receiving.limit import Limit
from skypane.types import micros

LARGEST = 64 << 20
"""Bytes of an answer."""

SLOWEST = 6
"""Timeouts that an answer may take, from the connection to its last byte."""

_BLOCK = 1 << 18
_NOTE = "answer.json"
_PORTS = {"http": 80, "https": 443}
_LONGEST_WAIT = 3600.0
"""Seconds that a server may put us off for."""


class AnswerError(OSError):
    """An answer that cannot be taken; `wait` is how many seconds the server asks us to stay away."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Note:
    """The answer that bytes [begin, end) of the log are; how the server knows it, and its digest."""

    begin: int = 0
    end: int = 0
    digest: str = ""
    etag: str | None = None
    modified: str | None = None
    header: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server has said, and its digest: None if it is what it said before."""

    body: bytes | None
    digest: str = ""
    etag: str | None = None
    modified: str | None = None


async def poll(given: Http, intake: Intake, environment: Mapping[str, str]) -> None:
    """Ask until cancelled; OSError for what the server does not answer, so that it is tried again."""
    note = _noted(intake.log.folder)
    while True:
        asked = time.monotonic()
        # What is not all in the log is asked for anew.
        known = note if intake.log.end >= note.end else Note()
        answer = await asyncio.wrap_future(in_background(partial(_ask, given, known, environment)))
        if answer.body is not None:
            note = await _take(given, intake, note, answer, answer.body)
        intake.seen.answers()
        await asyncio.sleep(max(0.0, micros(given.every) / 1e6 - (time.monotonic() - asked)))


async def _take(given: Http, intake: Intake, note: Note, answer: Answer, body: bytes) -> Note:
    """Append what of an answer is not in the log, and return the note of it."""
    header, rest = _header(given, body, note.header)
    lines, end = await cut(rest, given.format), intake.log.end
    begin = note.begin if answer.digest == note.digest else end
    fresh = Note(begin, begin + len(lines), answer.digest, answer.etag, answer.modified, header)
    if fresh != note:
        await asyncio.to_thread(_write_note, intake.log.folder, fresh)
    if missing := lines[end - begin :]:
        await intake.put(missing)
    return fresh


def _header(given: Http, body: bytes, known: str | None) -> tuple[str | None, bytes]:
    """Return the line that names the columns, and what comes after it."""
    if not given.header:
        return None, body
    first, _, rest = body.partition(b"\n")
    header = first.decode(errors="replace").rstrip("\r")
    if known not in {None, header}:
        raise AnswerError(
            f"its columns were {known!r} and are {header!r} now: receive them as an input of another name"
        )
    return header, rest


def _ask(given: Http, note: Note, environment: Mapping[str, str]) -> Answer:
    request = Request(given.http, headers={"Accept-Encoding": "identity", "User-Agent": "skypane"})  # noqa: S310 - checked
    for name, value in given.headers.items():
        request.add_unredirected_header(name, held(value, f"header {name}", environment))  # another host is not told
    if note.etag is not None:
        request.add_header("If-None-Match", note.etag)
    if note.modified is not None:
        request.add_header("If-Modified-Since", note.modified)
    timeout = micros(given.timeout) / 1e6
    with Limit(SLOWEST * timeout) as limit:
        try:
            opener = build_opener(*limit.handlers(given.context()), _Redirects(given.redirects))
            answer = _answered(opener, request, timeout)
        except (OSError, HTTPException) as error:
            if not limit.over:
                raise _told(error) from None
        else:
            if not limit.over:  # else it may be cut: not every answer says how long it is
                return answer
    raise AnswerError(f"its answer takes longer than {SLOWEST * timeout:g} s, {SLOWEST} times the timeout")


def _answered(opener: OpenerDirector, request: Request, timeout: float) -> Answer:
    try:
        with opener.open(request, timeout=timeout) as answer:
            body = _body(answer)
            if answer.length:
                raise AnswerError(f"its answer is cut short by {answer.length:,} bytes")
            digest = hashlib.sha256(body).hexdigest()
            return Answer(body, digest, answer.headers["ETag"], answer.headers["Last-Modified"])
    except HTTPError as error:
        error.close()
        if error.code != 304:
            raise
        return Answer(None)


def _told(error: OSError | HTTPException) -> OSError:
    """Return what is told of an error."""
    if isinstance(error, HTTPError):
        wait = _asked_wait(error.headers["Retry-After"])
        return AnswerError(f"it answers {error.code} {error.reason}", wait)
    if isinstance(error, URLError):
        return AnswerError(f"it does not answer: {error.reason}")
    if isinstance(error, HTTPException):
        return AnswerError(f"its answer is cut short: {type(error).__name__}")
    return error


def _body(answer: HTTPResponse) -> bytes:
    """Return what a server says, if it is not too much."""
    body = bytearray()
    while chunk := answer.read1(_BLOCK):
        body += chunk
        if len(body) > LARGEST:
            raise AnswerError(f"its answer is longer than {LARGEST:,} bytes")
    return bytes(body)


class _Redirects(HTTPRedirectHandler):
    """Follows a server that sends us elsewhere; to another host only if that was asked for."""

    def __init__(self, elsewhere: bool) -> None:
        self._elsewhere = elsewhere

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if not self._elsewhere and _origin(newurl) not in {_origin(req.full_url), _encrypted(req.full_url)}:
            raise AnswerError(
                f"it redirects to {urlsplit(newurl).netloc!r}: if that is right, name it in http, or set redirects"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _encrypted(url: str) -> tuple[str, str | None, int | None]:
    """Return where the same host has the same encrypted."""
    scheme, host, port = _origin(url)
    return "https", host, 443 if (scheme, port) == ("http", 80) else port


def _asked_wait(text: str | None) -> float | None:
    """Return the seconds that a Retry-After says, a number or a date."""
    if text is None:
        return None
    with suppress(ValueError):
        seconds = (
            float(text)
            if text.strip().isdecimal()
            else email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        )
        return min(max(seconds, 0.0), _LONGEST_WAIT)
    return None


def _noted(folder: Path) -> Note:
    try:
        return Note(**json.loads((folder / _NOTE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return Note()  # what was taken last is taken once more


def _write_note(folder: Path, note: Note) -> None:
    with whole(folder / _NOTE) as draft:
        draft.write_text(json.dumps(asdict(note)), encoding="utf-8")
