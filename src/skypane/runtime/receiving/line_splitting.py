"""Split a server's response into lines; a long response in a separate process, so that it delays no other input."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE

from skypane.runtime.receiving import message_lines

SMALL = 1 << 14
"""Bytes of a response that is split in this process, in about 30 ms at worst."""
PATIENCE = 60.0
"""Seconds in which a response must be split."""


async def cut(body: bytes, form: str) -> bytes:
    """Return the lines of a response, `form` json or lines; raise OSError if this takes too much time or memory."""
    if len(body) <= SMALL:
        return message_lines.FORMS[form](body)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        message_lines.__file__,
        form,
        stdin=PIPE,
        stdout=PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            lines, _ = await process.communicate(body)
    except TimeoutError:
        raise OSError(f"its response of {len(body):,} bytes cannot be split into lines in {PATIENCE:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise OSError(
            f"its response of {len(body):,} bytes cannot be split into lines in "
            f"{message_lines.MEMORY >> 20:,} MiB of memory"
        )
    return lines
