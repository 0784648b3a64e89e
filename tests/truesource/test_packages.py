"""One distribution with one import name, and a front door that shows what it promises."""

from __future__ import annotations

import importlib
import os
import re
import runpy
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from email.policy import default as email_policy
from pathlib import Path

import pytest
from program import program

import truesource

PARTS = ("grammar", "generator", "lmtrain", "evaluation")
ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
USE = """
from truesource import PCFG, Corpus, Oracle, compare, english
from truesource.evaluation.core.oracle import Oracle as Same
import truesource.generator.sampler, truesource.grammar.estimate._kernels, truesource.lmtrain.pieces.inventory
import evaluation, generator, grammar, lmtrain, tests  # those of the working folder
assert Same is Oracle and PCFG.from_text("S -> 'a' 1").vocabulary == ("a",)  # no kernel, which would be compiled anew
assert {evaluation.OWN, generator.OWN, grammar.OWN, lmtrain.OWN, tests.OWN} == {1}
print(truesource.__file__)
"""


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """A working folder with packages and modules of its own, called like ours."""
    for name in ("evaluation", "generator", "lmtrain", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWN = 1\n")
    (tmp_path / "grammar.py").write_text("OWN = 1\n")
    return tmp_path


def used_in(folder: Path, install: Path, first: str = "") -> Path:
    """Where truesource comes from in a script in ``folder`` that does something first and then uses it."""
    (folder / "use.py").write_text(f"{first}\n{USE}")
    environment = {**os.environ, "PYTHONPATH": str(install)}
    done = subprocess.run([sys.executable, "use.py"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.mark.long
def test_names_of_the_working_folder_do_not_collide_with_the_checkout(crowded: Path) -> None:
    assert used_in(crowded, ROOT) == ROOT / "truesource" / "__init__.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(built, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.mark.long
def test_the_wheel_installs_one_name_and_its_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"truesource"}
    source = sorted(path.relative_to(ROOT).as_posix() for part in PARTS for path in (ROOT / part).rglob("*.py"))
    assert source == sorted(
        name.removeprefix("truesource/") for name in names if name.split("/")[1] in PARTS and name.endswith(".py")
    )
    assert {"truesource/data/english/grammar.txt", "truesource/py.typed"} <= set(names)


@pytest.mark.long
def test_the_metadata_say_where_it_runs_and_have_no_dead_links(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = message_from_bytes(archive.read(name), policy=email_policy)
    classifiers = metadata.get_all("Classifier")
    for version in ("3.11", "3.12", "3.13", "3.14"):
        assert f"Programming Language :: Python :: {version}" in classifiers
    assert {"Typing :: Typed", "Operating System :: POSIX :: Linux"} <= set(classifiers)
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = metadata.get_payload()
    assert "# truesource" in text and "The glossary defines the terms" in text
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert [link for link in links if not link.startswith(("https://", "http://", "#"))] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[a guide](docs/a.md) and [a page](https://x.org/)", "a guide and [a page](https://x.org/)"),
        ("one\n\n![a picture](docs/a.png)\n\ntwo", "one\n\ntwo"),
        ("([plot](docs/a.svg), [more](#below))", "(plot, [more](#below))"),
    ],
)
def test_the_readme_of_the_index_page(text: str, shown: str) -> None:
    assert runpy.run_path(str(ROOT / "hatch_build.py"))["readme"](text) == shown


def test_every_library_has_a_lowest_version() -> None:
    found = runpy.run_path(str(ROOT / "tests" / "packaging" / "lowest.py"))["lowest"]()
    assert {"numpy", "torch", "matplotlib", "dask", "sentencepiece"} <= set(found)
    assert not {"pytest", "truesource", "lm-eval"} & set(found)
    assert all(re.fullmatch(r"[0-9.]+", version) for version in found.values())


@pytest.mark.long
def test_names_of_the_working_folder_do_not_collide_with_the_wheel(
    wheel: Path, crowded: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    install = tmp_path_factory.mktemp("install")
    zipfile.ZipFile(wheel).extractall(install)
    networks = "from truesource import load_model, train"  # here alone: they import torch and transformers
    assert used_in(crowded, install, networks) == install / "truesource" / "__init__.py"


@pytest.mark.parametrize("name", PARTS)
def test_a_part_has_one_name(name: str) -> None:
    """Imported twice, under two names, its classes would differ from themselves."""
    with pytest.raises(ImportError, match=f"import truesource.{name}"):
        importlib.import_module(name)


def test_the_version_is_that_of_the_project() -> None:
    assert truesource.__version__ == PROJECT["project"]["version"]


@pytest.mark.parametrize("name", truesource.__all__)
def test_every_noun_exists(name: str) -> None:
    value = getattr(truesource, name)
    if name != "__version__":
        assert callable(value)
        assert value.__module__.split(".")[0] == "truesource"
        assert value.__doc__


def test_every_noun_is_listed_once() -> None:
    listed = re.findall(r"import (\w+) as \1$", Path(truesource.__file__).with_suffix(".pyi").read_text("utf-8"), re.M)
    assert sorted(listed) == sorted(truesource.__all__) == sorted(dir(truesource)) and len(set(listed)) == len(listed)
    assert re.fullmatch(r"\d+\.\d+\.\d+", truesource.__version__)


def test_an_unknown_noun_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="truesource has no 'Grammar'"):
        _ = truesource.Grammar


def test_importing_the_front_door_imports_nothing_behind_it() -> None:
    modules = {*(f"truesource.{part}" for part in PARTS), "numpy", "torch"}
    code = f"import sys, truesource; print(sorted(set(sys.modules) & {modules!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow  # `make check`, with which `make test` begins, runs the same
def test_the_layers_are_kept() -> None:
    found = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "0 broken" in found.stdout


def test_the_layer_contract_names_all_modules() -> None:
    contracts = PROJECT["tool"]["importlinter"]
    column = next(c for c in contracts["contracts"] if c["type"] == "layers")["layers"]
    assert column == [name for name in program("rooms").COLUMN if name != "__init__"]
    modules = {path.stem for path in (ROOT / "truesource").iterdir() if path.name[0] not in "._"} | {"__main__"}
    assert set(column) == modules - {"__init__", "py", "__pycache__"}
