"""The `progress` section: how long a stream waits for rows that are late."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from skypane.jobs.fields import Columns, Part, Time
from skypane.progress import AqKSlack, KSlack, Readiness, Watermark
from skypane.progress import ProgressPolicy as Policy


class _Law(Part):
    #: a row further than this ahead of the rest is held until the stream follows, or does not
    max_ahead: Time | None = None

    @model_validator(mode="after")
    def _can_be_built(self) -> Any:
        self.build()
        return self

    def build(self) -> Policy:
        """Return the law itself."""
        raise NotImplementedError

    def _arguments(self) -> dict[str, Any]:
        """Return the fields that the file sets; the laws know their own defaults."""
        return self.model_dump(exclude={"policy"}, exclude_unset=True)


class WatermarkLaw(_Law):
    """As Spark: a fixed delay."""

    policy: Literal["watermark"]
    delay: Time
    #: whether it is a batch behind, as Spark is with a backlog
    behind: bool = False

    def build(self) -> Policy:
        return Watermark(**self._arguments())


class KSlackLaw(_Law):
    """As late as any row has been so far."""

    policy: Literal["kslack"]
    max_slack: Time | None = None

    def build(self) -> Policy:
        return KSlack(**self._arguments())


class AqKSlackLaw(_Law):
    """As little as a budget of dropped rows allows."""

    policy: Literal["aqkslack"]
    max_drop: Annotated[float, Field(gt=0, lt=1)]
    max_slack: Time | None = None

    def build(self) -> Policy:
        return AqKSlack(**self._arguments())


class ReadinessLaw(_Law):
    """As far as the slowest of the sources, each of which sends in order."""

    policy: Literal["readiness"]
    idle_after: Time
    #: those that are waited for from the beginning, however long
    sources: Columns = ()

    def build(self) -> Policy:
        return Readiness(**self._arguments())


AnyPolicy: TypeAlias = Annotated[WatermarkLaw | KSlackLaw | AqKSlackLaw | ReadinessLaw, Field(discriminator="policy")]
