"""Build grammars of languages: from rules with any number of children, from automata, with random weights."""

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
    """Return the grammar of (parent, children, probability) triples; a child that is no parent is a word.

    Longer rules become chains of binary rules, and a word with siblings gets a preterminal, which changes no
    probability. Probabilities of equal rules are added. Rules of probability 0 and symbols that are unreachable from
    the start symbol are removed.

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
    """Return the probabilities of ranks 1 to ``size``, in proportion to ``rank ** -exponent``."""
    weight = np.arange(1.0, size + 1.0) ** -exponent
    result: list[float] = (weight / weight.sum()).tolist()
    return result


def words(parent: str, stem: str, ending: str, probabilities: list[float]) -> list[Rule]:
    """Return a rule for each word of a symbol: ``noun1s``, ``noun2s`` and so on."""
    return [(parent, (f"{stem}{i}{ending}",), p) for i, p in enumerate(probabilities, start=1)]


def nouns_and_verbs(nouns: int, verbs: int, exponent: float) -> list[Rule]:
    """Return the rules of ``N-sg``, ``N-pl``, ``V-sg`` and ``V-pl``: ``noun1``, ``noun1s``; ``verb1s``, ``verb1``."""
    noun, verb = zipf(nouns, exponent), zipf(verbs, exponent)
    return [
        *words("N-sg", "noun", "", noun),
        *words("N-pl", "noun", "s", noun),
        *words("V-sg", "verb", "s", verb),
        *words("V-pl", "verb", "", verb),
    ]


def generator(seed: int, language: int) -> np.random.Generator:
    """Return the random generator of one language; equal seeds of two languages give independent numbers."""
    return np.random.default_rng([seed, language])


def dirichlet(rng: np.random.Generator, concentration: float, shape: tuple[int, int]) -> FloatArray:
    """Return rows drawn from the symmetric Dirichlet distribution; no probability is 0 for concentrations from 0.05 on.

    A gamma variate of shape a is one of shape a + 1 times U^(1/a) (Marsaglia & Tsang 2000). Logarithms are used,
    because for small a it often underflows float64.
    """
    log_weight = np.log(rng.standard_gamma(concentration + 1.0, shape))
    log_weight += np.log1p(-rng.random(shape)) / concentration
    return softmax(log_weight)


def softmax(logits: FloatArray) -> FloatArray:
    """Return probabilities in proportion to exp(logits), row by row."""
    weight = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: FloatArray = weight / weight.sum(axis=1, keepdims=True)
    return result


@dataclass(frozen=True, kw_only=True, eq=False)
class Automaton:
    """An automaton of S states that emits a word at each of its T transitions; it starts in state 0.

    A state and a word may have several transitions, at most one of them to a state in which a string can end. Weights
    are positive; the weights of a state's transitions and of its end are divided by their sum.
    """

    states: Sequence[str]  #: (S,) names, none of them in quotes
    words: Sequence[str]
    source: IntArray  #: (T,)
    word: IntArray  #: (T,)
    target: IntArray  #: (T,)
    weight: FloatArray  #: (T,)
    end: FloatArray  #: (S,) weight of ending in each state, 0 or more

    def grammar(self) -> GrammarRules:
        """Return the language of the automaton without the empty string, whose probability is shared among the others.

        A symbol is a state from which at least one more word follows: ``q -> 'w' r`` continues after the word, ``q ->
        w`` ends after it. Each string has its probability in the automaton over 1 - P(empty). Unreachable states are
        removed; every reachable state must be able to reach the end.
        """
        onward = np.bincount(self.source, self.weight, minlength=len(self.states))
        total = onward + self.end
        reached = np.flatnonzero(self._reached()[self.source])
        source, word, target = self.source[reached], self.word[reached], self.target[reached]
        share = self.weight[reached] / onward[source]
        on, off = share * (onward[target] / total[target]), share * (self.end[target] / total[target])
        longer, last = np.flatnonzero(on), np.flatnonzero(off)
        sources, terminals, tags = np.unique(source), np.unique(word), np.unique(word[longer])
        names = tuple(self.states[q] for q in sources) + tuple(word_label(self.words[w]) for w in tags)
        state, tag = np.searchsorted(sources, source), len(sources) + np.searchsorted(tags, word[longer])
        follower = np.searchsorted(sources, target[longer])
        letter = np.searchsorted(terminals, word)
        preterminals = np.stack([len(sources) + np.arange(len(tags)), np.searchsorted(terminals, tags)], axis=1)
        return GrammarRules(
            names,
            tuple(self.words[w] for w in terminals),
            0,
            np.stack([state[longer], tag, follower], axis=1).astype(np.int32),
            np.log(on[longer]),
            np.empty((0, 2), dtype=np.int32),
            np.empty(0),
            np.concatenate([np.stack([state[last], letter[last]], axis=1), preterminals]).astype(np.int32),
            np.concatenate([np.log(off[last]), np.zeros(len(tags))]),
            names,
        )

    def _reached(self) -> BoolArray:
        """Return which states can be reached from the first state, (S,)."""
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
    """Return the grammar of a hidden Markov process that emits a word at each transition to the next state.

    After each word the string ends with probability 1 / ``mean_length`` in every state, so the words before it carry
    the same information on the state as in the endless process. Symbols are the states, each with all that follows, and
    the words in quotes.

    Args:
        transitions: for each word (n, n) P(word, next state | state, the process continues); rows sum to one over
            all words; 0 for no transition.
        states: (n,) names; none is a word or ``S``.
        initial: (n,) P(first state).
        mean_length: mean length of strings, in words.
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
    """Return the automaton of a process whose next word depends only on a function of the words so far.

    States are the reachable values of that function, the configurations, named by their parts.

    Args:
        start: configuration before the first word.
        moves: every word that can follow, with the configuration after it.
        end: probability that the string ends in a configuration.
    """
    number, waiting = {start: 0}, [start]
    words: dict[str, int] = {}
    rows: list[tuple[int, int, int, float]] = []
    for state in waiting:  # grows during the loop
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
    """Return P(one more | n so far), n = 0..``longest``, (longest+1,), of a truncated geometric number."""
    weight = p ** np.arange(longest + 1.0)
    weight[0] = 0.0
    above = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
    result: list[float] = (above[1:] / above[:-1]).tolist()
    return result
