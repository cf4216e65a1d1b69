from __future__ import annotations

import pytest
from tests.page_steps import Step, difference, files, steps

pytestmark = pytest.mark.pages

PAGE = """
```sh
pip install skypane
```

```python
print(1.25, "s")
```

```text
... s
```

```yaml
# a.yaml
name: a
```

```python
# kept.py
print("not typed")
```

```sh
true
```
"""


def test_the_steps_of_a_page_are_its_blocks_with_their_outputs():
    assert steps(PAGE) == [
        Step("python", 7, 'print(1.25, "s")\n', "... s\n"),
        Step("sh", 25, "true\n", ""),
    ]
    assert files(PAGE) == {"a.yaml": "# a.yaml\nname: a\n", "kept.py": '# kept.py\nprint("not typed")\n'}


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("```text\n1\n```\n", "an output before the first block"),
        ("```sh\ntrue\n```\n```text\n1\n```\n```text\n2\n```\n", "a second output of one block"),
    ],
)
def test_an_output_without_a_block_is_refused(page: str, problem: str):
    with pytest.raises(AssertionError, match=problem):
        steps(page)


def test_a_file_without_a_name_is_refused():
    with pytest.raises(AssertionError, match="does not begin with the name"):
        files("```yaml\nname: a\n```\n")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("batch 0 (... s): 3 rows\n", "batch 0 (0.25 s): 3 rows\n", True),
        ("batch 0 (... s): 3 rows\n", "batch 0 (0.25 s): 4 rows\n", False),
        ("a ... d\n", "a b\nc d\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\n", "a\n", True),
        ("a\n", "a  \n\n", True),
        ("1.5 s\n", "105 s\n", False),
        ("", "not shown\n", False),
        ("shown\n", "", False),
    ],
)
def test_an_output_is_compared_with_what_the_page_shows(shown: str, printed: str, same: bool):
    assert (difference(Step("python", 1, "", shown), printed) == "") == same
