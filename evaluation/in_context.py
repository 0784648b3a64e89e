"""Learning in context: what a perfect reader of documents knows of their language, and which one a model resembles.

A pool of languages is the truth of its documents; the prior that the languages were drawn from is that of a reader who
knows the family, and not the languages. A model that has memorised the languages of its training comes near the first,
one that generalises near the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.blocks import events_of, paired_blocks
from truesource.generator.language_model import DistributionModel
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth

STEPS = 2000  #: most of the search for weights
ENOUGH = 1e-10  #: change of a weight at which it ends


@dataclass(frozen=True, eq=False)
class Known:
    """What a perfect reader knows at each of the T positions of some documents, the end of each included."""

    document: IntArray  #: (T,) number of the document
    position: IntArray  #: (T,) words before, from 0 on
    string: IntArray  #: (T,) strings before, from 0 on
    entropy: FloatArray  #: (T,) of the language given the words before, nats
    regret: FloatArray  #: (T,) ln P(word | words before, language) - ln P(word | words before), nats

    def by(self, key: IntArray, values: FloatArray) -> FloatArray:
        """Mean of some values, (T,), at each of the numbers of ``key``, from 0 on."""
        return np.asarray(np.bincount(key, values) / np.maximum(np.bincount(key), 1))


def what_is_known(
    truth: DocumentProcess,
    documents: Sequence[Sequence[str]],
    languages: Sequence[int] | IntArray,
    lengths: LengthRange | None = None,
) -> Known:
    """The exact uncertainty about the language of documents, and what it costs, word by word.

    The regret of a document, summed, is at most the entropy of the prior on average: the information that the document
    gives about its language.

    Args:
        truth: a pool.
        documents: n of them, such as `truesource.generator.corpus.Corpus.sentences`.
        languages: (n,) number of the language of each, as `truesource.generator.corpus.Corpus.languages` gives them.
        lengths: the condition on the words of a document.

    Raises:
        InputError: as `DocumentProcess.posterior` and `DocumentProcess.knowing`; not one language a document; or a
            document is impossible in its language.
    """
    numbers = np.asarray(languages, dtype=np.int64)
    if len(numbers) != len(documents):
        raise InputError(f"there are {len(documents):,} documents, but {len(numbers):,} languages; give one for each")
    posterior = truth.posterior(documents)
    mixed = truth.exact.causal_log_probs(documents, lengths)
    own: list[FloatArray] = [np.empty(0)] * len(documents)
    for k in np.unique(numbers).tolist():
        some = np.flatnonzero(numbers == k).tolist()
        rows = truth.knowing(k).exact.causal_log_probs([documents[i] for i in some], lengths)
        for i, row in zip(some, rows, strict=True):
            own[i] = row
    if not all(np.isfinite(row).all() for row in own):
        raise InputError(
            "a document is impossible in the language that is given for it; is this the truth of the corpus?"
        )
    sizes = [len(row) for row in mixed]
    strings = [np.cumsum([0, *(word == SEPARATOR for word in document)]) for document in documents]
    weights = np.concatenate(posterior)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0.0)
    return Known(
        document=np.repeat(np.arange(len(documents)), sizes),
        position=np.concatenate([np.arange(size) for size in sizes]),
        string=np.concatenate(strings),
        entropy=-(weights * logs).sum(axis=1),
        regret=np.concatenate(own) - np.concatenate(mixed),
    )


@dataclass(frozen=True)
class Strategy:
    """Which of some predictors a model resembles."""

    weight: dict[str, float]  #: of each in the mixture that is nearest to the model; they sum to one
    kl: dict[str, float]  #: mean KL(predictor || model) of each, nats a token
    rest: float  #: mean KL(model || that mixture), nats a token, over the events that it allows


def strategy(
    model: DistributionModel,
    predictors: Mapping[str, Truth],
    documents: Sequence[Sequence[str]],
    lengths: LengthRange | None = None,
) -> Strategy:
    """The mixture of some exact predictors that is nearest to a model, at every position of some documents.

    Weights minimise the mean KL(model || mixture) over positions, which has one minimum (unless two predictors are the
    same); they are found by expectation maximisation. Call it for each snapshot of a model to see what it learns when.

    Args:
        model: causal, of whole words, with full distributions.
        predictors: by name, such as the pool that the documents are from and its generating prior.
        documents: any that every predictor can make.
        lengths: the condition on the words of a document, of all predictors.

    Raises:
        InputError: there is no predictor or no document, the model is masked or does not know all words, or a
            predictor cannot make a document.
    """
    if not predictors or not documents:
        raise InputError("give one predictor or more, and one document or more")
    if model.objective != "causal":
        raise InputError("only a causal model learns from the words before alone; give a causal one", code="masked")
    tables, expected = [], np.empty((0, 0))
    for name, truth in predictors.items():
        exact, expected = _rows(model, truth, documents, lengths, name)
        tables.append(exact)
    exact = np.stack(tables)
    q = np.exp(expected)
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = [float(np.where(p > 0.0, p * (np.log(p) - expected), 0.0).sum(axis=1).mean()) for p in exact]
    weight = _nearest(exact, q)
    mixture = np.tensordot(weight, exact, axes=1)
    counted = (mixture > 0.0) & (q > 0.0)
    gap = np.zeros_like(q)
    gap[counted] = q[counted] * (expected[counted] - np.log(mixture[counted]))
    return Strategy(
        dict(zip(predictors, weight.tolist(), strict=True)),
        dict(zip(predictors, kl, strict=True)),
        float(gap.sum(axis=1).mean()),
    )


def _rows(
    model: DistributionModel,
    truth: Truth,
    documents: Sequence[Sequence[str]],
    lengths: LengthRange | None,
    name: str,
) -> tuple[FloatArray, FloatArray]:
    """P of a predictor, and ln Q of the model, at all positions, (T, E), in the order of documents and positions."""
    setting = Setting(truth, documents, lengths)
    oracle = setting.full_oracle(model)
    events = events_of(model, oracle)
    starts = np.concatenate([[0], np.cumsum([len(document) + 1 for document in documents])])
    exact, expected = np.zeros((2, starts[-1], len(events)))
    for block, log_q in paired_blocks(model, oracle, documents, events, f"the predictor {name}"):
        if not block.whole.all():
            raise InputError(f"a document is impossible for {name}; give documents that all predictors can make")
        for row, members in enumerate(block.members):
            at = starts[list(members)] + block.position
            exact[at] = np.exp(block.log_prob[row])
            expected[at] = log_q[row]
    return exact, expected


def _nearest(exact: FloatArray, q: FloatArray) -> FloatArray:
    """Weights of the mixture of ``exact`` (M, T, E) that is nearest to ``q`` (T, E), (M,).

    Events that no predictor allows are left out of ``q``.
    """
    weight = np.full(len(exact), 1.0 / len(exact))
    allowed = exact.sum(axis=0) > 0.0
    q = np.where(allowed, q, 0.0)
    for _ in range(STEPS):
        mixture = np.tensordot(weight, exact, axes=1)
        share = np.divide(q, mixture, out=np.zeros_like(q), where=mixture > 0.0)
        found = weight * np.tensordot(exact, share, axes=2)
        found /= found.sum()
        done = float(np.abs(found - weight).max()) < ENOUGH
        weight = found
        if done:
            break
    return np.asarray(weight)
