"""Surprisals of the words of texts: with one segmentation, over all segmentations, and of the truth, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from truesource.evaluation.core.exclusion import Exclusion, disjoint_part
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.core.transformed import transform_parts
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratios
from truesource.evaluation.tokenisation.estimators.estimate import Document
from truesource.evaluation.tokenisation.results import Evaluation
from truesource.evaluation.tokenisation.run_estimators import numbered, seed_of
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.evaluation.tokenisation.words import canonical_log_probs, word_log_probs
from truesource.generator.language_model import ScoringFrame, TokenisedModel
from truesource.grammar.conditioning import DEFAULT_SEED, LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.printable import track


@dataclass(frozen=True, eq=False, kw_only=True)
class WordTable:
    """One row a word, in the order of the texts."""

    model: str
    document: tuple[int, ...]  #: (W,) number of the text among those given, from 0
    position: tuple[int, ...]  #: (W,) in its text, from 0
    word: tuple[str, ...]  #: (W,) as the tokeniser spells it
    canonical: FloatArray  #: (W,) surprisal in the canonical tokenisation, nats
    marginal: FloatArray  #: (W,) surprisal summed over its segmentations and those of the words before, nats
    #: (W,) surprisal under the grammar, nats; NaN where that cannot make the text; None: no grammar
    truth: FloatArray | None
    scores: Mapping[str, Score]  #: see `word_surprisals`

    def rows(self) -> list[dict[str, Any]]:
        """One row a word: document, position, word, surprisal (canonical), surprisal_marginal, surprisal_truth."""
        columns: dict[str, Any] = {
            "document": self.document,
            "position": self.position,
            "word": self.word,
            "surprisal": self.canonical.tolist(),
            "surprisal_marginal": self.marginal.tolist(),
        }
        if self.truth is not None:
            columns["surprisal_truth"] = [None if value != value else value for value in self.truth.tolist()]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def records(self) -> list[dict[str, Any]]:
        """One record a score, for JSON; ``words``: how many it is the mean of."""
        known = len(self.word) if self.truth is None else int(np.isfinite(self.truth).sum())
        words = {"surprisal_truth": known, "surprisal_excess": known}
        return [
            {"model": self.model, "words": words.get(name, len(self.word)), **score.as_record()}
            for name, score in self.scores.items()
        ]


def word_surprisals(
    model: TokenisedModel,
    evaluation: Evaluation,
    settings: EstimatorSettings,
    *,
    truth: PCFG | None = None,
    lengths: LengthRange | None = None,
    excluded: Exclusion | None = None,
    seed: int = DEFAULT_SEED,
) -> WordTable:
    """Surprisal of every word given those before it (Pimentel & Meister 2024; Oh & Schuler 2024).

    Scores, means of a word with intervals of a document bootstrap: ``surprisal`` in the canonical tokenisation,
    ``surprisal_marginal`` over all segmentations, ``surprisal_difference``, the first less the second; with a truth
    also ``surprisal_truth`` and ``surprisal_excess``, the marginal one less that of the truth, over the texts that the
    grammar can make and the tokeniser does not alter. The end of a text is in none of them.

    Args:
        model: of pieces.
        evaluation: whose documents are read.
        settings: of the particle filter that sums over segmentations, see
            `evaluation.tokenisation.words.word_log_probs`.
        truth: grammar that the texts, a sentence each, were drawn from.
        lengths: its length condition.
        excluded: sentences that the texts leave out, and so does the truth.
        seed: of the bootstrap.

    Raises:
        InputError: pieces reach from one word into the next, so that words have no surprisals of their own; or as
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
            own = canonical_log_probs(model, document)
            found = word_log_probs(model, document, replace(settings, seed=seed_of(settings.seed, number)))
        whole += found.exact
        numbers += [number] * len(found.words)
        words += found.words
        canonical.append(-own.log_p)
        marginal.append(-found.log_p)
        known = exact.get(row)
        true.append(known if known is not None and len(known) == len(own.log_p) else np.full(len(own.log_p), np.nan))
    parts = _signed_parts(evaluation, settings, whole, seed)
    if truth is not None:
        parts |= {"grammar": truth.identity, "given": lengths or "none", **transform_parts(truth, None, "causal")}
        parts |= disjoint_part(excluded)
    return WordTable(
        model=model.name,
        document=tuple(numbers),
        position=tuple(position for row in canonical for position in range(len(row))),
        word=tuple(words),
        canonical=np.concatenate(canonical),
        marginal=np.concatenate(marginal),
        truth=np.concatenate(true) if truth is not None else None,
        scores=_means(_columns(canonical, marginal, None if truth is None else true), signature(parts), seed),
    )


def _columns(
    canonical: Sequence[FloatArray], marginal: Sequence[FloatArray], true: Sequence[FloatArray] | None
) -> dict[str, Sequence[FloatArray]]:
    """Surprisals of the words of each text, and their differences, by the name of the score."""
    columns = {
        "surprisal": canonical,
        "surprisal_marginal": marginal,
        "surprisal_difference": [one - every for one, every in zip(canonical, marginal, strict=True)],
    }
    if true is not None:
        columns["surprisal_truth"] = true
        columns["surprisal_excess"] = [every - known for every, known in zip(marginal, true, strict=True)]
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
    documents: Sequence[Document], truth: PCFG | None, lengths: LengthRange | None, excluded: Exclusion | None
) -> dict[int, FloatArray]:
    """Surprisals of words under the grammar, nats, by place of the document; those that it cannot make are left out."""
    if truth is None:
        return {}
    rows = [row for row, document in enumerate(documents) if not document.text.altered]
    sentences = [documents[row].text.original.split() for row in rows]
    scores = Oracle(truth, lengths=lengths, excluded=excluded).score(sentences, ScoringFrame(eos=False))
    bounds = np.searchsorted(scores.sentence, np.arange(len(rows) + 1))
    found = {row: -scores.log_prob[bounds[i] : bounds[i + 1]] for i, row in enumerate(rows)}
    for i in scores.impossible.tolist():
        del found[rows[i]]
    return found


def _means(columns: Mapping[str, Sequence[FloatArray]], signed: str, seed: int) -> dict[str, Score]:
    """Means over all words that have a value."""
    total = np.array([[np.nansum(values) for values in rows] for rows in columns.values()]).T
    count = np.array([[np.isfinite(values).sum() for values in rows] for rows in columns.values()], dtype=np.float64).T
    intervals = resampled_ratios(total, count, seed=seed)
    return {
        name: Score(name, float(total[:, i].sum() / count[:, i].sum()), signed, *ends(*intervals[:, i]))
        for i, name in enumerate(columns)
        if count[:, i].any()
    }
