"""The cases of a campaign one after another: what is not as it must be is printed, and all kinds are counted."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

import outcome


@dataclass(frozen=True)
class Case:
    """What came of one case."""

    what: str  #: the verb, and what was done to it
    kind: str  #: how it ended, as it is counted
    detail: str  #: printed below ``what``
    ending: outcome.Outcome


def run(
    name: str,
    case: Callable[[random.Random], Case],
    fine: Collection[str],
    number: int,
    seed: int,
    only: int | None,
) -> int:
    """Run all cases of a seed, or one.

    Args:
        name: of what is counted, for the last line.
        case: runs one; all that is random in it comes from its argument.
        fine: the kinds that are as they must be.
        number: of cases.
        seed: case k has the random numbers of ``seed`` and k alone.
        only: run only this case, and print how it ended whatever its kind.

    Returns:
        The exit code: 1 where a kind is not fine.
    """
    table: Counter[str] = Counter()
    begun = time.perf_counter()
    for k in range(number) if only is None else [only]:
        found = case(random.Random(f"{seed}-{k}"))
        table[found.kind] += 1
        if found.kind not in fine or only is not None:
            print(f"case {k}: {found.what}: {found.kind} ({found.ending.seconds:.0f} s)")
            print("    " + found.detail.replace("\n", "\n    "), flush=True)
        if only is not None:
            print(found.ending)
        elif (k + 1) % 25 == 0:
            print(f"({k + 1} of {number} in {time.perf_counter() - begun:.0f} s)", flush=True)
    print(f"{table.total()} {name}: " + ", ".join(f"{kind} {n}" for kind, n in table.most_common()))
    return int(any(kind not in fine for kind in table))
