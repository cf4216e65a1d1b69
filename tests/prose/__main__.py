"""List the places of docs, docstrings, comments and messages that break a rule of tests/prose/vocabulary.toml."""

from __future__ import annotations

import sys

from tests.prose.texts import texts
from tests.prose.vocabulary import Vocabulary

if __name__ == "__main__":
    vocabulary = Vocabulary.read()
    found = [each for each in vocabulary.findings(vocabulary.matches(texts())) if each.file not in vocabulary.to_do]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
