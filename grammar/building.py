"""Building grammars of languages: from rules of any number of children, from automata, with random weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.text_rules import TextRules, build
from truesource.grammar.tree import word_label

NUMBERS = ("sg", "pl")
LARGEST_SEED = 2**32 - 1


def grammar_of(rules: Iterable[tuple[str, Sequence[str], float]], *, start: str) -> GrammarRules:
    """The grammar of (parent, children, probability) triples; a child that is no parent is a word.

    Longer rules become chains of binary rules, and a word beside other children gets a symbol of its own, which
    changes no probability. Equal rules add up. Rules of probability 0 are left out, and so are symbols that derivations
    from the start do not reach.

    Args:
        rules: one or more children each.
        start: the start symbol.
    """
    listed = [rule for rule in rules if rule[2] != 0.0]
    below: dict[str, list[str]] = {}
    for parent, children, _ in listed:
        below.setdefault(parent, []).extend(children)
    reached, waiting = {start}, [start]
    while waiting:
        new = {child for child in below[waiting.pop()] if child in below and child not in reached}
        reached |= new
        waiting += new
    read = TextRules(start=start)
    read.rules = [
        (parent, [(child, "symbol" if child in below else "word") for child in children], weight, 0)
        for parent, children, weight in listed
        if parent in reached
    ]
    return build(read)


Rule = tuple[str, tuple[str, ...], float]


def zipf(size: int, exponent: float) -> list[float]:
    """Probabilities of ranks 1 to ``size``, in proportion to ``rank ** -exponent``."""
    weight = np.arange(1.0, size + 1.0) ** -exponent
    result: list[float] = (weight / weight.sum()).tolist()
    return result


def words(parent: str, stem: str, ending: str, probabilities: list[float]) -> list[Rule]:
    """A rule for each word of a symbol: ``noun1s``, ``noun2s`` and so on."""
    return [(parent, (f"{stem}{i}{ending}",), p) for i, p in enumerate(probabilities, start=1)]


def nouns_and_verbs(nouns: int, verbs: int, exponent: float) -> list[Rule]:
    """Rules of ``N-sg``, ``N-pl``, ``V-sg`` and ``V-pl``: ``noun1``, ``noun1s``; ``verb1s``, ``verb1``."""
    noun, verb = zipf(nouns, exponent), zipf(verbs, exponent)
    return [
        *words("N-sg", "noun", "", noun),
        *words("N-pl", "noun", "s", noun),
        *words("V-sg", "verb", "s", verb),
        *words("V-pl", "verb", "", verb),
    ]


def generator(seed: int, language: int) -> np.random.Generator:
    """Random numbers of one language: equal seeds of two languages have nothing in common."""
    return np.random.default_rng([seed, language])


def dirichlet(rng: np.random.Generator, concentration: float, shape: tuple[int, int]) -> FloatArray:
    """Rows of probabilities, each drawn from the symmetric Dirichlet distribution; none is 0 from 0.05 on.

    A gamma variate of shape a is one of shape a + 1 times U^(1/a) (Marsaglia & Tsang 2000); its logarithm is taken, as
    it is often too small for float64 where a is small.
    """
    log_weight = np.log(rng.standard_gamma(concentration + 1.0, shape))
    log_weight += np.log1p(-rng.random(shape)) / concentration
    return softmax(log_weight)


def softmax(logits: FloatArray) -> FloatArray:
    """Probabilities in proportion to exp(logits), row by row."""
    weight = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: FloatArray = weight / weight.sum(axis=1, keepdims=True)
    return result


@dataclass(frozen=True, kw_only=True, eq=False)
class Automaton:
    """An automaton of S states that makes a word at each of its T transitions; it starts in state 0.

    A state and a word may have several transitions, of which at most one leads to a state that can be the last.
    Weights are positive; those of a state's transitions and of its end are divided by their sum.
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
        """Return which states can be reached from the first, (S,)."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import breadth_first_order

        n = len(self.states)
        steps = csr_matrix((np.ones(len(self.source), dtype=np.int8), (self.source, self.target)), shape=(n, n))
        result = np.zeros(n, dtype=np.bool_)
        result[breadth_first_order(steps, 0, return_predecessors=False)] = True
        return result


def hidden_process(
    transitions: Mapping[str, FloatArray], *, states: Sequence[str], initial: Sequence[float], mean_length: float
) -> GrammarRules:
    """The grammar of a hidden Markov process that makes a word at each transition from a state to the next.

    After each word the string ends with probability 1 / ``mean_length`` in every state, so that what the words before
    tell of the state is what they tell in the endless process. Symbols are the states, each with all that follows, and
    the words in quotes.

    Args:
        transitions: of each word (n, n) P(word, next state | state, the process goes on), of which rows sum to one over
            all words; 0 for none.
        states: (n,) names; none is a word or ``S``.
        initial: (n,) P(first state).
        mean_length: of strings, in words.
    """
    end = 1.0 / mean_length
    rules: list[Rule] = [("S", (state,), float(p)) for state, p in zip(states, initial, strict=True)]
    for i, before in enumerate(states):
        for word, matrix in transitions.items():
            rules.append((before, (word,), float(matrix[i].sum()) * end))
            rules += [(before, (word, after), float(matrix[i, j]) * (1.0 - end)) for j, after in enumerate(states)]
    return grammar_of(rules, start="S")


State = tuple[Any, ...]
Move = tuple[str, State, float]  #: word, state after it, probability


def walked(start: State, moves: Callable[[State], Iterable[Move]], end: Callable[[State], float]) -> Automaton:
    """The automaton of a process, whose next word depends on a configuration that is a function of the words so far.

    States are the configurations that can be reached, named by their parts.

    Args:
        start: before the first word.
        moves: every word that can follow, with the configuration after it.
        end: probability that the string ends in a configuration.
    """
    number, waiting = {start: 0}, [start]
    words: dict[str, int] = {}
    rows: list[tuple[int, int, int, float]] = []
    for state in waiting:  # grows while it is read
        for word, after, weight in moves(state):
            if weight <= 0.0:
                continue
            if after not in number:
                number[after] = len(number)
                waiting.append(after)
            rows.append((number[state], words.setdefault(word, len(words)), number[after], weight))
    source, word_of, target, weights = zip(*rows, strict=True)
    return Automaton(
        states=["-".join(map(str, state)) for state in waiting],
        words=list(words),
        source=np.array(source, dtype=np.int64),
        word=np.array(word_of, dtype=np.int64),
        target=np.array(target, dtype=np.int64),
        weight=np.array(weights),
        end=np.array([end(state) for state in waiting]),
    )


def truncated_geometric(p: float, longest: int) -> list[float]:
    """P(one more | n so far), n = 0..``longest``, of numbers 1 to ``longest`` in proportion to p^n, (longest+1,)."""
    weight = p ** np.arange(longest + 1.0)
    weight[0] = 0.0
    above = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
    result: list[float] = (above[1:] / above[:-1]).tolist()
    return result
