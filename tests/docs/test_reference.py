"""The reference agrees with the code: error codes, signature keys, pages of commands and of the API, files of a run."""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import get_args

import numpy as np
import pyarrow.parquet as pq
import pytest
from api_pages import INNER, NOUNS, TITLES, api_pages
from command_pages import command_pages
from key_page import page as key_page
from tiny_run import prepare, run
from truths_page import page as truths_page

import truesource
import truesource.grammar.parsing
from truesource.cli.app import VERBS, load
from truesource.evaluation.core.signature import KEY_GROUPS
from truesource.generator.abilities import OfTruth
from truesource.grammar.support.errors import InputError
from truesource.terminal.help import verb_help

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PACKAGES = [ROOT / name for name in ("grammar", "generator", "lmtrain", "evaluation")]
PACKAGES += [folder for folder in (ROOT / "truesource").iterdir() if folder.is_dir() and not folder.is_symlink()]
#: codes that the code puts together
COMPOSED = {"unknown-language", "unknown-seed"}
#: keyword ``code`` of these calls is no code of an error
NO_ERRORS = {"ModelReference", "OwnConfig", "format", "cache_code"}
CONFIG = """\
name: toy
grammar: {method: file, file: toy.txt}
corpus: {lengths: 1..9, splits: {train: 60, dev: 10, eval: 20}}
models:
  - name: c
    preset: tiny
    model: {dim: 8, heads: 1, layers: 1}
    training: {max_steps: 2, eval_every: 1, batch_tokens: 64}
"""
GRAMMAR = "S -> 'a' 0.5 | S B 0.3 | B 0.2\nB -> 'b' 0.6 | 'c' 0.4\n"


