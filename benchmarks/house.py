"""The size and shape of the code: modules, functions, parameters, names used twice, import circles.

    python benchmarks/house.py [ROOT]

Prints one table. Imports count wherever they stand: at the top, inside functions and under ``TYPE_CHECKING``. Kernels
are the modules named ``_kernels*`` and those of folders named ``_kernels``.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np

PACKAGES = ("truesource", "grammar", "generator", "lmtrain", "evaluation")


@dataclass(frozen=True)
class Module:
    """A source file."""

    name: str  #: as it is imported
    path: Path
    tree: ast.Module
    lines: int

    @property
    def kernel(self) -> bool:
        """Whether it holds kernels."""
        return any(part.startswith("_kernels") for part in self.name.split("."))

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """All functions and methods, those inside others too."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def main() -> None:
    """Print the table."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    code = {package: list(modules(root, package)) for package in PACKAGES}
    print("| package | modules | lines | longest module |\n|---|---|---|---|")
    for package, found in [*code.items(), ("all", [module for some in code.values() for module in some])]:
        lines = [module.lines for module in found]
        print(f"| {package} | {len(found)} | {sum(lines):,} | {max(lines)} |")
    every = [module for some in code.values() for module in some]
    print("\n| what | median | 90% | most | where |\n|---|---|---|---|---|")
    plain = [(module, f) for module in every if not module.kernel for f in module.functions()]
    kernels = [(module, f) for module in every if module.kernel for f in module.functions()]
    row("lines of a module", [(m.lines, m.name) for m in every])
    row("lines of a function outside kernels", [(length(f), f"{m.name}.{f.name}") for m, f in plain])
    row("lines of a kernel", [(length(f), f"{m.name}.{f.name}") for m, f in kernels])
    row("parameters of a function outside kernels", [(parameters(f), f"{m.name}.{f.name}") for m, f in plain])
    row("parameters of a kernel", [(parameters(f), f"{m.name}.{f.name}") for m, f in kernels])
    print(f"\nFunctions outside kernels of more than 60 lines: {sum(length(f) > 60 for _, f in plain)}")
    print(f"  without their docstrings: {sum(code_length(f) > 60 for _, f in plain)}")
    print(f"Kernels of more than 12 parameters: {sum(parameters(f) > 12 for _, f in kernels)}")
    twice = {name: n for name, n in Counter(classes(every)).items() if n > 1}
    print(f"Class names used twice or more: {len(twice)}: {', '.join(f'{k} {n}' for k, n in sorted(twice.items()))}")
    circles = [sorted(part) for part in nx.strongly_connected_components(imports(every)) if len(part) > 1]
    print(f"Import circles: {len(circles)}, of {sum(map(len, circles))} modules")
    for circle in sorted(circles, key=len, reverse=True):
        print(f"  {len(circle)}: {', '.join(circle)}")


def modules(root: Path, package: str) -> Iterator[Module]:
    """The modules of a package, sorted by path; links are not followed."""
    for path in sorted((root / package).rglob("*.py")):
        if not path.is_symlink() and not any(parent.is_symlink() for parent in path.parents if parent != root):
            text = path.read_text(encoding="utf-8")
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield Module(name, path, ast.parse(text), text.count("\n"))


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` to the last one."""
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def code_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """As `length`, without the docstring."""
    first = function.body[0]
    text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return length(function) - ((first.end_lineno or 0) - first.lineno + 1 if text else 0)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters, ``self`` and ``cls`` left out."""
    a = function.args
    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def row(what: str, values: list[tuple[int, str]]) -> None:
    """One line of the table."""
    most, where = max(values)
    sizes = [value for value, _ in values]
    print(f"| {what} | {np.median(sizes):g} | {np.quantile(sizes, 0.9):g} | {most} | {where} |")


def classes(every: list[Module]) -> Iterator[str]:
    """Names of the classes at the top of modules."""
    for module in every:
        yield from (node.name for node in module.tree.body if isinstance(node, ast.ClassDef))


def imports(every: list[Module]) -> nx.DiGraph:
    """Which module imports which."""
    known = {module.name: module for module in every}
    aliases = {f"truesource.{name}": name for name in known if not name.startswith("truesource")}
    graph = nx.DiGraph()
    for module in every:
        package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                wanted = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                source = ".".join([*base, *([node.module] if node.module else [])])
                wanted = [f"{source}.{name.name}" for name in node.names] + [source]
            else:
                continue
            for name in wanted:
                name = aliases.get(name, name)
                if name in known and name != module.name and (name != source_package(node, wanted, known, aliases)):
                    graph.add_edge(module.name, name)
    return graph


def source_package(node: ast.AST, wanted: list[str], known: dict[str, Module], aliases: dict[str, str]) -> str | None:
    """The package of ``from package import module``, which is no import of what its ``__init__`` defines."""
    if not isinstance(node, ast.ImportFrom):
        return None
    source = aliases.get(wanted[-1], wanted[-1])
    submodules = all(aliases.get(name, name) in known for name in wanted[:-1])
    return source if submodules else None


if __name__ == "__main__":
    main()
