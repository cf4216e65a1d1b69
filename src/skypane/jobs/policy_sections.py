"""The sections that choose a policy by its name: `progress`, and `elastic` in the section `workers`.

The policies are those of progress/registry.py and of control/elasticity/registry.py. Their fields are those of the
policy classes, which document and check them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, get_type_hints

from pydantic import Field as FieldOf
from pydantic import create_model, model_validator

from skypane.control.elasticity import registry as elasticity
from skypane.jobs.fields import Cadence, Columns, Section, Time
from skypane.plugins import Registered
from skypane.progress import registry as progress
from skypane.types import Length

_LATER: Final = ("support", "patience", "reserve", "max_behind", "clocks", "max_clock_offset", "max_amended")
"""Fields that summaries of earlier versions lack; without them in the file, such runs can be resumed."""


class PolicySection(Section):
    """A policy by its name, with the arguments of its class."""

    #: the policy
    policy: str
    policies: ClassVar[Mapping[str, Callable[..., Any]]]

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        self.build()
        return self

    def build(self) -> Any:
        """Return the policy, with its own defaults for all fields that the file leaves out."""
        return self.policies[self.policy](**self.model_dump(exclude={"policy"}, exclude_unset=True))


class ProgressSection(PolicySection):
    """The policy that decides how long a stream waits for late rows."""

    policies: ClassVar = {name.lower(): policy for name, policy in Registered(progress).items()}

    def summary(self) -> dict[str, Any]:
        """Return the fields that must not change when a run with this policy is resumed."""
        return self.model_dump(mode="json", exclude={name for name in _LATER if name not in self.model_fields_set})


class ElasticSection(PolicySection):
    """The policy that changes the numbers of workers of a running stream."""

    policies: ClassVar = {name.lower(): policy for name, policy in Registered(elasticity).items()}


def _any(section: type[PolicySection]) -> Any:
    """Return the type of a section with any of its policies."""
    return Annotated[
        reduce(or_, (_part(section, *named) for named in section.policies.items())), FieldOf(discriminator="policy")
    ]


def _part(section: type[PolicySection], name: str, policy: Any) -> type[PolicySection]:
    kinds = get_type_hints(
        policy, localns={"Duration": Time, "Cadence": Cadence}, include_extras=True
    )  # in a file a duration is a text
    taken: dict[str, Any] = {item.name: _taken(kinds[item.name], item) for item in fields(policy) if item.repr}
    taken["policy"] = (Literal[name], ...)
    return create_model(f"{policy.__name__}Section", __base__=section, __doc__=policy.__doc__, **taken)


def _taken(kind: Any, field: Field[Any]) -> tuple[Any, Any]:
    """Return the type and default of a field for pydantic; a length of time that the file leaves out is null."""
    kind = Columns if kind == tuple[str, ...] else kind
    if field.default is MISSING:
        return kind, ...
    return kind, None if isinstance(field.default, Length) else field.default


if TYPE_CHECKING:
    AnyProgress: TypeAlias = ProgressSection
    AnyElastic: TypeAlias = ElasticSection
else:
    AnyProgress = _any(ProgressSection)
    AnyElastic = _any(ElasticSection)
