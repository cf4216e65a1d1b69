"""What a list names and does not hold."""

from __future__ import annotations

import pytest

from skypane.runtime.environment import check_named, held, is_named
from skypane.types import ConfigError


def test_a_name_is_replaced_from_the_environment_and_other_text_is_kept():
    assert held("$A", "user", {"A": "1"}) == held("${A}", "user", {"A": "1"}) == "1"
    assert held("me", "user", {}) == "me"
    assert held("$1.50 a day", "user", {}) == "$1.50 a day"
    with pytest.raises(ConfigError, match="user is in the environment variable A, which is not set; set it"):
        held("$A", "user", {})


@pytest.mark.parametrize("text", ["swordfish", "$", "$sword-fish", "$ A", "", None, 7])
def test_a_secret_must_be_a_name(text: object):
    assert not is_named(text)
    with pytest.raises(ConfigError, match=r'password must be "\$NAME"') as caught:
        check_named(text, "password")
    assert "fish" not in str(caught.value)
