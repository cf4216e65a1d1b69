"""Poll a URL; append each response that differs from the previous one, once.

Before a response is appended, a record beside the log states its digest and where it will end. A receiver that was
killed in between finds how much of the response is in the log, and appends the rest if the server still returns it.
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

from skypane.locations import whole
from skypane.runtime.background import in_background
from skypane.runtime.environment import held_line
from skypane.runtime.receiving.deadlines import Deadline
from skypane.runtime.receiving.group_commit import GroupCommit
from skypane.runtime.receiving.input_list import Http
from skypane.runtime.receiving.line_splitting import cut
from skypane.runtime.receiving.response_text import text_of
from skypane.types import micros

LARGEST = 64 << 20
"""The largest response in bytes."""

SLOWEST = 6
"""The longest time of a response, from the connection to its last byte, in multiples of the timeout."""

_BLOCK = 1 << 18
_NOTE = "answer.json"
_PORTS = {"http": 80, "https": 443}
_LONGEST_WAIT = 3600.0
"""The longest Retry-After in seconds that is obeyed."""


class ResponseError(OSError):
    """A response that cannot be used; `wait` is the server's Retry-After in seconds."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class ResponseRecord:
    """The last response, at bytes [begin, end) of the log: its digest, and the server's validators for it."""

    begin: int = 0
    end: int = 0
    digest: str = ""
    etag: str | None = None
    modified: str | None = None
    header: str | None = None


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response and its digest; the body is None if the server reports that nothing changed."""

    body: bytes | None
    digest: str = ""
    etag: str | None = None
    modified: str | None = None


async def poll(given: Http, intake: GroupCommit, environment: Mapping[str, str]) -> None:
    """Poll until cancelled; raise OSError if a request fails, so that the caller retries."""
    note = _read_note(intake.log.folder)
    while True:
        started = time.monotonic()
        # A response that is not completely in the log is requested again without validators.
        known = note if intake.log.end >= note.end else ResponseRecord()
        answer = await asyncio.wrap_future(in_background(partial(_request, given, known, environment)))
        if answer.body is not None:
            note = await _take(given, intake, note, answer, answer.body)
        intake.seen.answers()
        await asyncio.sleep(max(0.0, micros(given.every) / 1e6 - (time.monotonic() - started)))


async def _take(
    given: Http, intake: GroupCommit, note: ResponseRecord, answer: HttpResponse, body: bytes
) -> ResponseRecord:
    """Append the part of a response that is not in the log yet, and return its record."""
    header, rest = _header(given, body, note.header)
    lines, end = await cut(rest, given.format), intake.log.end
    begin = note.begin if answer.digest == note.digest else end
    fresh = ResponseRecord(begin, begin + len(lines), answer.digest, answer.etag, answer.modified, header)
    if fresh != note:
        await asyncio.to_thread(_write_note, intake.log.folder, fresh)
    if missing := lines[end - begin :]:
        await intake.put(missing)
    return fresh


def _header(given: Http, body: bytes, known: str | None) -> tuple[str | None, bytes]:
    """Return the header line, None without one, and the lines after it."""
    if not given.header:
        return None, body
    first, _, rest = body.partition(b"\n")
    header = first.decode(errors="replace").rstrip("\r")
    if known not in {None, header}:
        raise ResponseError(
            f"its columns changed from {known!r} to {header!r}; receive them as an input of another name"
        )
    return header, rest


def _request(given: Http, note: ResponseRecord, environment: Mapping[str, str]) -> HttpResponse:
    request = Request(given.http, headers={"Accept-Encoding": "identity", "User-Agent": "skypane"})  # noqa: S310 - checked
    for name, value in given.headers.items():
        # A redirect to another host does not receive these headers.
        request.add_unredirected_header(name, held_line(value, f"header {name}", environment))
    if note.etag is not None:
        request.add_header("If-None-Match", note.etag)
    if note.modified is not None:
        request.add_header("If-Modified-Since", note.modified)
    timeout = micros(given.timeout) / 1e6
    with Deadline(SLOWEST * timeout) as limit:
        try:
            opener = build_opener(limit.handler(given.context()), _Redirects(given.redirects))
            answer = _answered(opener, request, timeout)
        except (OSError, HTTPException) as error:
            if not limit.over:
                raise _reported(error) from None
        else:
            if not limit.over:  # otherwise it may be cut: not every response states its length
                return answer
    raise ResponseError(f"its response takes longer than {SLOWEST * timeout:g} s, {SLOWEST} times the timeout")


def _answered(opener: OpenerDirector, request: Request, timeout: float) -> HttpResponse:
    try:
        with opener.open(request, timeout=timeout) as answer:
            body = _body(answer)
            if answer.length:
                raise ResponseError(f"its response is cut short by {answer.length:,} bytes")
            try:
                body = text_of(body, answer.headers["Content-Encoding"], answer.headers["Content-Type"], LARGEST)
            except ValueError as error:
                raise ResponseError(f"its response cannot be read: {error}") from None
            digest = hashlib.sha256(body).hexdigest()
            return HttpResponse(body, digest, answer.headers["ETag"], answer.headers["Last-Modified"])
    except HTTPError as error:
        error.close()
        if error.code != 304:
            raise
        return HttpResponse(None)


def _reported(error: OSError | HTTPException) -> OSError:
    """Return the error to report for a failed request."""
    if isinstance(error, HTTPError):
        wait = _retry_after(error.headers["Retry-After"])
        return ResponseError(f"it answers {error.code} {error.reason}", wait)
    if isinstance(error, URLError):
        return ResponseError(f"it does not answer: {error.reason}")
    if isinstance(error, HTTPException):
        return ResponseError(f"its response is cut short: {type(error).__name__}")
    return error


def _body(answer: HTTPResponse) -> bytes:
    """Return the body of a response; raise ResponseError if it is longer than LARGEST."""
    body = bytearray()
    while chunk := answer.read1(_BLOCK):
        body += chunk
        if len(body) > LARGEST:
            raise ResponseError(f"its response is longer than {LARGEST:,} bytes")
    return bytes(body)


class _Redirects(HTTPRedirectHandler):
    """Follows redirects; to another host only if `elsewhere` is set."""

    def __init__(self, elsewhere: bool) -> None:
        self._elsewhere = elsewhere

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if not self._elsewhere and _origin(newurl) not in {_origin(req.full_url), _encrypted(req.full_url)}:
            raise ResponseError(
                f"it redirects to {urlsplit(newurl).netloc!r}; if that is right, use this URL in http, or set redirects"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _encrypted(url: str) -> tuple[str, str | None, int | None]:
    """Return the https origin of the same host."""
    scheme, host, port = _origin(url)
    return "https", host, 443 if (scheme, port) == ("http", 80) else port


def _retry_after(text: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which is a number or a date."""
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


def _read_note(folder: Path) -> ResponseRecord:
    try:
        return ResponseRecord(**json.loads((folder / _NOTE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return ResponseRecord()  # the last response is appended once more


def _write_note(folder: Path, note: ResponseRecord) -> None:
    with whole(folder / _NOTE) as draft:
        draft.write_text(json.dumps(asdict(note)), encoding="utf-8")
