"""What docs, docstrings and comments claim, where a machine can look."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from measure import values
from measure.bench.many_keys import KINDS as OF_MANY_KEYS
from measure.bench.programs import KINDS, LEFT_OUT, chosen, every, modules
from measure.reference import tables
from measure.tables import text_between
from tests import references
from tests.checkout import ROOT
from tests.test_imports import LAYERS

import skypane as sp
from skypane.cli.main import COMMANDS
from skypane.jobs.query_section import QUERIES
from skypane.monitoring.measures import EACH
from skypane.opentelemetry.names import described
from skypane.operators.query import Query
from skypane.plugins import Registered
from skypane.runtime.spark.sinks import open_table

pytestmark = pytest.mark.pages

DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
IN_OTHER_SYSTEMS = {
    open_table.PREFIX.rstrip("."),
    *open_table.SUMMARY,
    *(described(measure).name for measure, _ in EACH),
}
"""Names that begin as the package's do: properties and commits of tables of Delta and Iceberg, and instruments of OpenTelemetry."""
_CODE = re.compile(r"`([^`\n]+)`")


def code_of(page: Path) -> list[str]:
    return _CODE.findall(references._FENCE.sub("", page.read_text(encoding="utf-8")))


def test_files_sections_commands_and_modules_that_pages_name_exist():
    assert list(references.dead()) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("see docs/nothing.md", "there is no file docs/nothing.md"),
        ("as kernels/keys_table.py does", "there is no file kernels/keys_table.py"),
        ('(design, "On Spark")', "design has no section 'On Spark'"),
        ("run `skypane star` for that", "there is no command skypane star"),
        ("`make coffee`", "the Makefile has no goal coffee"),
        ("python -m measure.bench.nothing", "there is no module measure.bench.nothing"),
        (
            'design, "Words", docs/design.md, kernels/key_table.py, `skypane run`, `make test`, python -m measure.bench',
            None,
        ),
    ],
)
def test_what_is_not_there_is_found(text: str, problem: str | None):
    assert list(references._wrong(ROOT / "docs" / "page.md", text)) == ([problem] if problem else [])


def test_dead_links_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(references, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# A title, with `code`\n[a](#a-title-with-code) [b](other.md) [c](page.md#none) [d](https://example.org)\n"
    )
    assert list(references._dead_links(page)) == [
        "page.md:2: other.md is not there",
        "page.md:2: page.md has no section #none",
    ]


# The changelog also has names that are gone.
@pytest.mark.parametrize(
    "page", [p for p in references.pages() if p.name != "CHANGELOG.md"], ids=lambda page: page.name
)
def test_names_of_the_package_that_pages_use_exist(page: Path):
    for code in code_of(page):
        if code.startswith("from ") and page.name == "extending.md":
            continue  # the line that is to be written
        for name in re.findall(r"\bsp\.(\w+)", code):
            assert hasattr(sp, name) or name == "Lately", f"{page.name}: sp.{name}"
        for dotted in re.findall(r"\bskypane(?:\.\w+)+", code):
            assert dotted in IN_OTHER_SYSTEMS or resolved(dotted), f"{page.name}: {dotted}"


def resolved(dotted: str) -> Any:
    """What a dotted name stands for; None if there is nothing."""
    module, rest = dotted, list[str]()
    while module:
        try:
            found: Any = import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
            continue
        for name in rest:
            found = getattr(found, name, None)
        return found
    return None


def test_the_tables_of_the_reference_are_those_of_the_registries():
    """`make reference` writes them."""
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for mark, text in tables().items():
        table = page.partition(f"<!-- {mark} -->\n")[2].partition(f"\n<!-- /{mark} -->")[0]
        assert table == text, f"make reference: the table {mark} is not what there is"


def test_the_table_of_values_is_what_becomes_of_them():
    """`python -m measure.values docs` writes it."""
    assert text_between(ROOT / "docs" / values.PAGE, "values").strip() == values.table()


def test_design_lists_the_commands():
    row = next(line for line in DESIGN.splitlines() if line.startswith("| `cli` |"))
    assert _CODE.findall(row)[1:] == [command.__name__.rpartition(".")[2] for command in COMMANDS]  # type: ignore[attr-defined]


def test_design_has_a_row_for_each_layer():
    rows = DESIGN.partition("| layer | what is there |")[2].partition("\n\n")[0]
    named = " ".join(_CODE.findall("\n".join(line.partition(" | ")[0] for line in rows.splitlines())))
    rooms = {name.partition(".")[2] for layer in LAYERS for name in layer if not name.startswith("skypane_papers")} - {
        "",
        "__main__",
        "notebook",
        "runtime.resources",
    }
    for room in rooms:
        assert re.search(rf"\b{room.replace('.', '/')}\b", named), room


def test_queries_lists_every_query_that_answers_windows():
    from tests.subclasses import concrete  # noqa: PLC0415 - beside its use

    import skypane.operators  # noqa: PLC0415
    from skypane.operators.fronts.continuous_skyline import ContinuousSkyline  # noqa: PLC0415

    found = concrete(Query, skypane.operators)  # type: ignore[type-abstract]
    # Other tests may have made subclasses of their own.
    above = {parent for query in found for parent in query.__mro__[1:]}
    leaves = {query for query in found - above if not vars(query).get("_is_protocol")}
    assert leaves == {*QUERIES.values(), ContinuousSkyline}


def test_every_benchmark_is_run_by_the_command_for_all():
    table = {
        file.stem
        for file in (ROOT / "measure" / "bench").glob("*.py")
        if re.search(r"python -m measure\.bench\.", file.read_text())
    }
    assert table <= set(modules()) == {program.module for program in every()}
    assert {program.name for program in every()} - {program.name for program in chosen([])} == LEFT_OUT.keys()
    assert set(KINDS["many_keys"]) == set(OF_MANY_KEYS)


def test_a_registry_has_what_is_imported_there_and_nothing_else():
    for file in sorted((ROOT / "src/skypane").rglob("registry.py")):
        if "from skypane" not in file.read_text() or "def " in file.read_text():
            continue  # of workloads, and of figures: tables of their own
        name = ".".join(file.relative_to(ROOT / "src").with_suffix("").parts)
        lines = [line for line in file.read_text().splitlines() if line.startswith("from ")]
        assert list(Registered(import_module(name))) == [line.split(" as ")[1].split()[0] for line in lines], name


def test_each_decision_has_its_page_and_its_line_in_the_index():
    folder = ROOT / "docs" / "decisions"
    found = sorted(page.name for page in folder.glob("*.md") if page.name != "README.md")
    listed = re.findall(
        r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [name for _, _, name in listed] == found
    for number, title, name in listed:
        text = (folder / name).read_text(encoding="utf-8")
        assert name.startswith(f"{int(number):02d}-")
        assert references.titles(text) == [title, "Context", "Options", "Decision", "Consequence"], name
