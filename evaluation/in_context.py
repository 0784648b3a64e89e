"""Learning in context: what a perfect reader of documents knows of their language, and which one a model resembles.

A pool of languages is the truth of its documents; the prior that the languages were drawn from is that of a reader who
knows the family, and not the languages. A model that has memorised the languages of its training comes near the first,
one that generalises near the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import signature
from truesource.evaluation.core.transformed import require_tokens
from truesource.evaluation.divergence.blocks import events_of, paired_blocks
from truesource.evaluation.divergence.compare import Column, mean_scores, signed_parts
from truesource.evaluation.divergence.contexts import Contexts, measure_contexts
from truesource.evaluation.measures.bootstrap import ci_part, resampled_sums
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import DistributionModel, check_sentences
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords, too_few
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth

STEPS = 2000  #: most of the search for weights
ENOUGH = 1e-10  #: change of a weight at which it ends
#: weights between which those of resampled documents are found; close together near 0 and 1
GRID = 0.5 - 0.5 * np.cos(np.pi * np.linspace(0.0, 1.0, 201))
LEAST = 1e-9  #: least probability of a mixture that a slope is divided by
TRUTH, FAMILY = "truth", "family"  #: the two predictors, in records


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
    return Known(
        document=np.repeat(np.arange(len(documents)), sizes),
        position=np.concatenate([np.arange(size) for size in sizes]),
        string=_strings(documents),
        entropy=_entropies(posterior),
        regret=np.concatenate(own) - np.concatenate(mixed),
    )


def _strings(documents: Sequence[Sequence[str]]) -> IntArray:
    """Strings before each position of some documents, from 0 on, (T,)."""
    return np.concatenate([np.cumsum([0, *(word == SEPARATOR for word in document)]) for document in documents])


def _entropies(posterior: Sequence[FloatArray]) -> FloatArray:
    """Entropy of weights of languages at every position of some documents, (T,) nats."""
    weights = np.concatenate(posterior)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0.0)
    return np.asarray(np.maximum(-(weights * logs).sum(axis=1), 0.0))


@dataclass(frozen=True)
class Strategy:
    """Which of some predictors a model resembles."""

    weight: dict[str, float]  #: of each in the mixture that is nearest to the model; they sum to one
    kl: dict[str, float]  #: mean KL(predictor || model) of each, nats a token
    rest: float  #: mean KL(model || that mixture), nats a token, over the events that it allows
    #: 95% interval of each weight, from resampling documents; only of two predictors, and of enough documents
    interval: dict[str, tuple[float, float]] = field(default_factory=dict)


def strategy(
    model: DistributionModel,
    predictors: Mapping[str, Truth],
    documents: Sequence[Sequence[str]],
    lengths: LengthRange | None = None,
    *,
    seed: int = DEFAULT_SEED,
) -> Strategy:
    """The mixture of some exact predictors that is nearest to a model, at every position of some documents.

    Weights minimise the mean KL(model || mixture) over positions, which has one minimum (unless two predictors are the
    same). Call it for each snapshot of a model to see what it learns when.

    Args:
        model: causal, of whole words, with full distributions.
        predictors: by name, such as the pool that the documents are from and its generating prior.
        documents: any that every predictor can make.
        lengths: the condition on the words of a document, of all predictors.
        seed: of the resampling.

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
        _intervals(tuple(predictors), exact, q, documents, seed),
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
    if len(exact) == 2:
        first = _nearest_of_two(exact, q)
        return np.array([first, 1.0 - first])
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


def _nearest_of_two(exact: FloatArray, q: FloatArray) -> float:
    """The weight of the first where the slope is 0, or an end; expectation maximisation is slow near 0 and 1."""

    def slope(weight: float) -> float:
        return float(_slope(exact, q, weight).sum())

    if slope(0.0) <= 0.0:
        return 0.0
    return 1.0 if slope(1.0) >= 0.0 else float(brentq(slope, 0.0, 1.0, xtol=ENOUGH))


def _intervals(
    names: tuple[str, ...], exact: FloatArray, q: FloatArray, documents: Sequence[Sequence[str]], seed: int
) -> dict[str, tuple[float, float]]:
    """Percentiles of the weights of two predictors, with documents drawn again; empty where there are none."""
    if len(names) != 2 or too_few(len(documents)):
        return {}
    lengths = np.array([len(document) + 1 for document in documents])
    drawn = _crossings(resampled_sums(_slopes(exact, q, np.cumsum(lengths) - lengths), seed=seed))
    low, high = (float(end) for end in np.percentile(drawn, [2.5, 97.5], method="inverted_cdf"))
    return {names[0]: (low, high), names[1]: (1.0 - high, 1.0 - low)}


