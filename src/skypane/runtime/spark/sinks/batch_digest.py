"""A digest of the rows of a batch, by which a sink recognises the batch when it comes again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

_BYTES: Final = 16


@dataclass
class BatchDigest:
    """The number of a batch's rows, and a sum of their hashes, which does not depend on their order."""

    count: int = 0
    total: int = 0

    def add(self, row: bytes) -> None:
        hashed = blake2b(row, digest_size=_BYTES).digest()
        self.count += 1
        self.total = (self.total + int.from_bytes(hashed)) % (1 << 8 * _BYTES)

    def __str__(self) -> str:
        return json.dumps({"rows": self.count, "digest": f"{self.total:x}"})
