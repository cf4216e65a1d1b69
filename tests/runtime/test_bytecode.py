from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from skypane.runtime.spark.machine import bytecode


def test_bytecode_that_python_may_not_keep_is_kept_when_it_is_requested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "answered.py").write_text(f"ANSWER = {123_456_789}\n", encoding="utf-8")
    answered = import_module("answered")
    assert [spec.name for spec in bytecode.lacking([answered, sys])] == ["answered"]
    assert bytecode.keep(bytecode.lacking([answered])) == 1
    [kept] = (tmp_path / "__pycache__").iterdir()
    assert not bytecode.lacking([answered])
    number, other = ((123_456_789 + more).to_bytes(4, "little") for more in (0, 1))
    kept.write_bytes(kept.read_bytes().replace(number, other))
    del sys.modules["answered"]
    assert import_module("answered").ANSWER == 123_456_790, "what is kept is what is loaded"


def test_where_bytecode_cannot_be_written_none_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "a file"))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a file").touch()
    (tmp_path / "unwritten.py").touch()
    assert bytecode.keep(bytecode.lacking([import_module("unwritten")])) == 0