def _slope(exact: FloatArray, q: FloatArray, weight: float) -> FloatArray:
    """Derivative of the sum of q ln(mixture) at each position by the weight of the first of two predictors, (T,)."""
    first, second = exact
    mixture = np.maximum(second + weight * (first - second), LEAST)
    return np.asarray((q * (first - second) / mixture).sum(axis=1))


def _slopes(exact: FloatArray, q: FloatArray, starts: IntArray) -> FloatArray:
    """`_slope` summed over each document, at the weights of `GRID`, (D, G).

    It falls with the weight; the sum over documents is 0 at the weight that is nearest to the model.

    Args:
        exact: (2, T, E) probabilities of the predictors.
        q: (T, E) of the model.
        starts: (D,) first position of each document.
    """
    slopes = [_slope(exact, q, w) for w in GRID.tolist()]
    return np.asarray(np.add.reduceat(np.stack(slopes, axis=1), starts, axis=0))


def _crossings(slopes: FloatArray) -> FloatArray:
    """Weight at which each row of slopes, (R, G), is 0; 0 or 1 where it is so nowhere, (R,)."""
    above = (slopes > 0.0).sum(axis=1)
    at = np.clip(above, 1, len(GRID) - 1)
    rows = np.arange(len(slopes))
    before, after = slopes[rows, at - 1], slopes[rows, at]
    fall = np.where(before > after, before - after, 1.0)
    inside = GRID[at - 1] + np.clip(before / fall, 0.0, 1.0) * (GRID[at] - GRID[at - 1])
    return np.where(above == 0, 0.0, np.where(above == len(GRID), 1.0, inside))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class DocumentReading(ResultRecords):
    """Result of `documents_read` for one model."""

    model: str
    objective: str
    scores: dict[str, Score]  #: of all positions
    tables: dict[str, dict[str, dict[str, Score]]]  #: by ``string`` and ``position``, and by group of these
    contexts: int  #: positions that were compared
    impossible: IntArray  #: documents that the truth cannot make
    told: bool  #: whether the language of each document is known, so that there is a regret

    def records(self) -> list[dict[str, Any]]:
        """One record a number, for JSON; those of tables have ``by`` and ``group`` as well."""
        head = {"model": self.model, "objective": self.objective}
        records = [{**head, **score.as_record()} for score in self.scores.values()]
        for by, groups in self.tables.items():
            for group, scores in groups.items():
                records += [{**head, "by": by, "group": group, **score.as_record()} for score in scores.values()]
        return records


def documents_read(model: DistributionModel, setting: Setting, *, family: Truth | None = None) -> DocumentReading:
    """Compare a model with the best readers of documents, by the number of the string and by the words before.

    Means over tokens, nats, with intervals that resample documents; of all positions, and of the groups:

    * ``kl``: KL(truth || model), exact at every position; ``kl_paired``: of the tokens that stand there alone.
    * ``entropy``: of the language, given the words before, and ``regret``: what it costs not to be told the language,
      see `what_is_known`. The first needs a pool, the second its corpus, too.
    * ``kl_family``: KL(family || model), and ``family_above``: what a reader of the family loses to the truth.

    ``weight_truth`` and ``weight_family`` are those of the mixture of both that is nearest to the model, see
    `strategy`, and ``rest`` is how far that is from the model.

    Args:
        model: causal, of whole words, with full distributions.
        setting: documents and their truth. Every position counts, whatever the frame.
        family: the distribution that the languages were drawn from.

    Raises:
        InputError: the truth is none of documents, or the family is the same or cannot make one of them.
        NothingToMeasureError: the model is masked.
    """
    truth = setting.known
    if not isinstance(truth, DocumentProcess):
        raise InputError(
            f"evaluate documents needs a truth of documents, which {truth.identity} is not; sample a corpus of pool,"
            " dirichlet-markov, dirichlet-automaton or context-tree",
            code="missing-ability",
        )
    if family is not None and family.identity == truth.identity:
        raise InputError(f"the family {family.identity} is the truth itself; leave the family out")
    check_sentences(setting.sentences)
    if model.objective != "causal":
        raise NothingToMeasureError(
            "only a causal model learns from the words before alone; give a causal one", "masked"
        )
    require_tokens(setting.transform, "causal", "the reading of documents")
    oracle = setting.full_oracle(model)
    whole = measure_contexts(model, oracle, setting.sentences, top=1)
    kept = np.delete(np.arange(len(setting.sentences)), whole.excluded)
    documents = [setting.sentences[i] for i in kept.tolist()]
    shared = signed_parts(whole, oracle, setting)
    columns = _columns_of_truth(whole)
    languages = _languages(setting, truth)
    if languages is not None:
        known = what_is_known(truth, documents, languages[kept], setting.lengths)
        columns["entropy"] = Column(known.entropy, {"unit": "nats"})
        columns["regret"] = Column(known.regret, {"unit": "nats/token", "estimator": "paired"})
    elif truth.languages is not None:
        columns["entropy"] = Column(_entropies(truth.posterior(documents)), {"unit": "nats"})
    more: dict[str, Score] = {}
    if family is not None:
        columns |= _columns_of_family(model, family, whole, documents, setting)
        more = _weights(model, {TRUTH: truth, FAMILY: family}, documents, setting, shared)
    string = _strings(documents)
    groups = {"string": [str(n + 1) for n in range(int(string.max()) + 1)], "position": _bands(whole.position)}
    keys = {"string": string, "position": _band(whole.position)}
    return DocumentReading(
        model=model.name,
        objective=model.objective,
        scores=mean_scores(columns, whole.sentence, shared, setting.seed) | more,
        tables={
            by: _by(columns, whole.sentence, keys[by], groups[by], {**shared, "by": by}, setting.seed) for by in keys
        },
        contexts=len(whole.values),
        impossible=whole.excluded,
        told=languages is not None,
    )


