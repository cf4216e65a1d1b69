"""The mark `<!-- api: GROUP -->`: the documentation of each public name of a group of docs/reference.md, from its docstring.

In the tables of docs/reference.md these names become links to it.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import is_dataclass
from typing import Any, Final

from docstrings import markup
from measure.reference import groups
from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature

import skypane as sp
from skypane.jobs.field_texts import argument_texts, field_texts

_MARK: Final = re.compile(r"^<!-- api: (\w+) -->$", re.MULTILINE)
_CELL: Final = re.compile(r"^\| `(\w+)(\([^`]*\))?` \|", re.MULTILINE)
_MODULE: Final = re.compile(r"\bbatch\.(?=[A-Z])")
_NAMES: Final = frozenset(dir(sp))
_WITH_MEMBERS: Final = ("classes",)
"""Groups whose classes users call; the methods of the others are those of Query, ProgressPolicy and Sink."""

_RETURNED: Final = ("BatchMetrics", "Function", "Job", "Preference", "ProgressPolicy", "StreamHandle")
"""Classes whose values functions return, or from which others inherit."""
_LEFT_OUT: Final = ("self", "cls", "holds")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("source-read", _expand)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _left_out)
    return {"parallel_read_safe": True}


def _expand(_app: Sphinx, page: str, source: list[str]) -> None:
    if page == "reference":
        source[0] = _CELL.sub(_linked, source[0])
    source[0] = _MARK.sub(lambda mark: _group(mark[1]), source[0])


def _linked(cell: re.Match[str]) -> str:
    name, arguments = cell[1], cell[2] or ""
    return f"| {{py:obj}}`{name}{arguments} <skypane.{name}>` |" if name in _NAMES else cell[0]


def _group(group: str) -> str:
    return "\n".join(["```{eval-rst}", *(_directive(*each, group) for each in groups()[group].items()), "```"])


def _directive(name: str, thing: Any, group: str) -> str:
    if not inspect.isclass(thing):
        return f".. autofunction:: skypane.{name}\n"
    members = "   :members:\n" if group in _WITH_MEMBERS else ""
    all_fields = "   :undoc-members:\n" if name in _RETURNED and is_dataclass(thing) else ""
    return f".. autoclass:: skypane.{name}\n{members}{all_fields}"


def _left_out(_app: Sphinx, _what: str, name: str, thing: Any, is_left_out: bool, _options: Any) -> bool:
    """Return whether a member is left out: a public method needs no docstring if its name and types say all."""
    return is_left_out and (name.startswith("_") or not inspect.isroutine(thing))


def _docstring(_app: Sphinx, what: str, _name: str, thing: Any, _options: Any, lines: list[str]) -> None:
    further = _further_fields(thing) if what == "class" else {}
    lines[:] = markup([*lines, *(f"{name}  {text}" for name, text in further.items())], _NAMES)


def _further_fields(of: type[Any]) -> dict[str, str]:
    """Return the meanings of a constructor's arguments that the class's own docstring does not have.

    Classes with members have documented fields among them, and errors have no arguments of their own.
    """
    if of.__name__ in {name for group in (*_WITH_MEMBERS, "errors") for name in groups()[group]}:
        return {}
    own, texts = argument_texts(inspect.getdoc(of) or ""), field_texts(of)
    return {name: texts[name] for name in inspect.signature(of).parameters if name in texts and name not in own}


def _signature(
    _app: Sphinx, what: str, _name: str, thing: Any, _options: Any, _signature: str | None, _returns: str | None
) -> tuple[str, str | None] | None:
    """Return the signature with its annotations as the source has them, and long defaults as an ellipsis."""
    if what not in {"class", "function", "method"} or (what == "class" and issubclass(thing, Exception)):
        return None
    if what == "class" and (thing.__name__ in _RETURNED or getattr(thing, "_is_protocol", False)):
        return "", None
    signature = inspect.signature(thing)
    parameters = [
        each.replace(default=_shown(each.default))
        for each in signature.parameters.values()
        if each.name not in _LEFT_OUT
    ]
    arguments = stringify_signature(signature.replace(parameters=parameters), show_return_annotation=False)
    returns = signature.return_annotation
    return _of_ours(arguments), None if what == "class" or returns is signature.empty else _of_ours(str(returns))


def _of_ours(types: str) -> str:
    """Return types without the modules of ours that are written before some of them."""
    return _MODULE.sub("", types)


class _Ellipsis:
    def __repr__(self) -> str:
        return "..."


def _shown(default: Any) -> Any:
    text = repr(default)
    return default if default is inspect.Parameter.empty or (len(text) < 40 and text[0] != "<") else _Ellipsis()
