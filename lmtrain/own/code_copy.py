"""Whether the file of a module of one's own can go into the folder of the model and run there, by itself.

It is read, and nothing of it is run.
"""

from __future__ import annotations

import ast
import hashlib
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from truesource.lmtrain.references import Code

_INSTALLED = {"site-packages", "dist-packages"}
#: names by which a file finds others that `imports` does not see, and what that means
_HIDDEN = {
    "__file__": "looks for files beside it (__file__)",
    "__import__": "imports modules by names made at run time",
}


@dataclass(frozen=True)
class CodeCopy:
    """A file that goes into the folder, or why none does."""

    name: str  #: of the class or function in the file; it may have dots
    content: bytes | None  #: None: the file cannot go
    reason: str | None  #: then: what the file does, to be read after "it"


def code_copy(code: Code) -> CodeCopy:
    """The file of code as it was imported, if it needs no other file but those of installed packages."""
    name = code.name.rpartition(":")[2]
    if code.source is None or code.source.suffix != ".py" or not code.source.is_file():
        return CodeCopy(name, None, "is no file of Python")
    content = code.source.read_bytes()
    if hashlib.sha256(content).hexdigest() != code.digest:
        return CodeCopy(name, None, "has changed since it was imported")
    if tokenize.detect_encoding(io.BytesIO(content).readline)[0] not in ("utf-8", "utf-8-sig"):
        return CodeCopy(name, None, "is not written in UTF-8")
    reason = next(_reasons(ast.parse(content), code.source.resolve().parent), None)
    return CodeCopy(name, None if reason else content, reason)


def _reasons(tree: ast.Module, folder: Path) -> Iterator[str]:
    """Why a file of a folder cannot run elsewhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in _HIDDEN:
            yield _HIDDEN[node.id]
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield f"imports its neighbour {'.' * node.level}{node.module or node.names[0].name}"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from filter(None, (_why_not(name.partition(".")[0], folder) for name in named))


def _why_not(root: str, folder: Path) -> str | None:
    """Why another machine may lack a top-level module; None: it is installed as a package, or of Python."""
    if root == "truesource":
        return "imports truesource"
    if root in ("importlib", "runpy"):
        return _HIDDEN["__import__"]
    if root in sys.builtin_module_names:
        return None
    found = PathFinder.find_spec(root, [str(folder), *sys.path])
    if found is None:  # not here either, so the code does without it
        return None
    places = [found.origin] if found.origin else [*(found.submodule_search_locations or ())]
    if any(_INSTALLED.intersection(Path(place).parts) for place in places):
        return None
    beside = any(folder in [*Path(place).resolve().parents][:2] for place in places)  # root.py, root/__init__.py
    if root in sys.stdlib_module_names and not beside:
        return None
    return f"imports {root}, which lies beside it" if beside else f"imports {root}, which is not an installed package"
