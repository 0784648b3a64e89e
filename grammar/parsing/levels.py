"""The levels of a split grammar that coarse-to-fine parsing passes through."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from truesource.grammar.estimate.split_merge.project import n_levels, projection
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError

log = logging.getLogger("truesource.grammar")


@dataclass(frozen=True, eq=False)
class Level:
    """A grammar of S symbols, and what they are branches of at the level before."""

    pcfg: PCFG
    parent_of: IntArray  #: (S,) symbol at the level before; -1 where no derivation uses the symbol


def parsing_levels(pcfg: PCFG) -> tuple[Level, ...]:
    """Levels from the coarsest, the labels of the treebank, to the grammar itself; none if it cannot be projected.

    After the labels come the levels with three and two splits fewer than the grammar, which were the fastest for a
    grammar of five splits; the level with one split fewer costs nearly as much as the grammar itself. A grammar that
    was split and cannot be projected (its expected counts are infinite, its split trees damaged) is warned of.
    """
    if not pcfg.meta.get("split_trees"):
        return ()
    try:
        deepest = n_levels(pcfg) - 1
        passes = sorted({max(level, 0) for level in (0, deepest - 3, deepest - 2)} - {deepest})
        coarse = [projection(pcfg, level) for level in passes]
    except InputError as error:
        log.warning(f"Sentences are parsed without pruning, which is slower, because {error}")
        return ()
    if not coarse:
        return ()
    symbols = [*(found.symbol_of for found in coarse), np.arange(len(pcfg.symbols))]
    levels = []
    for k, grammar in enumerate([*(found.pcfg for found in coarse), pcfg]):
        parent_of = np.full(len(grammar.symbols), -1, dtype=np.int64)
        if k > 0:
            used = symbols[0] >= 0
            parent_of[symbols[k][used]] = symbols[k - 1][used]
        levels.append(Level(grammar, parent_of))
    return tuple(levels)
