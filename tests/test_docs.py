"""The examples of the README and of the docstrings run as they stand."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from index_pages import GENERATED, is_index, pages_of, subpages
from index_pages import PAGES as MADE
from reproduction_pages import pages as reproductions

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
PAGES = pages_of(ROOT / "docs")
#: pages that only a build of the site has
BUILT = {ROOT / "docs" / name for name in (*MADE, *(f"{folder}/index.md" for folder in GENERATED))}
BUILT |= {ROOT / "docs" / "reproductions" / f"{name}.md" for name in reproductions()}


def blocks(page: Path) -> list[str]:
    """The Python examples of a page, each of which stands alone."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def undefined(code: str) -> list[str]:
    """Names that code uses and does not define."""
    call = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F821", "--output-format=concise", "-"]
    found = subprocess.run(call, input=code, capture_output=True, text=True, check=False)
    assert found.returncode in (0, 1), found.stderr
    return re.findall(r"Undefined name `(\w+)`", found.stdout)


def test_examples_of_the_guides_define_what_they_use() -> None:
    found = {page.name: [undefined(code) for code in blocks(page)] for page in PAGES}
    assert sum(map(len, found.values())) >= 9
    assert {name: names for name, names in found.items() if any(names)} == {}
    assert undefined("models = load(sentences)") == ["load", "sentences"]


def test_examples_of_the_guides_import_what_is_there() -> None:
    checked = 0
    for code in (code for page in PAGES for code in blocks(page)):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("truesource"):
                module = importlib.import_module(node.module or "")
                assert [each.name for each in node.names if not hasattr(module, each.name)] == []
                checked += 1
    assert checked > 5


def test_the_guides_import_public_names_only() -> None:
    imported: dict[str, set[str]] = {}
    for code in (code for page in PAGES for code in blocks(page)):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("truesource."):
                imported.setdefault(node.module or "", set()).update(each.name for each in node.names)
    page = (ROOT / "docs" / "reference" / "stability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(truesource[\w.]+)` \| (.*) \|$", page, re.MULTILINE)
    assert imported == {module: set(re.findall(r"`(\w+)`", names)) for module, names in rows}


def below(index: Path) -> list[Path]:
    """The pages below an index page, as the site's side bar has them."""
    pages = [index.parent / f"{name}.md" for name in subpages(index)]
    pages = [page for page in pages if page not in BUILT]
    return [*pages, *(inner for page in pages if is_index(page.stem) for inner in below(page))]


def test_the_indexes_list_every_page_once() -> None:
    fragments = {page for page in (ROOT / "docs" / "gallery").glob("*.md") if page.stem not in {"index", "languages"}}
    index = ROOT / "docs" / "index.md"
    assert sorted(below(index)) == sorted(set(PAGES) - fragments - {index})


def test_links_between_pages_lead_to_pages() -> None:
    dead = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
            file = page.parent / target
            if not file.is_file() and file.resolve() not in BUILT:
                dead.append(f"{page.relative_to(ROOT)}: {target}")
    assert dead == []


def test_readme_examples_run() -> None:
    failures, attempted = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert attempted >= 8
    assert failures == 0


def with_examples() -> list[str]:
    """Modules of the package whose docstrings have examples."""
    package = ROOT / "truesource"
    files = [*package.glob("*.py"), *(file for folder in package.iterdir() for file in folder.rglob("*.py"))]
    return sorted({module_of(file) for file in files if ">>>" in file.read_text(encoding="utf-8")})


def module_of(file: Path) -> str:
    """The name of a module, of its file below the root."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("name", with_examples())
def test_docstring_examples_run(name: str) -> None:
    failures, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0
    assert failures == 0


def test_modules_with_examples_are_found() -> None:
    assert {"truesource", "truesource.grammar.pcfg", "truesource.lmtrain.function_model"} < set(with_examples())


@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")], ids=str)
def test_sessions_of_pages_run(page: Path) -> None:
    failures, attempted = doctest.testfile(str(page), module_relative=False)
    assert attempted > 0
    assert failures == 0


def test_a_loop_of_ones_own_takes_thirty_lines_at_most() -> None:
    page = (ROOT / "docs" / "tutorials" / "own_loop.md").read_text(encoding="utf-8")
    code = "".join(re.findall(r"^```{code-cell} ipython3\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    assert "kl_to_truth" in code and "beliefs" in code and undefined(code) == []
    assert len([line for line in code.splitlines() if line.strip()]) <= 30


def test_the_pages_show_every_verb() -> None:
    from truesource.cli.app import VERBS

    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in VERBS if f"truesource {name}" not in text] == []
