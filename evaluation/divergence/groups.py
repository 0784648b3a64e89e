"""Groups of contexts that the truth tells apart.

* By the ambiguity of their sentence: the exact entropy of its derivation, given the sentence.
* By distance: how far back the words lie that the true prediction depends on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import require_order
from truesource.evaluation.core.windows import BestWithin
from truesource.evaluation.divergence import By
from truesource.evaluation.divergence.contexts import Contexts, measure_contexts
from truesource.generator.abilities import OfTruth, require
from truesource.generator.language_model import DistributionModel
from truesource.grammar.inference.posterior import derivation_entropy, posterior
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.printable import meter

ONE_TREE = 1e-9  #: nats; sentences of a smaller entropy have one derivation, but for rounding
AMBIGUITY = (1.0, 2.0, 4.0, 8.0)  #: nats, highest entropy of each band but the first and the last
AMBIGUITIES = ("0 (one tree)", "up to 1", "1 to 2", "2 to 4", "4 to 8", "over 8")
WORDS = 4  #: most words back that are told apart
NEAR = 0.05  #: nats; a predictor that sees k words is as good as the truth where its divergence is at most this
DISTANCES = (*map(str, range(WORDS + 1)), f"over {WORDS}")


@dataclass(frozen=True, eq=False)
class ContextGroups:
    """A group of each of the T contexts of some sentences."""

    names: tuple[str, ...]  #: (G,)
    group: IntArray  #: (T,) 0 to G-1


#: what tables need of the truth that are made only where they are named
_NEEDS: dict[By, OfTruth] = {"phrase": "parses", "ambiguity": "parses", "distance": "windows"}


def require_groups(by: Sequence[By], setting: Setting, model: DistributionModel) -> None:
    """Refuse tables that a truth, a text or a model has no groups for, before anything is computed."""
    for name in by:
        if name in _NEEDS:
            require_order(setting.transform, f"the divergence by {name}")
            require(setting.known, _NEEDS[name], f"the divergence by {name}")
    if "distance" in by and model.objective != "causal":
        raise NothingToMeasureError(
            "a masked model sees the words after a token, too, so it has no divergence by distance; give a causal one",
            "masked",
        )


def by_ambiguity(measured: Contexts, oracle: Oracle, sentences: Sequence[Sequence[str]]) -> ContextGroups:
    """Contexts by the exact entropy of the derivation of their sentence, given the sentence.

    Args:
        measured: of these sentences.
        oracle: the truth; derivations are those of its grammar, as the oracle reads words.
        sentences: as they were measured.

    Raises:
        InputError: the truth has no rules, or a chart does not fit in memory.
    """
    grammar, known = oracle.grammar, dict[tuple[str, ...], float]()
    starts = [*measured.starts.tolist(), len(measured.sentence)]
    entropy = np.zeros(len(measured.sentence))
    with meter("ambiguity of sentences", len(starts) - 1) as progress:
        for begin, end in pairwise(starts):
            words = tuple(oracle.read(sentences[int(measured.sentence[begin])]))
            if words not in known:
                known[words] = derivation_entropy(posterior(grammar, words))
            entropy[begin:end] = known[words]
            progress.advance(1)
    return ContextGroups(AMBIGUITIES, ambiguity_bands(entropy))


def ambiguity_bands(entropy: FloatArray) -> IntArray:
    """Number in `AMBIGUITIES` of each entropy, nats."""
    return np.where(entropy < ONE_TREE, 0, 1 + np.searchsorted(AMBIGUITY, entropy - ONE_TREE))


def by_distance(measured: Contexts, oracle: Oracle, sentences: Sequence[Sequence[str]]) -> ContextGroups:
    """Contexts by the smallest k such that the best predictor that sees k words is as good as the truth there.

    That is where KL(P || P_k) is at most `NEAR`, in just this context; what lies further back matters for less.

    Args:
        measured: of these sentences.
        oracle: a causal one.
        sentences: as they were measured.

    Raises:
        InputError: as `truesource.evaluation.core.windows.BestWithin`.
    """
    truth = require(oracle.truth, "windows", "the divergence by distance")
    first = BestWithin(truth, 0, lengths=oracle.lengths, vocabulary=oracle.vocabulary)
    nearest = np.full(len(measured.sentence), WORDS + 1)
    for k in range(WORDS, -1, -1):
        found = measure_contexts(first.with_words(k), oracle, sentences, top=1)
        nearest[found.column("kl") <= NEAR] = k
    return ContextGroups(DISTANCES, nearest)
