"""The progress policy of a stream for which none is named (docs/decisions/21-default-policy.md)."""

from typing import Final

from skypane.progress.aqkslack import AqKSlack

DEFAULT: Final = AqKSlack(max_drop=0.01)
