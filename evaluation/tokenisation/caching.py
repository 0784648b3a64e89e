"""Whether a model recognises a word that it has read in the same text, segmented in the same way or in another."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratios
from truesource.evaluation.tokenisation.builder import LatticeBuilder
from truesource.evaluation.tokenisation.documents import Documents
from truesource.evaluation.tokenisation.estimators.estimate import Document
from truesource.evaluation.tokenisation.run_estimators import check_windows, seed_of
from truesource.evaluation.tokenisation.sampling import sample
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.evaluation.tokenisation.token_scores import token_log_probs
from truesource.evaluation.tokenisation.window import window_part
from truesource.generator.language_model import TokenisedModel
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import track

Words = Literal["all", "multi-token"]
Case = Literal["first", "same", "other"]
CASES: tuple[Case, ...] = ("first", "same", "other")
WORDS: tuple[Words, ...] = ("all", "multi-token")


@dataclass(frozen=True)
class CachingRow:
    """Mean loss of the words that count, in one of the two selections."""

    words: Words
    losses: Mapping[Case, Score]  #: nats a word; empty where no word counts
    occurrences: int  #: later occurrences that were segmented both as before and in another way
    types: int  #: different words among them, document by document


@dataclass(frozen=True)
class Caching:
    """What `caching` found."""

    model: str
    rows: tuple[CachingRow, ...]
    impossible: int  #: sampled segmentations of probability zero, or that do not fit the model's window, left out

    def records(self) -> list[dict[str, Any]]:
        """One record a loss, for JSON: ``words`` and ``case`` say which."""
        return [
            {
                "model": self.model,
                "words": row.words,
                "case": case,
                "occurrences": row.occurrences,
                "types": row.types,
                **score.as_record(),
            }
            for row in self.rows
            for case, score in row.losses.items()
        ]


def caching(
    model: TokenisedModel,
    documents: Documents,
    builder: LatticeBuilder,
    settings: EstimatorSettings,
    *,
    bootstrap: int = DEFAULT_SEED,
) -> Caching:
    """Loss of repeated words by how they were segmented before (Cao & Rimell 2021, section 4.3 and table 2).

    Of each document, ``settings.samples`` segmentations are drawn from Q. A word that occurred before in its document
    counts if it is segmented (1) as one of its earlier occurrences in some sample and (2) as none of them in another.
    Its loss is minus the sum of the log probabilities of its pieces. ``same`` is the mean over the words that count and
    the samples in which they satisfy (1), ``other`` that over those in which they satisfy (2), and ``first`` the mean
    loss, over all samples, of the first occurrences of the words that count, each once. The same for the words that the
    tokeniser itself segments into several pieces. Words are what white space divides, as the tokeniser spells them with
    it. Intervals are of a document bootstrap.

    Args:
        model: whose losses.
        documents: texts long enough for words to recur.
        builder: of the lattices; says what the words are.
        settings: ``samples``, ``b`` and ``seed``.
        bootstrap: its seed.

    Raises:
        InputError: pieces reach from one word to the next, so that words have no loss of their own; the canonical
            tokenisation of a text is longer than what the model reads.
    """
    if not builder.factorises:
        raise InputError("some pieces reach over white space, so that words have no pieces of their own to compare")
    check_windows(model, documents)
    totals = np.zeros((len(documents), len(WORDS), len(CASES)))
    counts = np.zeros_like(totals)
    occurrences, types = np.zeros(len(WORDS), dtype=np.int64), np.zeros(len(WORDS), dtype=np.int64)
    impossible = 0
    pairs = zip(documents.numbers, documents.documents, strict=True)
    for row, (number, document) in enumerate(track(pairs, "losses of repeated words, by text", len(documents))):
        found = _read(model, document, builder, settings, seed_of(settings.seed, number))
        impossible += found.impossible
        for column, words in enumerate(WORDS):
            losses = found.losses(multiple=words == "multi-token")
            totals[row, column], counts[row, column] = losses.total, losses.count
            occurrences[column] += losses.occurrences
            types[column] += losses.types
    parts = _signed_parts(model, documents, settings, impossible, bootstrap)
    rows = []
    for column, words in enumerate(WORDS):
        signed = signature({**parts, "repeated-words": words})
        scores = _mean_losses(totals[:, column], counts[:, column], signed, bootstrap)
        rows.append(CachingRow(words, scores, int(occurrences[column]), int(types[column])))
    return Caching(model.name, tuple(rows), impossible)


def _signed_parts(
    model: TokenisedModel, documents: Documents, settings: EstimatorSettings, impossible: int, bootstrap: int
) -> dict[str, object]:
    return {
        "model": model.name,
        "estimator": "wr",
        "samples": settings.samples,
        "b": f"{settings.b:g}",
        "seed": settings.seed,
        "unit": "nats/word",
        "eos": "out",
        "documents": len(documents),
        "impossible": impossible,
        "pieces": model.pieces.inventory.part,
        **window_part(model, documents.documents),
        "ci": ci_part(len(documents), bootstrap, "document"),
        "data": digest_sentences([[document.text.original] for document in documents.documents]),
    }


def _mean_losses(total: FloatArray, count: FloatArray, signed: str, seed: int) -> dict[Case, Score]:
    """Means of (D, 3) losses of the documents, by `CASES`; nothing where a case has no words."""
    if not count.sum(axis=0).all():
        return {}
    intervals = resampled_ratios(total, count, seed=seed)
    value = total.sum(axis=0) / count.sum(axis=0)
    return {
        case: Score(f"loss_{case}", float(value[i]), signed, *ends(*intervals[:, i])) for i, case in enumerate(CASES)
    }


@dataclass(frozen=True)
class _Losses:
    total: FloatArray  #: (3,) nats, by `CASES`
    count: FloatArray  #: (3,) pairs of a word and a sample
    occurrences: int
    types: int


@dataclass(frozen=True, eq=False)
class _Sampled:
    """The words of one document in all sampled segmentations."""

    words: Sequence[str]
    canonical: Sequence[int]  #: pieces of each word in T*
    forms: Sequence[Sequence[tuple[int, ...]]]  #: by distinct segmentation, by word: its pieces
    loss: FloatArray  #: (segmentations, words) nats
    times: IntArray  #: how often each segmentation was drawn
    impossible: int

    def losses(self, *, multiple: bool) -> _Losses:
        """Sums over the words that count."""
        total, count = np.zeros(3), np.zeros(3)
        before: dict[str, list[int]] = {}
        types: set[str] = set()
        occurrences = 0
        for k, word in enumerate(self.words):
            earlier = before.setdefault(word, [])
            if earlier and not (multiple and self.canonical[k] < 2):
                same = np.array([any(cut[i] == cut[k] for i in earlier) for cut in self.forms], dtype=bool)
                if same.any() and not same.all():
                    occurrences += 1
                    types.add(word)
                    for case, which in ((1, same), (2, ~same)):
                        total[case] += self.times[which] @ self.loss[which, k]
                        count[case] += self.times[which].sum()
            earlier.append(k)
        for word in types:
            total[0] += self.times @ self.loss[:, before[word][0]]
            count[0] += self.times.sum()
        return _Losses(total, count, occurrences, len(types))


def _read(
    model: TokenisedModel, document: Document, builder: LatticeBuilder, settings: EstimatorSettings, seed: int
) -> _Sampled:
    """Draw segmentations of a document and score their words."""
    lattice, ids = document.lattice, model.pieces.inventory.ids
    words = builder.words(document.text.spelling)
    ends = np.array(list(itertools.accumulate(map(len, words))))
    drawn = sample(lattice, settings.samples, b=settings.b, seed=seed)
    times: dict[tuple[int, ...], int] = {}
    for arcs in drawn.each():
        cut = tuple(arcs.tolist())
        times[cut] = times.get(cut, 0) + 1
    cuts = [np.array(cut, dtype=np.int64) for cut in times]
    scored = token_log_probs(model, [ids[lattice.piece[cut]] for cut in cuts])
    kept = [i for i, row in enumerate(scored) if np.isfinite(row).all()]
    forms: list[list[tuple[int, ...]]] = []
    loss = np.empty((len(kept), len(words)))
    for row, i in enumerate(kept):
        place = np.searchsorted(ends, lattice.source[cuts[i]], side="right")
        bounds = np.searchsorted(place, np.arange(len(words) + 1))
        pieces = lattice.piece[cuts[i]].tolist()
        forms.append([tuple(pieces[a:z]) for a, z in itertools.pairwise(bounds.tolist())])
        loss[row] = -np.bincount(place, scored[i], minlength=len(words))
    canonical = np.bincount(np.searchsorted(ends, lattice.source[document.best], side="right"), minlength=len(words))
    drawn_times = np.array(list(times.values()), dtype=np.int64)
    impossible = int(drawn_times.sum() - drawn_times[kept].sum())
    return _Sampled(words, canonical.tolist(), forms, loss, drawn_times[kept], impossible)
