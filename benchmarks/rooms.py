"""The rooms of the code, the folders just below ``truesource/``, and the arrows between them: who imports whom.

    python benchmarks/rooms.py [ROOT]                 print the rooms and the arrows that run back up
    python benchmarks/rooms.py [ROOT] --svg FILE      draw them

An arrow is an import of any module of another room, wherever it stands: at the top, in a function, under
``TYPE_CHECKING``. It runs back up if its end stands above its start in `COLUMN`, or, of rooms that have no place there,
if the two import each other, directly or by way of others.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from pathlib import Path

import house
import networkx as nx

#: from the command down to the kernels; each imports only what stands below it
COLUMN = (
    *("__main__", "cli", "terminal", "__init__", "studies", "run", "report"),
    *("evaluation", "lmtrain", "generator", "grammar"),
)
#: purpose of each room, for the picture
PURPOSES = {
    "__init__": "the nouns that people import",
    "__main__": "python -m truesource",
    "cli": "every verb, one file each",
    "terminal": "options, console, output files",
    "studies": "many trainings or many models",
    "run": "one experiment: its steps and its folder",
    "report": "the page of a run",
    "evaluation": "Text, Oracle, Score; a folder for each evaluator",
    "lmtrain": "models, tokenisers, training, decoding",
    "generator": "Corpus; the protocol of models",
    "grammar": "Treebank, PCFG, truths, exact inference",
}
Arrows = Counter[tuple[str, str]]


def main() -> None:
    """Print the table, or draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    every = house.code(options.root)
    sizes, imports = Counter(room(module.name) for module in every), arrows(every)
    if options.svg is not None:
        options.svg.write_text(picture(sizes, imports), encoding="utf-8")
        return
    back = back_up(imports)
    print(f"Rooms: {len(sizes)}; arrows: {len(imports)}, back up: {len(back)}\n")
    print("| room | modules | imports, with the number of modules that do |\n|---|---|---|")
    for name in sorted(sizes, key=_height):
        targets = ", ".join(f"{end} {n}" for (start, end), n in sorted(imports.items()) if start == name)
        print(f"| {name} | {sizes[name]} | {targets} |")
    for start, end in back:
        print(f"back up: {start} -> {end}")


def room(module: str) -> str:
    """Return the room of a module: ``grammar``, ``cli``; of a module that stands alone, its own name."""
    parts = module.split(".")
    return parts[0] if parts[0] != "truesource" else parts[1] if len(parts) > 1 else "__init__"


def arrows(every: list[house.Module]) -> Arrows:
    """Return the pairs of rooms of which the first imports the second, with the number of modules that do."""
    ends = {(start, room(end)) for start, end in house.imports(every).edges if room(start) != room(end)}
    return Counter((room(start), end) for start, end in ends)


def back_up(imports: Arrows) -> list[tuple[str, str]]:
    """Return the arrows that run back up."""
    graph = nx.DiGraph(list(imports))
    circles = {name: number for number, part in enumerate(nx.strongly_connected_components(graph)) for name in part}
    return sorted(
        (start, end)
        for start, end in imports
        if (COLUMN.index(start) > COLUMN.index(end) if {start, end} <= set(COLUMN) else circles[start] == circles[end])
    )


LIST = "evaluation.evaluators"  #: module that imports all evaluators
#: where a module named as an evaluator is no second place of its code: its verb, its stage, a study of a paper, and
#: what stands below evaluators
ELSEWHERE = ("truesource.cli", "truesource.run.stages", "truesource.studies", "grammar", "generator", "lmtrain")


def places_of_evaluators(every: list[house.Module]) -> dict[str, list[str]]:
    """Return the packages and modules that are named as each evaluator is, by its name."""
    names = {
        node.module.split(".")[2]
        for module in every
        if module.name == LIST
        for node in module.nodes(ast.ImportFrom)
        if node.module and node.module.endswith(".evaluator")
    }
    places: dict[str, set[str]] = {name: set() for name in names}
    for module in every:
        parts = module.name.split(".")
        for number, part in enumerate(parts):
            before = ".".join(parts[:number])
            if part in names and not before.startswith(ELSEWHERE) and not set(parts[:number]) & names:
                places[part].add(f"{before}.{part}")
    return {name: sorted(each) for name, each in places.items()}


def folders_of_verbs(every: list[house.Module]) -> set[str]:
    """Return the folders with a module that defines a verb: a function ``command``."""
    return {
        module.name.rpartition(".")[0]
        for module in every
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "command"
    }


def _height(name: str) -> tuple[int, str]:
    return (COLUMN.index(name) if name in COLUMN else -1, name)


WIDTH, ROW, BOX, SIDE = 860, 62, 330, 240  #: pixels; `SIDE` is the room for arrows on each side
INK, QUIET, ALARM = "#334155", "#64748b", "#b91c1c"


def picture(sizes: Counter[str], imports: Arrows) -> str:
    """Draw the rooms in a column, with an arc for each arrow: on the right down, on the left back up."""
    names = sorted(sizes, key=_height)
    back = set(back_up(imports))
    height = 20 + ROW * len(names)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"'
        ' font-size="14" role="img">',
        f"<title>{len(names)} rooms, {len(imports)} arrows between them, {len(back)} back up</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    top = {name: 20 + ROW * number for number, name in enumerate(names)}
    for (start, end), n in sorted(imports.items()):
        span = abs(names.index(start) - names.index(end)) / len(names)
        ends = top[start] + ROW / 2 - 6, top[end] + ROW / 2 - 14
        parts += _arc(*ends, span, n, up=(start, end) in back, text=f"{start} imports {end} in {_modules(n)}")
    for name in names:
        x, y = SIDE + 20, top[name]
        parts.append(
            f'<rect x="{x}" y="{y}" width="{BOX}" height="{ROW - 20}" rx="6" fill="#f8fafc" stroke="{QUIET}"/>'
            f'<text x="{x + 12}" y="{y + 18}" fill="{INK}" font-weight="bold">{name}</text>'
            f'<text x="{x + BOX - 12}" y="{y + 18}" fill="{QUIET}" text-anchor="end">{_modules(sizes[name])}</text>'
            f'<text x="{x + 12}" y="{y + 35}" fill="{QUIET}" font-size="12">{PURPOSES.get(name, "")}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _arc(start: float, end: float, span: float, n: int, *, up: bool, text: str) -> list[str]:
    """An arrow between two heights, further out the longer it is, wider the more modules import."""
    away = -1 if up else 1
    edge = SIDE + 20 + (-4 if up else BOX + 4)
    bend, colour = edge + away * (14 + 1.15 * SIDE * span), ALARM if up else INK
    return [
        f'<path d="M{edge} {start} C{bend:.0f} {start} {bend:.0f} {end} {edge} {end}" fill="none" stroke="{colour}"'
        f' stroke-width="{0.8 + min(n, 60) / 24:.2f}" stroke-opacity="0.45"><title>{text}</title></path>',
        f'<path d="M{edge} {end} l{6 * away} -4 v8 z" fill="{colour}" fill-opacity="0.8"/>',
    ]


def _modules(n: int) -> str:
    return f"{n} module{'' if n == 1 else 's'}"


if __name__ == "__main__":
    main()
