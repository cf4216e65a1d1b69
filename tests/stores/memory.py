"""Object stores in the memory of this process, in place of those that an address names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest
from obstore.store import MemoryStore

from skypane.runtime.stores import object_client


@contextmanager
def in_memory() -> Iterator[None]:
    """Let each bucket be one in memory, empty at first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(object_client, "_connected", cache(lambda _scheme, _bucket: MemoryStore()))
        yield
