"""Read a job file into a JobFile, or raise one sentence for each error in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from skypane.addresses import HIDDEN
from skypane.jobs.document import data_of, text_of
from skypane.jobs.fields import MisfitError, Section, sections
from skypane.jobs.job_file import JobFile
from skypane.jobs.policy_sections import AnyProgress
from skypane.jobs.user_code import AllowedModules
from skypane.naming import instead, nearest, shortened
from skypane.progress import ProgressPolicy
from skypane.types import ConfigError

#: fields that choose one of several kinds of a section
_TAGS = ("kind", "policy")
_QUOTED = re.compile("'([^']*)'")


def read(path: Path, allowed: Collection[str] = ()) -> JobFile:
    """Return the job described in the YAML file at `path`; raise ConfigError with all errors, one per line.

    allowed   modules whose functions the file may name, which are then imported and called: see jobs/user_code.py
    """
    return parse(text_of(path), str(path), allowed)


def parse(text: str, name: str = "job", allowed: Collection[str] = ()) -> JobFile:
    """Return the job described by YAML `text`; errors begin with `name`, and `allowed` is as in read()."""
    data = data_of(text, name)
    if not isinstance(data, dict):
        raise ConfigError(
            f"{name}: a job must be a mapping of fields such as source and query, got {type(data).__name__}"
        )
    try:
        return JobFile.model_validate(data, context={"modules": AllowedModules(frozenset(allowed))})
    except ValidationError as error:
        raise _refusal(error, data, name) from error


class _OfAPolicy(Section):
    progress: AnyProgress


def progress_policy(text: str, name: str) -> ProgressPolicy:
    """Return the policy that `text` describes as the section `progress` of a job file does; errors begin with `name`."""
    data = {"progress": data_of(text, name)}
    try:
        policy: ProgressPolicy = _OfAPolicy.model_validate(data).progress.build()
    except ValidationError as error:
        raise _refusal(error, data, name) from error
    return policy


def _refusal(error: ValidationError, data: Mapping[str, Any], name: str) -> ConfigError:
    sentences = [sentence(details, data) for details in error.errors(include_url=False)]
    return ConfigError("\n".join(f"{name}: {line}" for line in sentences))


def sentence(error: ErrorDetails, data: Mapping[str, Any]) -> str:
    """Return one error as "field.path: what is wrong, got value", with the nearest allowed name."""
    where = _path(error["loc"], data)
    context, value = error.get("ctx", {}), HIDDEN if _may_be_secret(where) else shortened(repr(error["input"]))
    field = ".".join([*where, *_further(context)]) or "job"
    match error["type"]:
        case "extra_forbidden":
            problem = f"unknown field, {_instead(where[-1], _fields(where[:-1], data))}"
        case "missing":
            problem = "is missing"
        case "union_tag_not_found":
            problem = f"is missing; it must be one of {', '.join(_tags(where))}"
        case "union_tag_invalid":
            problem = f"cannot be {shortened(context['tag'])!r}, {instead(context['tag'], _tags(where))}"
        case "literal_error":
            problem = f"cannot be {value}, {instead(str(error['input']), _QUOTED.findall(context['expected']))}"
        case "model_type" | "model_attributes_type" | "dict_type":
            problem = f"must be a section with fields of its own, got {value}"
        case "value_error":
            problem = str(context["error"])
        case "string_type" if isinstance(error["input"], int | float):
            problem = f"must be a text, got {value}; put it in quotes"
        case _:
            problem = f"{error['msg'].removeprefix('Input ')}, got {value}"
    return f"{shortened(field)}: {problem}"


def _instead(name: str, fields: Sequence[str]) -> str:
    """Return what to write for an unknown field: a field, or if none is spelled like it, perhaps an option of the format."""
    is_option = "options" in fields and not nearest(name, fields)
    option = f"; an option of the format is written as options: {{{shortened(name)}: ...}}" if is_option else ""
    return f"{instead(name, fields)}{option}"


def _may_be_secret(where: Sequence[str]) -> bool:
    """Return whether a value at this path may hold a password: an option, a wrong value for all options, inputs, an address."""
    return "options" in where or tuple(where[:2]) in {("source", "inputs"), ("spark", "conf"), ("spark", "remote")}


def _further(context: Mapping[str, Any]) -> list[str]:
    """Return the field of an error for which pydantic names only the section."""
    if "discriminator" in context:
        return [context["discriminator"].strip("'")]
    misfit = context.get("error")
    return [misfit.field] if isinstance(misfit, MisfitError) else []


def _path(loc: Sequence[int | str], data: Any) -> list[str]:
    """Return the path of an error in the file, without the tags that pydantic adds."""
    where: list[str] = []
    for step in loc:
        if isinstance(data, Mapping) and step not in data and step in {data.get(tag) for tag in _TAGS}:
            continue
        where.append(str(step))
        data = data.get(step) if isinstance(data, Mapping) else None
    return where


def _tag(section: type[Section]) -> str | None:
    """Return the tag that chooses this model, such as "skyline"; None if it has no tag."""
    fields = [section.model_fields[tag] for tag in _TAGS if tag in section.model_fields]
    return get_args(fields[0].annotation)[0] if fields else None


def _tags(where: Sequence[str]) -> list[str]:
    """Return the tags that are allowed for the section at `where`."""
    models: list[type[Section]] = [JobFile]
    for name in _without_names(where):
        models = [
            inner for one in models if name in one.model_fields for inner in sections(one.model_fields[name].annotation)
        ]
    return [tag for section in models if (tag := _tag(section)) is not None]


def _fields(where: Sequence[str], data: Any) -> list[str]:
    """Return the fields of the section at `where`."""
    model: type[Section] = JobFile
    inside = [data := data[name] for name in where]
    if where[:1] == ["queries"]:
        del inside[1:2]
    for name, values in zip(_without_names(where), inside, strict=True):
        tags = {None, *(values.get(tag) for tag in _TAGS)}
        model = next(s for s in sections(model.model_fields[name].annotation) if _tag(s) in tags)
    return [field.alias or name for name, field in model.model_fields.items()]


def _without_names(where: Sequence[str]) -> list[str]:
    """Return a path without the name of a query, which is not a field."""
    return [*where[:1], *where[2:]] if where[:1] == ["queries"] else [*where]
