"""Faults on purpose: damaged files, kills and failing system calls over all verbs of the command.

    python benchmarks/campaign mutations --number 500 --seed 1
    python benchmarks/campaign kills --number 200 --seed 1
    python benchmarks/campaign errors --number 100 --seed 1

Each prints a line per case that is not as it must be, and a table at the end; the exit code is 1 where there is one.
`kills` and `errors` need strace.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import errors
import kills
import mutations
import world
from verbs import VERBS

CAMPAIGNS = {"mutations": mutations.campaign, "kills": kills.campaign, "errors": errors.campaign}


def main() -> int:
    """Run one campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", choices=CAMPAIGNS)
    parser.add_argument("--number", type=int, default=100, help="cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--world", type=Path, default=Path("runs/campaign"), help="folder to work in")
    parser.add_argument("--only", default="", help="only the verbs whose name starts so")
    parser.add_argument("--case", type=int, default=None, help="only this case of the seed")
    given = parser.parse_args()
    os.environ.update(world.environment())  # calls are forks of this process, which must not have threads of torch
    folder = given.world.resolve()
    world.build(folder / "world")
    verbs = [verb for verb in VERBS if verb.name.startswith(given.only)]
    return CAMPAIGNS[given.campaign](folder, verbs, given.number, given.seed, given.case)


if __name__ == "__main__":
    sys.exit(main())
