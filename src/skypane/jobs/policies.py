"""The `progress` section: how long a stream waits for rows that are late.

Its policies are those of progress/registry.py, their fields those of the policies, which say what they mean, and check them.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias, get_type_hints

from pydantic import Field as FieldOf
from pydantic import create_model, model_validator

from skypane.jobs.fields import Columns, Part, Time
from skypane.naming import registered
from skypane.progress import ProgressPolicy as Policy
from skypane.progress import registry
from skypane.types import Length

POLICIES: Final[dict[str, type[Policy]]] = {name.lower(): law for name, law in registered(registry).items()}

_LATER: Final = ("support", "patience", "reserve")
"""Fields that job files did not have when earlier versions described the runs that may be gone on with."""


class PolicyPart(Part):
    """A policy by its name, and what its constructor takes."""

    policy: str

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        self.build()
        return self

    def build(self) -> Policy:
        """Return the policy itself: it knows its own defaults."""
        return POLICIES[self.policy](**self.model_dump(exclude={"policy"}, exclude_unset=True))

    def summary(self) -> dict[str, Any]:
        """Return what makes a run with it the same run when it is resumed."""
        return self.model_dump(mode="json", exclude={name for name in _LATER if name not in self.model_fields_set})


def _part(word: str, policy: type[Any]) -> type[PolicyPart]:
    kinds = get_type_hints(policy, localns={"Duration": Time}, include_extras=True)  # in a file it is a text
    taken: dict[str, Any] = {item.name: _taken(kinds[item.name], item) for item in fields(policy)}
    taken["policy"] = (Literal[word], ...)
    return create_model(f"{policy.__name__}Part", __base__=PolicyPart, __doc__=policy.__doc__, **taken)


def _taken(kind: Any, field: Field[Any]) -> tuple[Any, Any]:
    """Return what pydantic needs of a field: lengths of time that the file leaves out are told as null."""
    kind = Columns if kind == tuple[str, ...] else kind
    if field.default is MISSING:
        return kind, ...
    return kind, None if isinstance(field.default, Length) else field.default


if TYPE_CHECKING:
    AnyPolicy: TypeAlias = PolicyPart
else:
    AnyPolicy = Annotated[reduce(or_, (_part(*named) for named in POLICIES.items())), FieldOf(discriminator="policy")]
