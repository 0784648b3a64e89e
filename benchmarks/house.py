"""The size and shape of the code: modules, functions, parameters, names used twice, import circles.

    python benchmarks/house.py [ROOT]

Prints one table. Imports count wherever they stand: at the top, inside functions and under ``TYPE_CHECKING``. Kernels
are the modules named ``_kernels*`` and those of folders named ``_kernels``.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import networkx as nx
import numpy as np

PACKAGES = ("truesource", "grammar", "generator", "lmtrain", "evaluation")
Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Module:
    """A source file."""

    name: str  #: as it is imported
    path: Path
    tree: ast.Module
    lines: int

    @cached_property
    def _by_kind(self) -> dict[type[ast.AST], list[ast.AST]]:
        """All nodes of the tree by their class, collected once: the measures read them many times."""
        kinds: dict[type[ast.AST], list[ast.AST]] = {}
        for node in walk(self.tree):
            kinds.setdefault(type(node), []).append(node)
        return kinds

    def nodes(self, *kinds: type[Node]) -> Iterator[Node]:
        """Yield the nodes of some classes."""
        for kind in kinds:
            yield from self._by_kind.get(kind, ())  # type: ignore[misc]

    @property
    def kernel(self) -> bool:
        """Whether it holds kernels."""
        return any(part.startswith("_kernels") for part in self.name.split("."))

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """All functions and methods, those inside others too."""
        yield from self.nodes(ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> None:
    """Print the table."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    sizes = {package: list(modules(root, package)) for package in PACKAGES}
    print("| package | modules | lines | longest module |\n|---|---|---|---|")
    for package, found in [*sizes.items(), ("all", [module for some in sizes.values() for module in some])]:
        lines = [module.lines for module in found]
        print(f"| {package} | {len(found)} | {sum(lines):,} | {max(lines)} |")
    every = [module for some in sizes.values() for module in some]
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
    several = {module.name: len(groups) for module in every if len(groups := subjects(module)) > 1}
    print(f"Modules of two subjects or more, of 50 lines each: {len(several)}: {', '.join(several)}")
    late = {module.name: names for module in every if (names := late_constants(module))}
    print(f"Modules that declare constants after their first definition: {len(late)}")
    circles = [sorted(part) for part in nx.strongly_connected_components(imports(every)) if len(part) > 1]
    print(f"Import circles: {len(circles)}, of {sum(map(len, circles))} modules")
    for circle in sorted(circles, key=len, reverse=True):
        print(f"  {len(circle)}: {', '.join(circle)}")


def code(root: Path) -> list[Module]:
    """The modules of all packages."""
    gc.disable()  # no node of a tree is garbage, and to look for some takes longer than to parse
    try:
        return [module for package in PACKAGES for module in modules(root, package)]
    finally:
        gc.enable()


def modules(root: Path, package: str) -> Iterator[Module]:
    """The modules of a package, sorted by path; links are not followed."""
    for path in sorted((root / package).rglob("*.py")):
        if not path.is_symlink() and not any(parent.is_symlink() for parent in path.parents if parent != root):
            text = path.read_text(encoding="utf-8")
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            stub = path.with_suffix(".pyi")  # what a package imports when it is first used
            tree = ast.parse(text + stub.read_text(encoding="utf-8") if stub.is_file() else text)
            yield Module(name, path, tree, text.count("\n"))


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes below a node and itself, without the contexts of names: twice as fast as `ast.walk`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in node._fields:
            if field != "ctx":
                value = getattr(node, field, None)
                if isinstance(value, ast.AST):
                    waiting.append(value)
                elif isinstance(value, list):
                    waiting += [each for each in value if isinstance(each, ast.AST)]


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


def subjects(module: Module, least: int = 50) -> list[list[str]]:
    """The groups of at least so many lines that no name connects: a module of two subjects has two.

    Of modules with fewer lines than two groups have, there are none.

    Functions and classes are of one group if one names the other, or if both name a third thing that the module
    defines; the log and type variables connect nothing. Kernels have none, as a file of kernels may hold several
    independent ones.
    """
    if module.kernel or module.lines < 2 * least:
        return []
    nodes: dict[str, ast.stmt] = {}
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            nodes[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for name in ast.walk(node):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    nodes[name.id] = node
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    for name, node in nodes.items():
        used = _names(node) & nodes.keys()
        graph.add_edges_from((name, other) for other in used - {name} if other not in ("log", "T"))
    groups = []
    for part in nx.connected_components(graph):
        statements = {id(nodes[name]): nodes[name] for name in part}.values()
        if sum((node.end_lineno or 0) - node.lineno + 1 for node in statements) >= least:
            groups.append(sorted(part))
    return sorted(groups)


def _names(node: ast.AST) -> set[str]:
    """Names in a definition, and words of its short texts, which may be annotations in quotes."""
    names = set()
    for each in walk(node):
        if isinstance(each, ast.Name):
            names.add(each.id)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and len(each.value) < 200:
            names.update(re.findall(r"\w+", each.value))
    return names


def late_constants(module: Module) -> list[str]:
    """Constants, in capitals, that a module declares after its first function or class and that need none of these.

    Types and aliases are no constants.
    """
    defined: set[str] = set()
    late = []
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and defined and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
            used = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
            if any(re.fullmatch(r"_?[A-Z][A-Z0-9_]+", name) for name in names):
                if used & defined:
                    defined |= set(names)
                else:
                    late += names
    return late


def settings(every: list[Module]) -> int:
    """The number of keys of settings: fields with a description."""
    return sum(
        isinstance(node.func, ast.Name)
        and node.func.id == "Field"
        and any(keyword.arg == "description" for keyword in node.keywords)
        for module in every
        for node in module.nodes(ast.Call)
    )


def untyped(module: Module) -> int:
    """Count the lines that name ``dict[str, Any]``."""
    dictionaries = (node for node in module.nodes(ast.Subscript) if getattr(node.value, "id", None) == "dict")
    return len({node.lineno for node in dictionaries if ast.unparse(node) == "dict[str, Any]"})


def typed_dictionaries(module: Module) -> int:
    """Count the classes that derive from ``TypedDict`` and are no checked schema of a file (``with_config``)."""
    every = module.nodes(ast.ClassDef)
    return sum("TypedDict" in map(ast.unparse, node.bases) and not node.decorator_list for node in every)


def methods(module: Module, name: str) -> int:
    """Count the functions of a name."""
    return sum(function.name == name for function in module.functions())


def imports(every: list[Module]) -> nx.DiGraph:
    """Which module imports which."""
    known = {module.name: module for module in every}
    aliases = {f"truesource.{name}": name for name in known if not name.startswith("truesource")}
    graph = nx.DiGraph()
    for module in every:
        package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
        for node in module.nodes(ast.Import, ast.ImportFrom):
            if isinstance(node, ast.Import):
                wanted = [name.name for name in node.names]
            else:
                base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                source = ".".join([*base, *([node.module] if node.module else [])])
                wanted = [f"{source}.{name.name}" for name in node.names] + [source]
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
