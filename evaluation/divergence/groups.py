"""Groups of contexts that the truth defines.

* By the ambiguity of their sentence: the exact entropy of its derivation, given the sentence.
* By distance: how many words back the true prediction depends on.
* By phrase: the lowest phrase over the next word, with a posterior share for each context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import require_order
from truesource.evaluation.core.windows import BestWithin
from truesource.evaluation.divergence import By
from truesource.evaluation.divergence.blocks import END
from truesource.evaluation.divergence.contexts import Contexts, DividedDivergence, measure_contexts
from truesource.generator.abilities import OfTruth, require
from truesource.generator.language_model import LanguageModel
from truesource.grammar.inference.phrases import lowest_phrases
from truesource.grammar.inference.posterior import derivation_entropy, posterior
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.printable import meter

ONE_TREE = 1e-9  #: nats; sentences of smaller entropy have one derivation, up to rounding
AMBIGUITY = (1.0, 2.0, 4.0, 8.0)  #: nats, maximum entropy of each band except the first and the last
AMBIGUITIES = ("0 (one tree)", "up to 1", "1 to 2", "2 to 4", "4 to 8", "over 8")
WORDS = 4  #: maximum number of distinguished words back
NEAR = 0.05  #: nats; a k-word predictor is as good as the truth if its divergence is at most this
DISTANCES = (*map(str, range(WORDS + 1)), f"over {WORDS}")

T = TypeVar("T")
#: abilities of the truth that optional tables need
_NEEDS: dict[By, OfTruth] = {"phrase": "parses", "ambiguity": "parses", "distance": "windows"}


@dataclass(frozen=True, eq=False)
class ContextGroups:
    """The groups of the T contexts of sentences."""

    names: tuple[str, ...]  #: (G,)
    group: IntArray  #: (T,) 0 to G-1


def require_groups(by: Sequence[By], setting: Setting, model: LanguageModel) -> None:
    """Refuse tables without groups for a truth, a text or a model, before any work is done."""
    for name in by:
        if name in _NEEDS:
            require_order(setting.transform, f"the divergence by {name}")
            require(setting.known, _NEEDS[name], f"the divergence by {name}")
    if "distance" in by and model.objective != "causal":
        raise NothingToMeasureError(
            "a masked model sees the words after a token, too, so it has no divergence by distance; use a causal one",
            "masked",
        )


def by_ambiguity(measured: Contexts, oracle: Oracle, sentences: Sequence[Sequence[str]]) -> ContextGroups:
    """Group contexts by the exact entropy of derivations of their sentence.

    Args:
        measured: contexts of these sentences.
        oracle: the truth; derivations come from its grammar, with words as the oracle reads them.
        sentences: the measured sentences.

    Raises:
        InputError: the truth has no rules, or a chart does not fit in memory.
    """
    grammar, entropy = oracle.grammar, np.zeros(len(measured.sentence))

    def of_words(words: tuple[str, ...]) -> float:
        return derivation_entropy(posterior(grammar, words))

    for contexts, value in _by_sentence(measured, oracle, sentences, of_words, "ambiguity of sentences"):
        entropy[contexts] = value
    return ContextGroups(AMBIGUITIES, ambiguity_bands(entropy))


def _by_sentence(
    measured: Contexts,
    oracle: Oracle,
    sentences: Sequence[Sequence[str]],
    of_words: Callable[[tuple[str, ...]], T],
    description: str,
) -> Iterator[tuple[slice, T]]:
    """Yield contexts of each sentence with a function of its words, computed once for equal sentences."""
    values = dict[tuple[str, ...], T]()
    starts = [*measured.starts.tolist(), len(measured.sentence)]
    with meter(description, len(starts) - 1) as progress:
        for begin, end in pairwise(starts):
            words = tuple(oracle.read(sentences[int(measured.sentence[begin])]))
            if words not in values:
                values[words] = of_words(words)
            yield slice(begin, end), values[words]
            progress.advance(1)


def ambiguity_bands(entropy: FloatArray) -> IntArray:
    """Return the index in `AMBIGUITIES` of each entropy, nats."""
    return np.where(entropy < ONE_TREE, 0, 1 + np.searchsorted(AMBIGUITY, entropy - ONE_TREE))


def by_distance(measured: Contexts, oracle: Oracle, sentences: Sequence[Sequence[str]]) -> ContextGroups:
    """Group contexts by the smallest k for which the optimal k-word predictor is as good as the truth.

    This means that KL(P || P_k) is at most `NEAR` in this context, so earlier words matter less.

    Args:
        measured: contexts of these sentences.
        oracle: a causal oracle.
        sentences: the measured sentences.

    Raises:
        InputError: see `truesource.evaluation.core.windows.BestWithin`.
    """
    truth = require(oracle.truth, "windows", "the divergence by distance")
    words, full = oracle.vocabulary, oracle.full_contexts
    first = BestWithin(truth, 0, lengths=oracle.lengths, vocabulary=words, collapse=not full)
    nearest = np.full(len(measured.sentence), WORDS + 1)
    for k in range(WORDS, -1, -1):
        measured_window = measure_contexts(first.with_words(k), oracle, sentences, top=1)
        nearest[measured_window.column("kl") <= NEAR] = k
    return ContextGroups(DISTANCES, nearest)


def divided_by_phrase(measured: Contexts, oracle: Oracle, sentences: Sequence[Sequence[str]]) -> DividedDivergence:
    """Divide KL(P || Q) of each context by P(lowest phrase over the observed word | sentence).

    The divergence of a context is over all words that may follow; the phrase is over the observed word.
    Sentence ends are a separate group, so the parts of a sentence sum to its divergence.

    Args:
        measured: contexts of these sentences.
        oracle: the truth; phrases come from its grammar, with words as the oracle reads them.
        sentences: the measured sentences.

    Raises:
        InputError: the truth has no rules, or a chart does not fit in memory.
    """
    grammar, kl = oracle.grammar, measured.column("kl")
    rows, names = [], tuple[str, ...]()

    def of_words(words: tuple[str, ...]) -> tuple[tuple[str, ...], FloatArray]:
        return lowest_phrases(posterior(grammar, words))

    for contexts, (names, table) in _by_sentence(measured, oracle, sentences, of_words, "phrases of sentences"):
        place = measured.position[contexts]
        share = np.zeros((len(place), len(names) + 1))
        inside = place < len(table)
        share[inside, :-1] = table[place[inside]]
        share[~inside, -1] = 1.0
        rows.append(share)
    share = np.concatenate(rows)
    finite = np.isfinite(kl)
    part = share * np.where(finite, kl, 0.0)[:, None]
    counted = share * finite[:, None]
    return DividedDivergence(
        (*names, END),
        measured.per_sentence(counted),
        measured.per_sentence(part),
        ((share > 0.0) & ~finite[:, None]).sum(axis=0),
        share.sum(axis=0),
        of_contexts=True,
    )