def codes_of(tree: ast.Module) -> Iterator[str]:
    """Codes of errors that a module names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = [each.value for each in node.keywords if each.arg == "code" and name not in NO_ERRORS]
            given += node.args[1:2] if name == "NothingToMeasureError" else []
            given += node.args[2:3] if name == "_error" else []
            yield from (each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (str(node.value.value) for each in targets if getattr(each, "id", "") == "default_code")
        elif isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args]
            named = zip(arguments[::-1], node.args.defaults[::-1], strict=False)
            named = [*named, *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
            yield from (v.value for k, v in named if k.arg == "code" and isinstance(v, ast.Constant) and v.value)


def test_every_error_code_is_described() -> None:
    files = [file for package in PACKAGES for file in package.rglob("*.py")]
    texts = [text for file in files if "code" in (text := file.read_text(encoding="utf-8")) or "NothingTo" in text]
    found = {code for text in texts for code in codes_of(ast.parse(text))}
    page = (REFERENCE / "error-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    described = {code for row in rows for code in re.findall("`([^`]+)`", row)}
    assert sorted(described) == sorted(found | COMPOSED)
    assert InputError.default_code in found


def test_the_text_of_an_attribute_is_not_torn_at_its_colon() -> None:
    napoleon = pytest.importorskip("sphinx.ext.napoleon")
    from fields import setup

    class App:
        def connect(self, *_: object) -> None: ...

    setup(App())
    text = "(W,) what stands there: word number, -1 unknown"
    lines = napoleon.docstring.GoogleDocstring([text, ""], napoleon.Config(), what="attribute", name="observed").lines()
    assert [line for line in lines if line] == [text]


def test_the_page_of_signature_keys_has_them_all() -> None:
    assert [key for keys in KEY_GROUPS.values() for key in keys if f"| `{key}` |" not in key_page()] == []


def test_the_page_of_truths_has_all_abilities() -> None:
    assert [ability for ability in get_args(OfTruth) if ability not in truths_page()] == []


def test_every_command_has_a_page_with_all_its_options() -> None:
    pages = command_pages()
    checked = 0
    for name in VERBS:
        verb = load(name)
        inner = {f"{name}-{each}": found for each, found in getattr(verb, "commands", {}).items() if not found.hidden}
        for page, command in (inner or {name: verb}).items():
            text = pages[f"{page}.md"]
            for panel in verb_help(command, "").panels.values():
                for each in panel:
                    assert all(f"`{name}`" in text for name in each.names)
                    checked += 1
            assert "```sh\ntruesource " in text, page
    assert checked > 300


def test_every_public_name_has_a_page() -> None:
    assert NOUNS.keys() == set(truesource.__all__)
    assert set(NOUNS.values()) == set(TITLES)


def keys(table: str) -> tuple[set[str], set[str]]:
    """Names of a table of the page of files: all, and those that are there only sometimes."""
    page = (REFERENCE / "files.md").read_text(encoding="utf-8")
    (rows,) = re.findall(rf"^\| {table} \|.*\n\| ---.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    found = dict(re.findall(r"^\| `(\w+)` (?:\|.*)?\| ([^|]*) \|$", rows, re.MULTILINE))
    return set(found), {name for name, meaning in found.items() if meaning.startswith("where ")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = prepare(tmp_path_factory.mktemp("files"), CONFIG, GRAMMAR)
    run(folder)
    return folder / "runs" / "toy"


def test_files_of_a_run_have_the_columns_and_keys_of_the_page(finished: Path) -> None:
    training = json.loads((finished / "models" / "c" / "training.json").read_text("utf-8"))
    metrics = (finished / "models" / "c" / "metrics.jsonl").read_text("utf-8").splitlines()
    results = json.loads((finished / "results.json").read_text("utf-8"))
    measured = {re.sub("_(low|high)$", "", key) for record in results for key in record}
    with np.load(finished / "grammar" / "grammar.npz") as arrays:
        grammar = set(arrays)
    written = {
        "column of sentences": set(pq.read_schema(next((finished / "corpus" / "data").glob("eval-*"))).names),
        "key of training.json": set(training),
        "key of metrics.jsonl": {key for line in metrics for key in json.loads(line)},
        "array of a grammar": grammar,
        "column of scores": set(pq.read_schema(finished / "scores" / "c.parquet").names),
        "column of most likely words": set(pq.read_schema(finished / "next_words" / "c.parquet").names),
        "key of a result": measured,
    }
    for table, names in written.items():
        described, sometimes = keys(table)
        assert names <= described, table
        assert described - sometimes <= names, table


def test_the_index_of_the_api_says_of_every_page_what_it_has() -> None:
    pages = api_pages()
    rows = dict(re.findall(r"^\| \[.*\]\(([\w.-]+\.rst)\) \| (.*) \|$", pages["index.md"], re.MULTILINE))
    assert rows.keys() | {"index.md"} == pages.keys()
    assert all(rows.values())
    assert rows["grammar.parsing.rst"] == str(truesource.grammar.parsing.__doc__).partition("\n")[0]


def test_the_index_of_the_api_says_in_a_line_what_each_public_name_is() -> None:
    rows = dict(
        re.findall(r"^\| \{py:obj\}`\w+ <truesource\.([\w.]+)>` \| (.+) \|$", api_pages()["index.md"], re.MULTILINE)
    )
    stable = (REFERENCE / "stability.md").read_text(encoding="utf-8")
    inner = [
        f"{module}.{name}"
        for module, names in re.findall(r"^\| `truesource\.([\w.]+)` \| (`.*) \|$", stable, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
        if (ROOT / module.partition(".")[0]).is_dir()
    ]
    assert len(inner) > 20
    assert {*NOUNS, *inner} <= rows.keys() == {*NOUNS, *(name for names in INNER.values() for name in names)}
    assert rows["LengthRange"] == str(truesource.LengthRange.__doc__).partition("\n")[0]
    assert all(text.endswith(".") or text.endswith(":") for text in rows.values())


def test_the_pages_of_the_api_say_in_a_line_what_each_class_and_function_is() -> None:
    text = "".join(page for name, page in api_pages().items() if name.endswith(".rst"))
    rows = re.findall(r"^   \* - :py:obj:`\w+ <(truesource[\w.]+)>`\n     - (.*)$", text, re.MULTILINE)
    described = {name for name, line in rows if line}
    modules = re.findall(r"^\.\. automodule:: ([\w.]+)$", text, re.MULTILINE)
    defined = {
        f"truesource.{name}" if name in truesource.__all__ else f"{module}.{name}"
        for module in modules
        for name, each in vars(importlib.import_module(module)).items()
        if not name.startswith("_") and isinstance(each, type | FunctionType) and each.__module__ == module
        if each.__qualname__ == name
    }
    assert len(defined) > 1000 and defined - described == set()
