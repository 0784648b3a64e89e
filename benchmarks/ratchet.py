"""Numbers of the house that may only fall, in ``tests/house.json``: print them, and write down those that fell.

python benchmarks/ratchet.py
"""

from __future__ import annotations

import json
from pathlib import Path

import house
import rooms
import wording

from truesource.cli.app import VERBS, evaluators

FILE = Path(__file__).parent.parent / "tests" / "house.json"
LOOSE = {"lines", "settings", "verbs"}  #: numbers that need not be written down when they fall


def main() -> None:
    """Write down the numbers that fell, and print each number as it was and as it is."""
    before = json.loads(FILE.read_text(encoding="utf-8"))
    now = numbers(house.code(FILE.parents[1]))
    for name, n in now.items():
        print(f"{name}: {before.get(name)} -> {n}")
    lowest = {name: min(n, before.get(name, n)) for name, n in now.items()}
    FILE.write_text(json.dumps(lowest, indent=1) + "\n", encoding="utf-8")


def numbers(every: list[house.Module]) -> dict[str, int]:
    """The numbers of some code."""
    arrows = rooms.arrows(every)
    return {
        "rooms": len({rooms.room(module.name) for module in every}),
        "arrows": len(arrows),
        "arrows that run back up": len(rooms.back_up(arrows)),
        "evaluators in two places": sum(len(places) > 1 for places in rooms.places_of_evaluators(every).values()),
        "folders of verbs": len(rooms.folders_of_verbs(every)),
        "modules of two subjects": sum(len(house.subjects(module)) > 1 for module in every),
        "modules with late constants": sum(bool(house.late_constants(module)) for module in every),
        "modules of more than 500 lines": sum(module.lines > 500 for module in every),
        "docstrings that name what is gone": len(wording.gone(every)),
        "docstrings with an elliptic opening": len(wording.elliptic(every)),
        "assignments to a vague name": len(wording.vague(every)),
        "lines": sum(module.lines for module in every),
        "verbs": len(VERBS) - 1 + len(evaluators().registered_commands),
        "settings": house.settings(every),
    }


if __name__ == "__main__":
    main()
