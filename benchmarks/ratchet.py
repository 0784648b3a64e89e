"""Numbers of the house that may only fall, in ``tests/house.json``: print them, and write down those that fell.

python benchmarks/ratchet.py
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import house
import rooms
import wording

from truesource.cli.app import VERBS, evaluators

FILE = Path(__file__).parent.parent / "tests" / "house.json"
LOOSE = {"lines", "settings", "verbs"}  #: numbers that need not be written down when they fall

#: each number, as a function of the modules
MEASURES: dict[str, Callable[[list[house.Module]], int]] = {
    "rooms": lambda every: len({rooms.room(module.name) for module in every}),
    "arrows": lambda every: len(rooms.arrows(every)),
    "arrows that run back up": lambda every: len(rooms.back_up(rooms.arrows(every))),
    "evaluators in two places": lambda every: sum(
        len(places) > 1 for places in rooms.places_of_evaluators(every).values()
    ),
    "folders of verbs": lambda every: len(rooms.folders_of_verbs(every)),
    "modules of two subjects": lambda every: sum(len(house.subjects(module)) > 1 for module in every),
    "modules with late constants": lambda every: sum(bool(house.late_constants(module)) for module in every),
    "modules of more than 500 lines": lambda every: sum(module.lines > 500 for module in every),
    "docstrings that name what is gone": lambda every: len(wording.gone(every)),
    "docstrings with an elliptic opening": lambda every: len(wording.elliptic(every)),
    "assignments to a vague name": lambda every: len(wording.vague(every)),
    "private phrases": lambda every: len(wording.private(every)),
    "lines with an untyped record": lambda every: sum(house.untyped(module) for module in every),
    "typed dictionaries": lambda every: sum(house.typed_dictionaries(module) for module in every),
    "methods named records": lambda every: sum(house.methods(module, "records") for module in every),
    "lines": lambda every: sum(module.lines for module in every),
    "verbs": lambda every: len(VERBS) - 1 + len(evaluators().registered_commands),
    "settings": house.settings,
}


def main() -> None:
    """Write down the numbers that fell, and print each number as it was and as it is."""
    before = json.loads(FILE.read_text(encoding="utf-8"))
    now = numbers(house.code(FILE.parents[1]))
    for name, n in now.items():
        print(f"{name}: {before.get(name)} -> {n}")
    lowest = {name: min(n, before.get(name, n)) for name, n in now.items()}
    FILE.write_text(json.dumps(lowest, indent=1) + "\n", encoding="utf-8")


def numbers(every: list[house.Module]) -> dict[str, int]:
    """Return the numbers of some code."""
    return {name: measure(every) for name, measure in MEASURES.items()}


if __name__ == "__main__":
    main()
