"""Comparison of a model with readers that know each document's language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.blocks import events_of, paired_blocks
from truesource.evaluation.divergence.contexts import measure_contexts
from truesource.generator.language_model import DistributionModel
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError


def told_divergence(
    model: DistributionModel,
    truth: DocumentProcess,
    documents: Sequence[Sequence[str]],
    languages: Sequence[int] | IntArray,
) -> FloatArray:
    """Return KL(reader who knows the language || model) at all T positions of some documents, (T,) nats.

    For the perfect reader who does not know it, which is a model too, this is the cost of the unknown language.

    Args:
        model: causal, of whole words, with full distributions.
        truth: a pool.
        documents: n of them.
        languages: (n,) number of the language of each.

    Raises:
        InputError: as `DocumentProcess.knowing`; or a document is impossible in its language.
    """
    numbers = np.asarray(languages, dtype=np.int64)
    sizes = np.array([len(document) + 1 for document in documents])
    starts = np.cumsum(sizes) - sizes
    result = np.empty(int(sizes.sum()))
    for k in np.unique(numbers).tolist():
        some = np.flatnonzero(numbers == k)
        texts = [documents[i] for i in some.tolist()]
        oracle = Setting(truth.knowing(k), texts).full_oracle(model)
        contexts = measure_contexts(model, oracle, texts, top=1)
        if contexts.excluded.size:
            raise InputError("a document is impossible in the language that is given for it; is this its truth?")
        result[starts[some[contexts.sentence]] + contexts.position] = contexts.column("kl")
    return result


@dataclass(frozen=True, eq=False)
class Expected:
    """Languages that a model expects at the beginning of each of the B strings of some documents."""

    document: IntArray  #: (B,) number of the document
    string: IntArray  #: (B,) strings before, from 0 on
    weight: FloatArray  #: (B, K) of each language; they sum to one


def expected_languages(
    model: DistributionModel, truth: DocumentProcess, documents: Sequence[Sequence[str]]
) -> Expected:
    """Return the weights of languages whose mixture of first words is nearest to a model's at each beginning.

    Each string begins as its language begins any string, so a reader who does not know the language expects the mixture
    of these K distributions by its posterior. The weights minimise the sum of (model - mixture)^2 / mean of the K, over
    words, separately at each beginning; the weights of the perfect reader are its posterior.

    Args:
        model: causal, of whole words, with full distributions.
        truth: a pool of K languages whose first words are linearly independent distributions.
        documents: n of them, that the pool can make.

    Raises:
        InputError: as `DocumentProcess.knowing`; first words do not tell the languages apart; or the model gives none
            of them any probability.
    """
    if truth.languages is None:
        truth.knowing(0)  # refuses
    begin = np.stack([truth.knowing(k).next_token(()).probability for k in range(len(truth.languages or ()))])
    if np.linalg.matrix_rank(begin) < len(begin):
        raise InputError(
            "first words do not distinguish these languages: the first word of one is a mixture of the first words of"
            " others; take languages that begin in different ways"
        )
    oracle = Setting(truth, documents).full_oracle(model)
    events = events_of(model, oracle)
    laws = np.zeros((len(begin), len(events)))
    laws[:, events.target[: begin.shape[1]]] = begin
    before = [np.cumsum([0, *(word == SEPARATOR for word in document)]) for document in documents]
    document, string, expected = list[int](), list[int](), list[FloatArray]()
    for block, log_q in paired_blocks(model, oracle, documents, events, "languages expected, by string"):
        at = block.position
        for row, members in enumerate(block.members):
            if at == 0 or documents[members[0]][at - 1] == SEPARATOR:
                document += members
                string += [int(before[members[0]][at])] * len(members)
                expected += [np.exp(log_q[row])] * len(members)
    order = np.lexsort((string, document))
    weight = _nearest_mixtures(laws, np.array(expected)[order])
    return Expected(np.array(document)[order], np.array(string)[order], weight)


def _nearest_mixtures(laws: FloatArray, q: FloatArray) -> FloatArray:
    """Weights of ``laws``, (K, E), of which the mixture is nearest to each row of ``q``, (B, E); (B, K).

    Events that no language begins with are excluded from ``q``.
    """
    scale = np.sqrt(laws.mean(axis=0))
    some = scale > 0.0
    weights = np.array([nnls((laws[:, some] / scale[some]).T, row / scale[some])[0] for row in q[:, some]])
    total = weights.sum(axis=1, keepdims=True)
    if not (total > 0.0).all():
        raise InputError("the model gives no probability to any word that begins a string, so it expects no language")
    return np.asarray(weights / total)