_NATS: dict[str, object] = {"unit": "nats/token", "contexts-of": "truth", "may": "infinite"}


def _columns_of_truth(whole: Contexts) -> dict[str, Column]:
    return {
        "kl": Column(whole.column("kl"), {**_NATS, "estimator": "rao-blackwell"}),
        "kl_paired": Column(whole.truth - whole.model, {**_NATS, "estimator": "paired"}),
    }


def _columns_of_family(
    model: DistributionModel, family: Truth, whole: Contexts, documents: Sequence[Sequence[str]], setting: Setting
) -> dict[str, Column]:
    """How far the model is from the family, and the family from the truth, at the positions of ``whole``."""
    oracle = Setting(family, documents, setting.lengths).full_oracle(model)
    try:
        second = measure_contexts(model, oracle, documents, top=1)
        lost = len(second.excluded)
    except NothingToMeasureError:
        lost = len(documents)
    if lost:
        raise InputError(
            f"the family {family.identity} cannot make {lost:,} of {len(documents):,} documents; give it the words and"
            " the number of strings of the pool"
        )
    parts = {"unit": "nats/token", "family": family.identity}
    return {
        "kl_family": Column(second.column("kl"), {**_NATS, **parts, "estimator": "rao-blackwell"}),
        "family_above": Column(whole.truth - second.truth, {**parts, "estimator": "paired"}),
    }


def _weights(
    model: DistributionModel,
    predictors: Mapping[str, Truth],
    documents: Sequence[Sequence[str]],
    setting: Setting,
    shared: Mapping[str, object],
) -> dict[str, Score]:
    """The weights of truth and family, and what the mixture leaves."""
    found = strategy(model, predictors, documents, setting.lengths, seed=setting.seed)
    ci = ci_part(len(documents), setting.seed, "document", method="percentile")
    parts = {**shared, "family": predictors[FAMILY].identity}
    share = signature({**parts, "unit": "share", "ci": ci})
    none: tuple[None, None] = (None, None)
    scores = {
        f"weight_{name}": Score(f"weight_{name}", weight, share, *found.interval.get(name, none))
        for name, weight in found.weight.items()
    }
    return {**scores, "rest": Score("rest", found.rest, signature({**parts, "unit": "nats/token"}))}


def _languages(setting: Setting, truth: DocumentProcess) -> IntArray | None:
    """Number of the language of each document; None where none is known, or it changes within a document."""
    folder, split = setting.source or (Path(), "")
    if truth.languages is None or truth.predictor.switch > 0.0 or not (folder / "record.json").is_file():
        return None
    corpus = Corpus.load(folder)
    return corpus.languages(split)[: len(setting.sentences)] if corpus.grammar_digest == truth.digest else None


def _band(position: IntArray) -> IntArray:
    """Number of the band of each position: 0, 1, 2 to 3, 4 to 7 and so on."""
    return np.asarray(np.frexp(position)[1], dtype=np.int64)


def _bands(position: IntArray) -> list[str]:
    """Names of the bands up to that of the last position."""
    ends = [(2**k // 2, 2**k - 1) for k in range(int(_band(position).max()) + 1)]
    return [str(low) if low == high else f"{low}-{high}" for low, high in ends]


def _by(
    columns: Mapping[str, Column],
    document: IntArray,
    key: IntArray,
    names: Sequence[str],
    shared: Mapping[str, object],
    seed: int,
) -> dict[str, dict[str, Score]]:
    """Means of the measures in each group that has a position."""
    found = {}
    for number in np.unique(key).tolist():
        at = key == number
        some = {name: Column(column.values[at], column.parts) for name, column in columns.items()}
        parts = {**shared, "group": names[number], "contexts": int(at.sum())}
        found[names[number]] = mean_scores(some, document[at], parts, seed)
    return found
