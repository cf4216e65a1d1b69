"""The `progress` section: the policy that decides how long a stream waits for late rows.

The policies are those of progress/registry.py. Their fields are those of the policy classes, which document and
check them.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias, get_type_hints

from pydantic import Field as FieldOf
from pydantic import create_model, model_validator

from skypane.jobs.fields import Columns, Section, Time
from skypane.plugins import Registered
from skypane.progress import ProgressPolicy as Policy
from skypane.progress import registry
from skypane.types import Length

POLICIES: Final[dict[str, type[Policy]]] = {name.lower(): policy for name, policy in Registered(registry).items()}

_LATER: Final = ("support", "patience", "reserve")
"""Fields that summaries of earlier versions lack; without them in the file, such runs can be resumed."""


class ProgressSection(Section):
    """A policy by its name, with the arguments of its constructor."""

    policy: str

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        self.build()
        return self

    def build(self) -> Policy:
        """Return the policy, with its own defaults for all fields that the file leaves out."""
        return POLICIES[self.policy](**self.model_dump(exclude={"policy"}, exclude_unset=True))

    def summary(self) -> dict[str, Any]:
        """Return the fields that must not change when a run with this policy is resumed."""
        return self.model_dump(mode="json", exclude={name for name in _LATER if name not in self.model_fields_set})


def _part(name: str, policy: type[Any]) -> type[ProgressSection]:
    kinds = get_type_hints(policy, localns={"Duration": Time}, include_extras=True)  # in a file a duration is a text
    taken: dict[str, Any] = {item.name: _taken(kinds[item.name], item) for item in fields(policy)}
    taken["policy"] = (Literal[name], ...)
    return create_model(f"{policy.__name__}Section", __base__=ProgressSection, __doc__=policy.__doc__, **taken)


def _taken(kind: Any, field: Field[Any]) -> tuple[Any, Any]:
    """Return the type and default of a field for pydantic; a length of time that the file leaves out is null."""
    kind = Columns if kind == tuple[str, ...] else kind
    if field.default is MISSING:
        return kind, ...
    return kind, None if isinstance(field.default, Length) else field.default


if TYPE_CHECKING:
    AnyPolicy: TypeAlias = ProgressSection
else:
    AnyPolicy = Annotated[reduce(or_, (_part(*named) for named in POLICIES.items())), FieldOf(discriminator="policy")]
