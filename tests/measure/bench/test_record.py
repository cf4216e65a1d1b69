from __future__ import annotations

import pytest
from measure.tables import markdown_table, replace_between


def test_a_table_has_its_head_a_rule_and_its_lines():
    assert markdown_table(["d", "ms"], [["4", "0.1"]]) == "| d | ms |\n| --- | --- |\n| 4 | 0.1 |"


def test_only_what_is_between_the_marks_changes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x -->\nold\n<!-- /x -->\nafter\n", encoding="utf-8")
    replace_between(page, "x", "new")
    replace_between(page, "x", "newer")
    assert page.read_text(encoding="utf-8") == "before\n<!-- x -->\nnewer\n<!-- /x -->\nafter\n"


@pytest.mark.parametrize("text", ["no marks", "<!-- x --> only"])
def test_a_page_without_marks_is_refused_and_left_alone(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="<!-- x -->"):
        replace_between(page, "x", "new")
    assert page.read_text(encoding="utf-8") == text
