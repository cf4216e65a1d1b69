"""The shipped alert rules and the dashboard: they use metrics and labels that are exposed, and Prometheus reads them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from measure.tables import lines_of
from tests.prometheus import scraped
from tests.prometheus.expressions import OF_PROMETHEUS, Use, dashboard, rules, uses
from tests.prometheus.made import full
from tests.prometheus.test_pages import PAGE

from skypane.cli.main import main
from skypane.monitoring.measures import OF_QUERIES, OF_STREAMS, RUNNING
from skypane.prometheus.shipped_files import NAMES, text

CASES = Path(__file__).parent / "alert_cases.yaml"
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="PROMETHEUS ITSELF DOES NOT READ THE RULES: no promtool")


@pytest.fixture(scope="module")
def exposed() -> Mapping[str, set[str]]:
    """Labels by the name of each exposed series."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, labels in scraped.values(scraped.exposed(full())):
        found[name] |= {label for label, _ in labels} | OF_PROMETHEUS
    return found | {RUNNING.name: {"stream"} | OF_PROMETHEUS}


@pytest.mark.parametrize("use", tuple(uses()), ids=lambda use: use.where)
def test_each_expression_uses_metrics_and_labels_that_are_exposed(use: Use, exposed: Mapping[str, set[str]]):
    assert use.series
    for name, labels in use.series:
        assert name in exposed
        assert labels <= exposed[name], name
    of_all = set.union(*(exposed[name] for name, _ in use.series))
    assert use.grouped <= of_all
    assert use.shown <= (of_all if "query" in of_all else of_all | {"query"})


def test_an_expression_with_other_names_is_found():
    use = Use("", 'sum by (stream, le) (rate(skypane_x_total{a="b", c=~"d"}[5m])) > on (job) skypane_y', frozenset())
    assert use.series == [("skypane_x_total", {"a", "c"}), ("skypane_y", frozenset())]
    assert use.grouped == {"stream", "le", "job"}


def test_the_dashboard_shows_each_metric():
    shown = {name for use in uses() for name, _ in use.series}
    measures = [(one.name, one.kind) for one in OF_STREAMS] + [(one.name, one.kind) for one in OF_QUERIES]
    hidden = {name for name, kind in measures if not {name, f"{name}_sum" if kind == "histogram" else name} & shown}
    assert hidden == {
        "skypane_batch_duration_seconds",  # by its buckets, as the next one
        "skypane_answer_latency_seconds",
        "skypane_answer_rows_total",
        "skypane_empty_windows_total",
    }


def test_panels_do_not_overlap_and_each_has_its_number():
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert all(panel["description"].endswith(".") for panel in panels)
    assert all("$stream" in target["expr"] for panel in panels for target in panel["targets"])


def test_the_page_has_what_to_do_for_each_alert():
    _, _, section = PAGE.read_text(encoding="utf-8").partition("## Alerts, and what to do then\n")
    listed = {line[0].strip("`"): line[1:] for line in lines_of(section.partition("\n## ")[0])}
    assert list(listed) == [rule["alert"] for rule in rules()]
    assert all(means and do for means, do in listed.values())
    assert all(rule["labels"]["severity"] in {"critical", "warning", "info"} for rule in rules())


def test_the_command_writes_the_files_and_replaces_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "new" / "folder"
    assert main(["monitoring", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines() == [str(folder / name) for name in NAMES]
    assert {path.name: path.read_text() for path in folder.iterdir()} == {name: text(name) for name in NAMES}
    assert json.loads((folder / "dashboard.json").read_text())["title"] == "skypane"
    assert yaml.safe_load((folder / "prometheus.yaml").read_text())["rule_files"] == ["alerts.yaml"]
    (folder / "alerts.yaml").write_text("of mine")
    assert main(["monitoring", str(folder)]) == 1
    assert "is there already: remove it, or choose another folder" in capsys.readouterr().err
    assert (folder / "alerts.yaml").read_text() == "of mine"


def promtool(*arguments: str, given: str | None = None) -> str:
    """Run promtool; return its output, and fail with it if it finds a fault."""
    command = [str(PROMTOOL), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_promtool
def test_prometheus_reads_the_configuration_and_the_rules(tmp_path: Path):
    assert main(["monitoring", str(tmp_path)]) == 0
    output = promtool("check", "config", str(tmp_path / "prometheus.yaml"))
    assert f"{len(rules())} rules found" in output


@needs_promtool
def test_prometheus_finds_no_fault_in_the_names_of_metrics():
    assert promtool("check", "metrics", given=scraped.exposed(full())) == ""


@needs_promtool
def test_prometheus_reads_the_expressions_of_the_dashboard(tmp_path: Path):
    """As rules, in which Grafana's variables have a value."""
    recorded = [
        {"record": f"panel:{number}", "expr": use.expression.replace("$__rate_interval", "1m").replace("$stream", ".*")}
        for number, use in enumerate(uses())
    ]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    assert f"{len(recorded)} rules found" in promtool("check", "rules", str(file))


@needs_promtool
def test_each_alert_fires_in_its_case_and_in_no_other(tmp_path: Path):
    """Prometheus evaluates the rules over series of hours, in which one thing after another is wrong."""
    assert main(["monitoring", str(tmp_path)]) == 0
    shutil.copy(CASES, tmp_path)
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / CASES.name))


def test_each_alert_has_a_case_in_which_it_fires():
    tests = yaml.safe_load(CASES.read_text())["tests"]
    fired = {case["alertname"] for one in tests for case in one["alert_rule_test"] if case.get("exp_alerts")}
    quiet = {case["alertname"] for one in tests for case in one["alert_rule_test"] if not case.get("exp_alerts")}
    assert fired == quiet == {rule["alert"] for rule in rules()}
