"""Probabilities of words under models of pieces, summed over the segmentations of each word.

If pieces mark the beginnings of words, only the next piece shows that a word has ended (Pimentel & Meister
2024; Oh & Schuler 2024). With w_1..w_t the words so far and B the probability that the next piece begins a word or that
the text ends the text::

    S_t = sum over segmentations of w_1..w_t of P(segmentation) * B(segmentation)       p(w_t | w_1..w_{t-1}) = S_t /
    S_{t-1}       S_0 = 1 p(end | w_1..w_T) = P(D) / S_T

S_0 is 1, so log probabilities of words and end add up to log P(D). At any later place, the probabilities of all
words and of the end sum to 1. B excludes the probability of special tokens. If the mark ends words, B is 1.
With only T* instead of the sum, words and end add up to log P(T*), and the probabilities of words sum to less
than 1. If segmentations of a text do not fit the model's window, the sums are over the prefixes of segmentations
that do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.exclusion import Exclusion, disjoint_part
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.core.transformed import transform_parts
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratios
from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Document, check_window, every_segmentation_fits
from truesource.evaluation.tokenisation.estimators.blocks import word_ends
from truesource.evaluation.tokenisation.estimators.sequential import discrete_filter
from truesource.evaluation.tokenisation.estimators.weights import check_numbers, extend, log_sum
from truesource.evaluation.tokenisation.lattice import arc_ends, count_paths
from truesource.evaluation.tokenisation.results import Evaluation, numbered, seed_of
from truesource.generator.language_model import ScoringFrame
from truesource.generator.piece_model import IncrementalScorer, PieceInventory, TokenisedModel
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords, track
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth


@dataclass(frozen=True)
class WordProbabilities:
    """The log probabilities of the words of one text, each given the words before it."""

    words: tuple[str, ...]  #: (W,) in the spelling of the tokeniser, without marks
    log_p: FloatArray  #: (W,) nats; minus these are surprisals
    log_end: float | None  #: log probability of the end of the text, nats; None: the model has no end
    exact: bool  #: True if all segmentations were summed


def word_log_probs(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> WordProbabilities:
    """Compute the log probability of every word given the words before it, summed over all their segmentations.

    Args:
        model: model of pieces.
        document: text split at white space: no piece reaches from one word into the next.
        settings: settings of the discrete particle filter that sums over segmentations; ``candidates`` segmentations of
            a word are listed, and one more is sampled if ``tail``. If none is excluded, values are exact. Sums of
            ``replicates`` filters are averaged before their ratios are taken.

    Raises:
        InputError: a piece reaches from one word into the next, the model gives the text probability zero or its
            window is too short for the segmentations.
    """
    inventory, has_end = model.pieces.inventory, model.around[1] > 0
    fits = every_segmentation_fits(model, document)
    filters = discrete_filter(model, document, settings)
    walk, log_filters = filters.walk, math.log(filters.filters)
    boundary = _Boundary(walk.scorer, inventory, has_end=has_end)
    ends = _word_ends(document, inventory)
    sums = [0.0]
    for end, particles in zip(walk.blocks.ends, filters.run(), strict=True):
        if end not in ends:
            continue
        if (particles.position != end).any():
            raise _no_words()
        sums.append(log_sum(particles.log_w + boundary(particles.context)) - log_filters)
        if sums[-1] == -math.inf:
            if fits:
                raise _impossible()
            raise InputError(
                "all explored prefixes of segmentations are longer than the model reads, or have probability"
                " zero; divide the text, or raise --particles"
            )
    total = log_sum(particles.log_w + walk.score_ends(particles.context)) - log_filters
    return WordProbabilities(
        _words(document, inventory, ends),
        np.diff(sums),
        total - sums[-1] if has_end else None,
        fits and walk.whole and not filters.reduced,
    )


def canonical_log_probs(model: TokenisedModel, document: Document) -> WordProbabilities:
    """Compute the log probability of every word given the words before it, only in the canonical tokenisation.

    This is the usual score of models of pieces, with the same treatment of what follows a word.

    Args:
        model: model of pieces.
        document: text split at white space.

    Raises:
        InputError: a piece reaches from one word into the next, the model gives the segmentation probability zero or
            its window is too short for it.
    """
    check_window(model, document)
    scorer, inventory = model.incremental_scorer(), model.pieces.inventory
    ends = _word_ends(document, inventory)
    contexts, log_p = _read_canonical(scorer, document, inventory.ids, ends)
    sums = np.append(0.0, log_p[1:] + _Boundary(scorer, inventory, has_end=model.around[1] > 0)(contexts[1:]))
    last = float((log_p[-1:] + scorer.log_end(contexts[-1:]))[0])
    check_numbers(np.append(sums, last))
    if not (np.isfinite(sums).all() and math.isfinite(last)):
        raise _impossible()
    return WordProbabilities(
        _words(document, inventory, ends),
        np.diff(sums),
        last - float(sums[-1]) if model.around[1] else None,
        count_paths(document.lattice) == 1,
    )


class _Boundary:
    """The log probability (P,) that the next piece begins a word or that the text ends."""

    def __init__(self, scorer: IncrementalScorer, inventory: PieceInventory, *, has_end: bool) -> None:
        self._scorer, self._has_end = scorer, has_end
        self._opening = None
        if not inventory.marker_ends:
            self._opening = inventory.ids[[piece.startswith(inventory.marker) for piece in inventory.pieces]]

    def __call__(self, contexts: IntArray) -> FloatArray:
        if self._opening is None or not len(contexts):
            return np.zeros(len(contexts))
        places, of = np.unique(contexts, return_inverse=True)
        log_p = self._scorer.log_any(places, self._opening)
        if self._has_end:
            log_p = np.logaddexp(log_p, self._scorer.log_end(places))
        return log_p[of.reshape(-1)]


def _word_ends(document: Document, inventory: PieceInventory) -> list[int]:
    return word_ends(document.lattice.spelling, inventory.marker, marker_ends=inventory.marker_ends)


def _words(document: Document, inventory: PieceInventory, ends: Sequence[int]) -> tuple[str, ...]:
    """Return the spellings of words without marks, (W,)."""
    return tuple(
        inventory.readable(document.lattice.spelling[low:high]).strip(inventory.marker)
        for low, high in itertools.pairwise([0, *ends])
    )


def _read_canonical(
    scorer: IncrementalScorer, document: Document, ids: IntArray, ends: Sequence[int]
) -> tuple[IntArray, FloatArray]:
    """Return contexts before and after each canonical word (W+1,), and log P of all pieces before."""
    arcs = document.best
    context, total = np.array([scorer.begin()]), 0.0
    contexts, sums = [int(context[0])], [0.0]
    whole = set(ends)
    for token, stop in zip(ids[document.lattice.piece[arcs]], arc_ends(document.lattice)[arcs].tolist(), strict=True):
        total += float(scorer.log_prob(context, token[None])[0])
        context = extend(scorer, context, token[None])
        if stop in whole:
            contexts.append(int(context[0]))
            sums.append(total)
    if len(contexts) != len(ends) + 1:
        raise _no_words()
    return np.array(contexts), np.array(sums)


def _impossible() -> InputError:
    return InputError("the model gives the text probability zero, so its words have no probabilities")


def _no_words() -> InputError:
    return InputError(
        "a piece reaches from one word into the next, so words are not segmented separately and have no probabilities"
    )


@dataclass(frozen=True, eq=False, repr=False)
class WordTable(ResultRecords):
    """A table with a row for each word, in the order of the texts."""

    model: str
    #: columns by name, (W,) each: ``document``, number of the text in the input, from 0; ``position`` in it, from 0;
    #: ``word``, as the tokeniser spells it; ``surprisal`` in the canonical tokenisation, nats; ``surprisal_marginal``,
    #: summed over all segmentations of it and of earlier words; with a grammar ``surprisal_truth``, None if the
    #: grammar gives the text probability 0
    columns: Mapping[str, Sequence[Any]]
    scores: Mapping[str, Score]  #: see `word_surprisals`

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each word, with all columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]

    @override
    def as_scores(self) -> list[Score]:
        """Return all scores; ``words``: number of words in the mean."""
        n = len(self.columns["word"])
        n_with_truth = n - sum(value is None for value in self.columns.get("surprisal_truth", ()))
        words = {"surprisal_truth": n_with_truth, "surprisal_excess": n_with_truth}
        return [score.at(model=self.model, words=words.get(name, n)) for name, score in self.scores.items()]


def word_surprisals(
    model: TokenisedModel,
    evaluation: Evaluation,
    settings: EstimatorSettings,
    *,
    truth: Truth | None = None,
    lengths: LengthRange | None = None,
    excluded: Exclusion | None = None,
    seed: int = DEFAULT_SEED,
) -> WordTable:
    """Compute the surprisal of every word given the words before it (Pimentel & Meister 2024; Oh & Schuler 2024).

    Scores, means per word with intervals of a document bootstrap: ``surprisal`` in the canonical tokenisation,
    ``surprisal_marginal`` over all segmentations, ``surprisal_difference``, the first less the second; with a truth
    also ``surprisal_truth`` and ``surprisal_excess``, the marginal surprisal less the true one, over the texts that the
    grammar can generate and the tokeniser does not alter. Scores do not include the end of a text.

    Args:
        model: model of pieces.
        evaluation: evaluation whose documents are read.
        settings: settings of the particle filter that sums over segmentations, see
            `evaluation.tokenisation.words.word_log_probs`.
        truth: grammar that the texts, one sentence each, were sampled from.
        lengths: length condition of the truth.
        excluded: sentences that the texts and the truth exclude.
        seed: seed of the bootstrap.

    Raises:
        InputError: pieces reach from one word into the next, so that words have no separate surprisals; or see
            `truesource.evaluation.tokenisation.words.word_log_probs`.
    """
    exact = _exact(evaluation.documents, truth, lengths, excluded)
    numbers: list[int] = []
    words: list[str] = []
    canonical: list[FloatArray] = []
    marginal: list[FloatArray] = []
    true: list[FloatArray] = []
    whole = 0
    pairs = zip(evaluation.numbers.tolist(), evaluation.documents, strict=True)
    for row, (number, document) in enumerate(track(pairs, "surprisals of words, by text", len(evaluation.documents))):
        with numbered(number):
            one = canonical_log_probs(model, document)
            probabilities = word_log_probs(model, document, replace(settings, seed=seed_of(settings.seed, number)))
        whole += probabilities.exact
        numbers += [number] * len(probabilities.words)
        words += probabilities.words
        canonical.append(-one.log_p)
        marginal.append(-probabilities.log_p)
        truths = exact.get(row)
        true.append(truths if truths is not None and len(truths) == len(one.log_p) else np.full(len(one.log_p), np.nan))
    parts = _signed_parts(evaluation, settings, whole, seed)
    if truth is not None:
        parts |= {"grammar": truth.identity, "given": lengths or "none", **transform_parts(truth, None, "causal")}
        parts |= disjoint_part(excluded)
    columns: dict[str, Sequence[Any]] = {
        "document": numbers,
        "position": [position for row in canonical for position in range(len(row))],
        "word": words,
        "surprisal": np.concatenate(canonical).tolist(),
        "surprisal_marginal": np.concatenate(marginal).tolist(),
    }
    if truth is not None:
        columns["surprisal_truth"] = [None if value != value else value for value in np.concatenate(true).tolist()]
    means = _columns(canonical, marginal, None if truth is None else true)
    return WordTable(model.name, columns, _means(means, signature(parts), seed))


def _columns(
    canonical: Sequence[FloatArray], marginal: Sequence[FloatArray], true: Sequence[FloatArray] | None
) -> dict[str, Sequence[FloatArray]]:
    """Return surprisals of the words of each text, and their differences, by name of the score."""
    columns = {
        "surprisal": canonical,
        "surprisal_marginal": marginal,
        "surprisal_difference": [one - every for one, every in zip(canonical, marginal, strict=True)],
    }
    if true is not None:
        columns["surprisal_truth"] = true
        columns["surprisal_excess"] = [every - true_value for every, true_value in zip(marginal, true, strict=True)]
    return columns


def _signed_parts(evaluation: Evaluation, settings: EstimatorSettings, exact: int, seed: int) -> dict[str, object]:
    return {
        **evaluation.parts,
        "estimator": "words/dpf",
        **{key: getattr(settings, key) for key in ("b", "seed", "candidates", "particles", "tail", "replicates")},
        "exact": exact,
        "eos": "out",
        "unit": "nats/word",
        "ci": ci_part(len(evaluation.documents), seed, "document"),
    }


def _exact(
    documents: Sequence[Document], truth: Truth | None, lengths: LengthRange | None, excluded: Exclusion | None
) -> dict[int, FloatArray]:
    """Compute surprisals of words under the grammar, nats, by document; exclude documents of probability 0."""
    if truth is None:
        return {}
    rows = [row for row, document in enumerate(documents) if not document.text.altered]
    sentences = [documents[row].text.original.split() for row in rows]
    scores = Oracle(truth, lengths=lengths, excluded=excluded).score(sentences, ScoringFrame(eos=False))
    bounds = np.searchsorted(scores.sentence, np.arange(len(rows) + 1))
    surprisals = {row: -scores.log_prob[bounds[i] : bounds[i + 1]] for i, row in enumerate(rows)}
    for i in scores.impossible.tolist():
        del surprisals[rows[i]]
    return surprisals


def _means(columns: Mapping[str, Sequence[FloatArray]], signed: str, seed: int) -> dict[str, Score]:
    """Compute means over all words that have a value."""
    total = np.array([[np.nansum(values) for values in rows] for rows in columns.values()]).T
    count = np.array([[np.isfinite(values).sum() for values in rows] for rows in columns.values()], dtype=np.float64).T
    intervals = resampled_ratios(total, count, seed=seed)
    return {
        name: Score(name, float(total[:, i].sum() / count[:, i].sum()), signed, *ends(*intervals[:, i]))
        for i, name in enumerate(columns)
        if count[:, i].any()
    }
