"""What another package adds by entry points is found wherever ours is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from skypane.plugins import Registered
from skypane.runtime.spark.sinks import registry

ENTRY_POINTS = """
[skypane.commands]
greet = others.greeting
[skypane.functions]
rows_twice = others.parts:rows_twice
[skypane.progress]
Lately = others.parts:Lately
[skypane.sinks]
Nowhere = others.parts:Nowhere
[skypane.queries]
Cheapest = others.parts:Cheapest
"""
PARTS = """
from dataclasses import dataclass
import skypane as sp

def rows_twice():
    return sp.count()

@dataclass(frozen=True, kw_only=True)
class Lately(sp.KSlack):
    pass

@dataclass(frozen=True)
class Nowhere(sp.Console):
    pass

class Cheapest(sp.TopK):
    pass
"""
GREETING = """
def add_parser(commands):
    return commands.add_parser("greet", help="say hello")

def run(arguments):
    print("hello")
    return 0
"""
LOOK = """
from skypane.cli.main import main
from skypane.jobs import output_section, query_section
from skypane.jobs.policy_sections import ProgressSection
from skypane.operators.aggregates.function_text import WORDS
from skypane.runtime.spark.sql.called_query import called_query, parameters_of

assert "rows_twice" in WORDS and "count" in WORDS
assert "lately" in ProgressSection.policies and "kslack" in ProgressSection.policies
assert "nowhere" in output_section.SINKS and "console" in output_section.SINKS
assert "cheapest" in query_section.QUERIES and "top_k" in query_section.QUERIES
assert parameters_of("cheapest")[:4] == parameters_of("top_k")[:4] == ("k", "score", "by", "largest")
assert type(called_query("cheapest", {"k": 1, "score": "price"}).query) is query_section.QUERIES["cheapest"]
assert main(["greet"]) == 0
"""


def test_what_a_package_declares_is_found_by_job_files_texts_sql_and_the_command(tmp_path: Path):
    package = tmp_path / "others"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "parts.py").write_text(PARTS)
    (package / "greeting.py").write_text(GREETING)
    known = tmp_path / "others-1.0.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text(ENTRY_POINTS)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": path}
    look = subprocess.run([sys.executable, "-c", LOOK], env=environment, capture_output=True, text=True, check=False)
    assert (look.returncode, look.stdout) == (0, "hello\n"), look.stderr


def test_without_plugins_a_registry_has_its_own_names_in_order():
    assert list(Registered(registry)) == "Console Delta Directory Foreach Iceberg Jdbc Kafka Memory Table".split()
