"""The expressions of the shipped files, and the metrics and labels that they use.

Where promtool is installed, tests also let Prometheus itself read the expressions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from skypane.prometheus.shipped_files import text

_SERIES = re.compile(r"\b(?P<name>skypane_\w+)(?:\{(?P<labels>[^}]*)\})?")
_GROUPS = re.compile(r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\((?P<labels>[^)]*)\)")
_EQUALS = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_SHOWN = re.compile(r"\{\{\s*(?:with\s+)?(?:\$labels\.)?(?!end\b)(\w+)\s*\}\}")

OF_PROMETHEUS = {"job", "instance"}
"""Labels that Prometheus adds to each series that it reads."""


@dataclass(frozen=True)
class Use:
    """An expression, where it is, and the labels that its texts show."""

    where: str
    expression: str
    shown: frozenset[str]

    @property
    def series(self) -> list[tuple[str, frozenset[str]]]:
        """The metrics, each with the labels by which it is selected."""
        return [
            (found["name"], frozenset(_EQUALS.findall(found["labels"] or "")))
            for found in _SERIES.finditer(self.expression)
        ]

    @property
    def grouped(self) -> frozenset[str]:
        """The labels by which series are grouped and joined."""
        lists = [found["labels"] for found in _GROUPS.finditer(self.expression)]
        return frozenset(label.strip() for labels in lists for label in labels.split(",")) - {""}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(text("alerts.yaml"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text("dashboard.json"))
    return found


def uses() -> Iterator[Use]:
    """Yield the expressions of all alerts and panels."""
    for rule in rules():
        shown = frozenset(name for words in rule["annotations"].values() for name in _SHOWN.findall(words))
        yield Use(rule["alert"], rule["expr"], shown)
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield Use(panel["title"], target["expr"], frozenset(_SHOWN.findall(target["legendFormat"])))
