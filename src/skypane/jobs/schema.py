"""The JSON Schema of job files, made from their models, so that editors complete and check them.

It is made when it is needed, and not shipped, because packages may add queries, policies and sinks (plugins.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, get_args

from skypane.control.admission.readers import Readers
from skypane.control.worker_options import WorkerOptions
from skypane.jobs.field_texts import comments, field_texts
from skypane.jobs.fields import Section, sections
from skypane.jobs.inputs_section import ReadersSection
from skypane.jobs.job_file import JobFile, MapSection, WorkersSection
from skypane.jobs.output_section import AmendSection
from skypane.jobs.policy_sections import PolicySection
from skypane.jobs.query_section import QUERIES
from skypane.reporting.grids import GridSpec
from skypane.runtime.spark.amend import Amend
from skypane.types import Length

_YAML: Final = {"None": "null", "True": "true", "False": "false"}
_PYTHON: Final = re.compile(rf"\b({'|'.join(_YAML)})\b")
_SOURCES: Final[dict[type[Section], type[Any]]] = {
    AmendSection: Amend,
    MapSection: GridSpec,
    ReadersSection: Readers,
    WorkersSection: WorkerOptions,
}
"""Classes whose fields a section has."""


def job_schema() -> dict[str, Any]:
    """Return the schema; descriptions of sections and fields are those of the source."""
    schema = JobFile.model_json_schema(by_alias=True)
    parts = {"JobFile": schema, **schema["$defs"]}
    for model in _models(JobFile):
        _describe(parts[model.__name__], model)
    plain: dict[str, Any] = _without_titles(schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | plain


def _models(model: type[Section]) -> Iterator[type[Section]]:
    """Yield a section and all sections in it."""
    yield model
    for field in model.model_fields.values():
        for inner in sections(field.annotation):
            yield from _models(inner)


def _describe(part: dict[str, Any], model: type[Section]) -> None:
    """Add the meanings of fields, and the defaults that the file's own models leave to a policy."""
    part["description"] = " ".join((model.__doc__ or "").partition("\n\n")[0].split())
    source = _source(model)
    texts = field_texts(model) | field_texts(source) | comments(model)
    for name, field in model.model_fields.items():
        entry = part["properties"][field.alias or name]
        if name in texts:
            entry["description"] = _PYTHON.sub(lambda word: _YAML[word[0]], texts[name])
        default = getattr(source, name, None)
        if isinstance(default, Length):
            entry["default"] = default.words


def _source(model: type[Section]) -> type[Any]:
    """Return the class that documents the fields of a section."""
    kind = get_args(model.model_fields["kind"].annotation)[0] if "kind" in model.model_fields else None
    if kind in QUERIES:
        return QUERIES[kind]
    if issubclass(model, PolicySection):
        policy: type[Any] = model.policies[get_args(model.model_fields["policy"].annotation)[0]]  # type: ignore[assignment]
        return policy
    return _SOURCES.get(model, model)


def _without_titles(part: Any) -> Any:
    """Return a schema without the titles that pydantic makes from names of fields."""
    if isinstance(part, list):
        return [_without_titles(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {name: _without_titles(value) for name, value in part.items() if name != "title" or isinstance(value, dict)}
