"""Change how uneven words are within each preterminal, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.variants.change import Change, Changed
from truesource.grammar.variants.rows import checked, log_sums, number, require_representable
from truesource.grammar.variants.rule_map import RuleMap


@dataclass(frozen=True)
class Sharpen(Change):
    """Within each preterminal, words get probabilities proportional to ``p ** exponent``.

    The total lexical probability of every symbol is kept, hence the distribution of trees over preterminals. Where
    words follow Zipf's law with some exponent, it is multiplied by ``exponent``; 1 changes nothing, 0 makes words
    uniform. Rules keep their places, so one seed samples the same trees from both grammars.

    Raises:
        InputError: the exponent is not a number from 0 on.
    """

    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", checked(self.exponent, "sharpen", zero=True))

    @property
    def spec(self) -> str:
        """Such as ``sharpen=1.5``."""
        return f"sharpen={number(self.exponent)}"

    def apply(self, pcfg: PCFG) -> Changed:
        """Raise and renormalise.

        Raises:
            InputError: a probability becomes too small for float64.
        """
        if self.exponent == 1.0:
            return Changed(pcfg, RuleMap.identity(pcfg), {})
        return _reweighted(pcfg, pcfg.lexical_logp * self.exponent, self.spec)


@dataclass(frozen=True)
class Zipf(Change):
    """Within each preterminal, the word of rank r (by its probability) gets one proportional to ``r ** -exponent``.

    Equally probable words are ranked by their number. All else is as in `Sharpen`; 0 makes words uniform, and
    a second time with the same exponent changes nothing.

    Raises:
        InputError: the exponent is not a number from 0 on.
    """

    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", checked(self.exponent, "zipf", zero=True))

    @property
    def spec(self) -> str:
        """Such as ``zipf=1.2``."""
        return f"zipf={number(self.exponent)}"

    def apply(self, pcfg: PCFG) -> Changed:
        """Rank and reassign.

        Raises:
            InputError: a probability becomes too small for float64.
        """
        parents, words = pcfg.lexical[:, 0], pcfg.lexical[:, 1]
        order = np.lexsort((words, -pcfg.lexical_logp, parents))
        begin = np.searchsorted(parents[order], parents[order])  # where the words of each parent begin
        rank = np.empty(len(order))
        rank[order] = np.arange(len(order)) - begin + 1
        return _reweighted(pcfg, -self.exponent * np.log(rank), self.spec)


def _reweighted(pcfg: PCFG, weight: FloatArray, spec: str) -> Changed:
    """Lexical rules proportional to ``exp(weight)``, the lexical probability of each symbol kept."""
    parents = pcfg.lexical[:, 0]
    n = len(pcfg.symbols)
    total = log_sums(parents, pcfg.lexical_logp, n)
    logp = weight + (total[parents] - log_sums(parents, weight, n)[parents])
    require_representable(logp, spec)
    return Changed(replace(pcfg, lexical_logp=np.minimum(logp, 0.0)), RuleMap.identity(pcfg), {})
