"""What tokens are told apart by: frequency bands of words, and classes of the symbols they come from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.core.tag_classes import PENN, TagClasses, tags_of
from truesource.evaluation.divergence.blocks import Events, TruthBlock
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.support.arrays import FloatArray, IntArray

END = "(end)"  #: the group of sentence ends in records; tables and figures say "sentence ends"
RAREST = -7  #: power of ten; rarer words are in one band


def frequency_bands(oracle: Oracle, events: Events) -> tuple[IntArray, tuple[str, ...]]:
    """Group of each event by its exact probability among all tokens, ends of sentences included, and their names.

    A band is a power of ten. ``<unk>`` and the end are groups of their own.

    Raises:
        InputError: expected counts are infinite (spectral radius 1 or more, and no length range).
    """
    counts = expected_counts(oracle.language, oracle.lengths).words
    unigram = np.append(counts / (counts.sum() + events.causal), 0.0)[events.source[: len(events.words)]]
    with np.errstate(divide="ignore"):
        power = np.clip(np.floor(np.log10(unigram) + 1e-12), RAREST, -1)
    order = np.unique(power)[::-1]
    names = [_band(int(p)) for p in order.tolist()]
    extra = [UNKNOWN, END][: 1 + events.causal]
    groups = np.searchsorted(-order, -power)
    return np.append(groups, len(order) + np.arange(len(extra))).astype(np.int64), (*names, *extra)


def _band(power: int) -> str:
    """Name of the band from 10 to that power on."""
    upper = "1" if power == -1 else f"1/{10 ** -(power + 1):,}"
    return f"below {upper}" if power == RAREST else f"1/{10**-power:,} to {upper}"


@dataclass(frozen=True, eq=False)
class PreterminalClasses:
    """Classes of the preterminals of a grammar."""

    names: tuple[str, ...]  #: (C,) the end of a sentence is the last, if causal
    of_state: FloatArray  #: (S, C) 1 where a symbol is in a class

    def divide(self, oracle: Oracle, events: Events, block: TruthBlock, model: FloatArray) -> tuple[FloatArray, ...]:
        """P of each class at the next token, and its part of KL(P || Q), (W, C) each.

        The class is that of the symbol that makes the word, whose posterior given the left context and the word is
        exact: summed over the words, so that nothing of the divergence is left to the token that was drawn. Parts are
        inf where the model gives no probability to a word of the class.
        """
        gap = np.zeros(block.log_prob.shape)
        np.subtract(block.log_prob, model, out=gap, where=block.log_prob > -np.inf)
        exact = oracle.language.exact
        n_words = len(oracle.language.terminals)
        per_state = np.asarray(exact.emission @ gap[:, events.target[:n_words]].T).T
        part = np.where(block.states > 0.0, block.states * np.where(block.states > 0.0, per_state, 0.0), 0.0)
        infinite = np.isinf(part)
        share = (block.states * exact.lexical_sums) @ self.of_state
        divided = np.where(infinite, 0.0, part) @ self.of_state
        divided[(infinite @ self.of_state) > 0.0] = np.inf
        if events.causal:
            end = np.exp(block.log_prob[:, -1])
            share[:, -1] = end
            divided[:, -1] = np.where(end > 0.0, end * np.where(end > 0.0, gap[:, -1], 0.0), 0.0)
        return share, divided


def word_classes(oracle: Oracle, classes: TagClasses = PENN) -> PreterminalClasses:
    """The classes of an oracle's grammar.

    Raises:
        InputError: ``classes`` miss one of its tags.
    """
    grammar = oracle.language
    tags = tags_of(grammar)
    names, of_tag = classes.table(tags)
    ends = (END,) if oracle.objective == "causal" else ()
    of_state = np.zeros((len(grammar.symbols), len(names) + len(ends)))
    for state in np.unique(grammar.lexical[:, 0]).tolist():
        of_state[state, : len(names)] = of_tag[tags.index(grammar.labels[state])]
    return PreterminalClasses((*names, *ends), of_state)
