"""Make the vocabulary of a grammar smaller."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.variants.change import Change, Changed
from truesource.grammar.variants.rows import log_sums
from truesource.grammar.variants.rule_map import RuleMap, locate

UNKNOWN = "<unk>"  #: how collapsed words read


@dataclass(frozen=True)
class Vocabulary(Change):
    """Keep the ``size`` words with the largest expected count; the probability of others goes to those kept.

    Counts are exact, not conditioned on length, and words of equal count are taken by their number. Within each
    preterminal, the probability of the dropped words is shared out among its kept ones in proportion, so its total
    lexical probability stays, and with it the distribution of trees over preterminals. A preterminal that would lose
    all its words keeps its most probable one, which takes the place of the least frequent other words: the size is as
    asked for, and no rule but lexical ones goes.

    Raises:
        InputError: the size is not a whole number from 1 on.
    """

    size: int

    def __post_init__(self) -> None:
        _check_size(self.size, "vocabulary")

    @property
    def spec(self) -> str:
        """Such as ``vocabulary=5000``."""
        return f"vocabulary={self.size}"

    def apply(self, pcfg: PCFG) -> Changed:
        """Drop words.

        Raises:
            InputError: so few words do not serve all preterminals, or the spectral radius is 1 or more.
        """
        if self.size >= len(pcfg.terminals):
            return Changed(pcfg, RuleMap.identity(pcfg), {})
        keep, rescued = self._chosen(pcfg)
        rules = keep[pcfg.lexical[:, 1]]
        parents, logp = pcfg.lexical[rules, 0], pcfg.lexical_logp[rules]
        n = len(pcfg.symbols)
        total = log_sums(pcfg.lexical[:, 0], pcfg.lexical_logp, n)
        logp = np.minimum(logp + (total[parents] - log_sums(parents, logp, n)[parents]), 0.0)
        number = np.cumsum(keep) - 1
        result = replace(
            pcfg,
            terminals=tuple(word for word, ok in zip(pcfg.terminals, keep, strict=True) if ok),
            lexical=np.column_stack([parents, number[pcfg.lexical[rules, 1]]]).astype(np.int32),
            lexical_logp=logp,
        )
        details = {**_details(pcfg, keep), "kept_for_a_preterminal": rescued}
        return Changed(result, RuleMap.by_name(pcfg, result), details)

    def _chosen(self, pcfg: PCFG) -> tuple[BoolArray, int]:
        """Which words to keep, (V,), and how many of them for a preterminal's sake."""
        parents, words = pcfg.lexical[:, 0], pcfg.lexical[:, 1]
        order = np.lexsort((words, -pcfg.lexical_logp, parents))
        preterminals, first = np.unique(parents[order], return_index=True)
        best = words[order][first]
        ranked = np.argsort(-pcfg.exact.expected_words, kind="stable")
        rescued = np.zeros(len(pcfg.terminals), dtype=bool)
        while True:
            keep = rescued.copy()
            others = ranked[~rescued[ranked]]
            keep[others[: self.size - int(rescued.sum())]] = True
            served = np.zeros(len(pcfg.symbols), dtype=bool)
            served[parents[keep[words]]] = True
            bare = ~served[preterminals]
            if not bare.any():
                return keep, int(rescued.sum())
            rescued[best[bare]] = True
            if rescued.sum() > self.size:
                name = pcfg.symbols[int(preterminals[np.flatnonzero(bare)[0]])]
                raise InputError(
                    f"with {self.size:,} words some of the {len(preterminals):,} symbols that make words, such as"
                    f" {name!r}, would have none; ask for at least {int(rescued.sum()):,}, or for collapse={self.size}"
                )


@dataclass(frozen=True)
class Collapse(Change):
    """Keep the ``size`` words with the largest expected count; all others read ``<unk>`` (`PCFG.collapse`).

    Sentences are those of the original under a mapping of words, so every derivation has its image.

    Raises:
        InputError: the size is not a whole number from 1 on.
    """

    size: int

    def __post_init__(self) -> None:
        _check_size(self.size, "collapse")

    @property
    def spec(self) -> str:
        """Such as ``collapse=5000``."""
        return f"collapse={self.size}"

    def apply(self, pcfg: PCFG) -> Changed:
        """Merge words.

        Raises:
            InputError: the spectral radius is 1 or more.
        """
        keep = np.zeros(len(pcfg.terminals), dtype=bool)
        if self.size >= len(keep):
            return Changed(pcfg, RuleMap.identity(pcfg), {})
        keep[np.argsort(-pcfg.exact.expected_words, kind="stable")[: self.size]] = True
        result = pcfg.collapse(word for word, ok in zip(pcfg.terminals, keep, strict=True) if ok)
        image = np.array([result.word_ids.get(word, result.word_ids[UNKNOWN]) for word in pcfg.terminals])
        lexical = np.column_stack([pcfg.lexical[:, 0], image[pcfg.lexical[:, 1]]])
        target = locate(result, pcfg.binary.astype(np.int64), pcfg.unary.astype(np.int64), lexical)
        rule_map = RuleMap(target, np.zeros(len(pcfg.binary), dtype=bool), result.n_rules)
        return Changed(result, rule_map, _details(pcfg, keep))


def _details(pcfg: PCFG, keep: BoolArray) -> dict[str, float | int]:
    counts = pcfg.exact.expected_words
    return {"words_kept": int(keep.sum()), "tokens_kept": min(float(counts[keep].sum() / counts.sum()), 1.0)}


def _check_size(size: int, name: str) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InputError(f"{name} wants a whole number of words from 1 on, got {size!r}")
