"""Make all choices of a grammar more or less random."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.variants.change import Change, Changed, require_ending
from truesource.grammar.variants.rows import checked, log_sums, number, require_representable
from truesource.grammar.variants.rule_map import RuleMap


@dataclass(frozen=True)
class Temperature(Change):
    """Every rule gets a probability proportional to ``p ** (1 / value)`` among those of its parent.

    Above 1 rules become more alike and the entropy of every choice rises, below 1 it falls; 1 changes nothing.
    Sentences may grow or shrink with it. Rules keep their places.

    Raises:
        InputError: the value is not a number above 0.
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", checked(self.value, "temperature", zero=False))

    @property
    def spec(self) -> str:
        """Such as ``temperature=0.8``."""
        return f"temperature={number(self.value)}"

    def apply(self, pcfg: PCFG) -> Changed:
        """Raise and renormalise.

        Raises:
            InputError: derivations of the result may not end, or a probability becomes too small for float64.
        """
        same = RuleMap.identity(pcfg)
        if self.value == 1.0:
            return Changed(pcfg, same, {})
        logp = np.concatenate([logp for _, logp in pcfg.tables()]) / self.value
        parents = np.concatenate([rules[:, 0] for rules, _ in pcfg.tables()])
        logp = np.minimum(logp - log_sums(parents, logp, len(pcfg.symbols))[parents], 0.0)
        require_representable(logp, self.spec)
        binary, unary, lexical = np.split(logp, [len(pcfg.binary), len(pcfg.binary) + len(pcfg.unary)])
        result = replace(pcfg, binary_logp=binary, unary_logp=unary, lexical_logp=lexical)
        require_ending(result, self.spec)
        return Changed(result, same, {})
