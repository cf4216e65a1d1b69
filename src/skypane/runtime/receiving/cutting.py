"""What a server has answered becomes lines; where it is long, in a process of its own, which holds up no other input."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE

from skypane.runtime.receiving import messages

SMALL = 1 << 14
"""Bytes that are cut at once, in some 30 ms at worst."""
PATIENCE = 60.0
"""Seconds that cutting an answer may take."""


async def cut(body: bytes, form: str) -> bytes:
    """Return the lines of an answer, `form` json or lines; OSError for one that takes too long or too much memory."""
    if len(body) <= SMALL:
        return messages.FORMS[form](body)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", messages.__file__, form, stdin=PIPE, stdout=PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(PATIENCE):
            lines, _ = await process.communicate(body)
    except TimeoutError:
        raise OSError(f"its answer of {len(body):,} bytes cannot be cut into lines in {PATIENCE:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise OSError(
            f"its answer of {len(body):,} bytes cannot be cut into lines in {messages.MEMORY >> 20:,} MiB of memory"
        )
    return lines
