"""The package as a zip file: what is in it, and what it is good for on a Spark Connect server that lacks the package."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import venv
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.runtime.connect.test_connect import answer_of, chosen, client_environment
from tests.runtime.connect_server import connect_server
from tests.runtime.scenarios import lines_of

import skypane as sp
from skypane.types import ConfigError


def test_the_file_has_the_files_of_the_package_and_the_same_bytes_each_time(tmp_path: Path):
    path = sp.pyfile(tmp_path)
    assert Path(path) == tmp_path / f"skypane-{version('skypane')}.zip"
    package = Path(sp.__file__).parent
    wanted = {f"skypane/{file.relative_to(package)}" for file in package.rglob("*") if file.is_file()}
    with ZipFile(path) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert {name for name in wanted if "__pycache__" not in name} == {
        name for name in names if ".dist-info/" not in name
    }
    assert Path(sp.pyfile(tmp_path / "elsewhere")).read_bytes() == Path(path).read_bytes()
    assert [file.name for file in (tmp_path / "elsewhere").iterdir()] == [Path(path).name]


def test_python_imports_the_package_from_the_file_and_knows_its_version(tmp_path: Path):
    path = sp.pyfile(tmp_path)
    program = (
        "import skypane, importlib.metadata as m; print(skypane.__file__, skypane.__version__, m.version('skypane'))"
    )
    (printed,) = lines_of("-c", program, env=os.environ | {"PYTHONPATH": path}, cwd=tmp_path)
    file, *versions = printed.split()
    assert file == f"{path}/skypane/__init__.py"
    assert versions == [version("skypane")] * 2


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="ascii")
    with pytest.raises(ConfigError, match=r"file/skypane-.* cannot be written"):
        sp.pyfile(tmp_path / "file")


@pytest.mark.spark
@pytest.mark.slow
def test_a_server_without_the_package_answers_static_queries_and_refuses_streams(tmp_path: Path):
    pytest.importorskip("grpc", reason="needs pip install 'skypane[connect]'")
    python = without_skypane(tmp_path / "environment")
    with connect_server(tmp_path / "server", python=str(python), paths=[]) as address:
        scenario = json.dumps([address, "packed", str(tmp_path)])
        answer = answer_of(lines_of("-m", "tests.runtime.connect_main", scenario, env=client_environment()))
    assert answer["before"].startswith(
        "ConfigError: Python on the Spark Connect server has no skypane; install skypane"
    )
    assert answer["answers"] == chosen()
    assert answer["stream"].startswith("ConfigError: the Spark Connect server has skypane only as ")


def without_skypane(folder: Path) -> Path:
    """Make an environment with all packages that are installed here, except for skypane; return its Python."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # A folder named in a .pth file is on the path, but its own .pth files, of which skypane has one, are not read.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    python = folder / "bin" / "python"
    found = subprocess.run(
        [python, "-c", "import importlib.util as u; print(bool(u.find_spec('numba')), bool(u.find_spec('skypane')))"],
        env={}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    if found.stdout.split() != ["True", "False"]:
        pytest.skip(f"skypane is installed into {sysconfig.get_path('purelib')} as a whole, not as a checkout")
    return python
