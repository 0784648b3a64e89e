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
COLUMN = ("cli", "terminal", "studies", "run", "report", "evaluation", "lmtrain", "generator", "grammar")
#: of each room, its purpose in the picture
PURPOSES = {
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
    given = parser.parse_args()
    every = house.code(given.root)
    sizes, found = Counter(room(module.name) for module in every), arrows(every)
    if given.svg is not None:
        given.svg.write_text(picture(sizes, found), encoding="utf-8")
        return
    back = back_up(found)
    print(f"Rooms: {len(sizes)}; arrows: {len(found)}, back up: {len(back)}\n")
    print("| room | modules | imports, with the number of modules that do |\n|---|---|---|")
    for name in sorted(sizes, key=_height):
        targets = ", ".join(f"{end} {n}" for (start, end), n in sorted(found.items()) if start == name)
        print(f"| {name} | {sizes[name]} | {targets} |")
    for start, end in back:
        print(f"back up: {start} -> {end}")


def room(module: str) -> str:
    """The room of a module, by its name: ``grammar``, ``cli``; of a module that stands alone, its own name."""
    parts = module.split(".")
    return parts[0] if parts[0] != "truesource" else parts[1] if len(parts) > 1 else "__init__"


def arrows(every: list[house.Module]) -> Arrows:
    """The pairs of rooms of which the first imports the second, with the number of modules that do."""
    ends = {(start, room(end)) for start, end in house.imports(every).edges if room(start) != room(end)}
    return Counter((room(start), end) for start, end in ends)


def back_up(found: Arrows) -> list[tuple[str, str]]:
    """The arrows that run back up."""
    graph = nx.DiGraph(list(found))
    circles = {name: number for number, part in enumerate(nx.strongly_connected_components(graph)) for name in part}
    return sorted(
        (start, end)
        for start, end in found
        if (COLUMN.index(start) > COLUMN.index(end) if {start, end} <= set(COLUMN) else circles[start] == circles[end])
    )


LIST = "evaluation.evaluators"  #: module that imports all evaluators
#: where a module named as an evaluator is no second place of its code: its verb, its stage, a study of a paper, and
#: what stands below evaluators
ELSEWHERE = ("truesource.cli", "truesource.run.stages", "truesource.studies", "grammar", "generator", "lmtrain")


def places_of_evaluators(every: list[house.Module]) -> dict[str, list[str]]:
    """Of each evaluator, by name, the packages and modules that are named as it is."""
    names = {
        node.module.split(".")[2]
        for module in every
        if module.name == LIST
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.endswith(".evaluator")
    }
    found: dict[str, set[str]] = {name: set() for name in names}
    for module in every:
        parts = module.name.split(".")
        for number, part in enumerate(parts):
            before = ".".join(parts[:number])
            if part in names and not before.startswith(ELSEWHERE) and not set(parts[:number]) & names:
                found[part].add(f"{before}.{part}")
    return {name: sorted(places) for name, places in found.items()}


def folders_of_verbs(every: list[house.Module]) -> set[str]:
    """The folders with a module that defines a verb: a function ``command``."""
    return {
        module.name.rpartition(".")[0]
        for module in every
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "command"
    }


def _height(name: str) -> tuple[int, str]:
    return (COLUMN.index(name) if name in COLUMN else -1, name)


WIDTH, ROW, LEFT, BOX = 860, 62, 40, 330


def picture(sizes: Counter[str], found: Arrows) -> str:
    """The rooms in a column, with an arc for each arrow: on the right down, on the left back up."""
    names = sorted(sizes, key=_height)
    top = {name: 20 + ROW * number for number, name in enumerate(names)}
    back = set(back_up(found))
    ink, quiet, alarm = "#334155", "#64748b", "#b91c1c"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {20 + ROW * len(names)}"'
        ' font-family="sans-serif" font-size="14" role="img">',
        f"<title>{len(names)} rooms, {len(found)} arrows between them, {len(back)} back up</title>",
        f'<rect width="{WIDTH}" height="{20 + ROW * len(names)}" fill="#ffffff"/>',
    ]
    x = LEFT + 150
    for (start, end), n in sorted(found.items()):
        up = (start, end) in back
        y0, y1 = top[start] + ROW / 2 - 6, top[end] + ROW / 2 - 14
        span = abs(names.index(start) - names.index(end))
        edge = x - 4 if up else x + BOX + 4
        bend = edge - 16 * span if up else edge + 34 * span
        shade = alarm if up else ink
        width = 0.8 + min(n, 60) / 24
        parts.append(
            f'<path d="M{edge} {y0} C{bend} {y0} {bend} {y1} {edge} {y1}" fill="none" stroke="{shade}"'
            f' stroke-width="{width:.2f}" stroke-opacity="0.45">'
            f"<title>{start} imports {end} in {n} modules</title></path>"
        )
        side = 6 if not up else -6
        parts.append(f'<path d="M{edge} {y1} l{side} -4 v8 z" fill="{shade}" fill-opacity="0.8"/>')
    for name in names:
        y = top[name]
        parts.append(
            f'<rect x="{x}" y="{y}" width="{BOX}" height="{ROW - 20}" rx="6" fill="#f8fafc" stroke="{quiet}"/>'
            f'<text x="{x + 12}" y="{y + 18}" fill="{ink}" font-weight="bold">{name}</text>'
            f'<text x="{x + BOX - 12}" y="{y + 18}" fill="{quiet}" text-anchor="end">{sizes[name]} modules</text>'
            f'<text x="{x + 12}" y="{y + 35}" fill="{quiet}" font-size="12">{PURPOSES.get(name, "")}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
