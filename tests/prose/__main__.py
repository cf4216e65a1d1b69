"""List the places of docs, docstrings, comments, messages and names of tests that break a rule of tests/prose/vocabulary.toml."""

from __future__ import annotations

import sys

from tests.prose.texts import texts
from tests.prose.vocabulary import Vocabulary

if __name__ == "__main__":
    vocabulary = Vocabulary.read()
    found = vocabulary.findings(vocabulary.matches(texts()))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
