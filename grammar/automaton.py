"""Grammars of deterministic probabilistic automata: right-linear, one rule or two for each transition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truesource.grammar.bracketing import word_label
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Automaton:
    """An automaton of S states that makes a word at each of its T transitions; it starts in state 0.

    It is deterministic: a state and a word have at most one transition. Weights are positive; those of a state's
    transitions and of its end are divided by their sum.
    """

    states: Sequence[str]  #: (S,) names, none of them in quotes
    words: Sequence[str]
    source: IntArray  #: (T,)
    word: IntArray  #: (T,)
    target: IntArray  #: (T,)
    weight: FloatArray  #: (T,)
    end: FloatArray  #: (S,) weight of ending in each state, 0 or more

    def grammar(self) -> GrammarRules:
        """The language of the automaton without the empty string, whose probability the others share.

        A symbol is a state from which at least one more word comes: ``q -> 'w' r`` goes on after the word, ``q -> w``
        ends after it. Probabilities of strings are those of the automaton over 1 - P(empty). States that cannot be
        reached are left out; every state that can must be able to reach the end.
        """
        onward = np.bincount(self.source, self.weight, minlength=len(self.states))
        total = onward + self.end
        kept = np.flatnonzero(self._reached()[self.source])
        source, word, target = self.source[kept], self.word[kept], self.target[kept]
        share = self.weight[kept] / onward[source]
        on, off = share * (onward[target] / total[target]), share * (self.end[target] / total[target])
        longer, last = np.flatnonzero(on), np.flatnonzero(off)
        sources, terminals, tags = np.unique(source), np.unique(word), np.unique(word[longer])
        names = tuple(self.states[q] for q in sources) + tuple(word_label(self.words[w]) for w in tags)
        state, tag = np.searchsorted(sources, source), len(sources) + np.searchsorted(tags, word[longer])
        follower = np.searchsorted(sources, target[longer])
        letter = np.searchsorted(terminals, word)
        own = np.stack([len(sources) + np.arange(len(tags)), np.searchsorted(terminals, tags)], axis=1)
        return GrammarRules(
            names,
            tuple(self.words[w] for w in terminals),
            0,
            np.stack([state[longer], tag, follower], axis=1).astype(np.int32),
            np.log(on[longer]),
            np.empty((0, 2), dtype=np.int32),
            np.empty(0),
            np.concatenate([np.stack([state[last], letter[last]], axis=1), own]).astype(np.int32),
            np.concatenate([np.log(off[last]), np.zeros(len(tags))]),
            names,
        )

    def _reached(self) -> BoolArray:
        """Which states can be reached from the first, (S,)."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import breadth_first_order

        n = len(self.states)
        steps = csr_matrix((np.ones(len(self.source), dtype=np.int8), (self.source, self.target)), shape=(n, n))
        found = np.zeros(n, dtype=np.bool_)
        found[breadth_first_order(steps, 0, return_predecessors=False)] = True
        return found
