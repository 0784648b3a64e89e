"""How much of P(D) is the canonical tokenisation, for whole texts and word by word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratios
from truesource.evaluation.tokenisation.builder import LatticeBuilder
from truesource.evaluation.tokenisation.documents import Documents
from truesource.evaluation.tokenisation.estimators.estimate import Document
from truesource.evaluation.tokenisation.n_best import n_best
from truesource.evaluation.tokenisation.results import Evaluation
from truesource.evaluation.tokenisation.token_scores import continued_log_probs
from truesource.evaluation.tokenisation.window import reader, window_part
from truesource.generator.language_model import TokenisedModel
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import track

LISTED = 5  #: segmentations that a record lists
BEYOND = 10.0  #: times the usual rounding, which none is


@dataclass(frozen=True, eq=False)
class CanonicalMass:
    """P(T*)/P(D), the probability that a text is segmented as the tokeniser segments it, given the text."""

    model: str
    run: str  #: label of the run that estimated P(D)
    share: FloatArray  #: (N,) of each document, in (0, 1]; 1 where the estimate of P(D) is below P(T*)
    capped: int  #: documents whose estimate of P(D) was below P(T*), beyond rounding, which is certainly too low
    scores: dict[str, Score]  #: see `canonical_mass`

    def records(self) -> list[dict[str, Any]]:
        """One record a score, for JSON."""
        head = {"model": self.model, "run": self.run}
        return [{**head, **score.as_record()} for score in self.scores.values()]


def canonical_mass(evaluation: Evaluation, run: str, *, seed: int = DEFAULT_SEED) -> CanonicalMass:
    """Share of the canonical tokenisation in the sum over all segmentations (Vieira et al. 2025; Chirkova et al. 2023).

    Scores: ``canonical_mass``, the mean over documents of P(T*)/P(D), which shrinks with the length of documents;
    ``canonical_mass_per_word``, the share to the power of 1 over the number of words, pooled:
    ``exp(-sum of gaps / sum of words)``; ``canonical_capped``, the share of documents with an estimate of P(D) below
    P(T*) by more than rounding, ten times what is the rule. Intervals are of a document bootstrap.

    Args:
        evaluation: with the run.
        run: label of the run whose P(D) counts. A lower bound makes shares too large.
        seed: of the bootstrap.
    """
    gap = evaluation.log_p(run) - evaluation.one_best
    capped = gap < -BEYOND * evaluation.rounding * np.abs(evaluation.one_best)
    gap = np.maximum(gap, 0.0)
    share = np.exp(-gap)
    ones = np.ones(len(gap))
    total = np.stack([share, gap, capped.astype(np.float64)], axis=1)
    count = np.stack([ones, evaluation.words, ones], axis=1)
    intervals = np.clip(resampled_ratios(total, count, seed=seed), 0.0, [1.0, np.inf, 1.0])
    value = total.sum(axis=0) / count.sum(axis=0)
    value[1], intervals[:, 1] = np.exp(-value[1]), np.exp(-intervals[::-1, 1])
    signed = evaluation.signed(
        run, bound=evaluation.total(run).bound, unit="share", ci=ci_part(len(gap), seed, "document")
    )
    names = ("canonical_mass", "canonical_mass_per_word", "canonical_capped")
    scores = {name: Score(name, float(value[i]), signed, *ends(*intervals[:, i])) for i, name in enumerate(names)}
    return CanonicalMass(evaluation.model, run, share, int(capped.sum()), scores)


@dataclass(frozen=True)
class LocalCanonicality:
    """How the canonical tokenisation of a word compares with its other segmentations, given the text before it."""

    model: str
    words: int  #: that were compared: those with more than one segmentation
    scores: dict[str, Score]  #: see `local_canonicality`; empty where no word has two segmentations
    most_likely: dict[str, dict[tuple[str, ...], int]]  #: by word: how often each other segmentation was best

    def records(self) -> list[dict[str, Any]]:
        """One record a score, for JSON; ``instead``: the segmentations most often more probable, and how often."""
        found = [{"model": self.model, "compared": self.words, **score.as_record()} for score in self.scores.values()]
        others = [(" ".join(cut), times) for cuts in self.most_likely.values() for cut, times in cuts.items()]
        others.sort(key=lambda other: (-other[1], other[0]))
        return [{**record, "instead": others[:LISTED]} for record in found]


def local_canonicality(
    model: TokenisedModel,
    documents: Documents,
    builder: LatticeBuilder,
    *,
    candidates: int = 64,
    seed: int = DEFAULT_SEED,
) -> LocalCanonicality:
    """Whether the most likely segmentation of each word, given the canonical text before it, is the canonical one.

    Every word is compared with the ``candidates`` segmentations of it that Q ranks highest; P of a segmentation is that
    of its pieces, whatever follows, and zero where it does not fit the model's window. Scores, over the words with more
    than one segmentation: ``locally_canonical``, the share whose most likely segmentation is the tokeniser's;
    ``local_canonical_mass``, the mean share of the canonical tokenisation in the sum over the segmentations compared.
    Intervals are of a document bootstrap.

    Raises:
        InputError: pieces reach from one word to the next, or ``candidates`` is below 2.
    """
    if not builder.factorises:
        raise InputError("some pieces reach over white space, so words have no segmentations of their own to compare")
    if candidates < 2:
        raise InputError(f"at least 2 segmentations of a word are compared, got {candidates}")
    lists: dict[str, list[tuple[int, ...]]] = {}
    total, count = np.zeros((len(documents), 2)), np.zeros((len(documents), 2))
    most_likely: dict[str, dict[tuple[str, ...], int]] = {}
    for row, document in enumerate(
        track(documents.documents, "segmentations of words in context, by text", len(documents))
    ):
        for word, own, cuts, log_p in _in_context(model, document, builder, lists, candidates):
            best = cuts[int(np.argmax(log_p))]
            total[row] += best == own, np.exp(log_p[cuts.index(own)] - np.logaddexp.reduce(log_p))
            count[row] += 1.0
            if best != own:
                spelt = tuple(builder.inventory.pieces[piece] for piece in best)
                seen = most_likely.setdefault(word, {})
                seen[spelt] = seen.get(spelt, 0) + 1
    compared = int(count[:, 0].sum())
    scores = {}
    if compared:
        intervals = np.clip(resampled_ratios(total, count, seed=seed), 0.0, 1.0)
        value = total.sum(axis=0) / count.sum(axis=0)
        signed = signature(
            {
                "model": model.name,
                "candidates": candidates,
                "unit": "share",
                "words": compared,
                "documents": len(documents),
                "pieces": model.pieces.inventory.part,
                **window_part(model, documents.documents),
                "ci": ci_part(len(documents), seed, "document"),
                "data": digest_sentences([[document.text.original] for document in documents.documents]),
            }
        )
        for i, name in enumerate(("locally_canonical", "local_canonical_mass")):
            scores[name] = Score(name, float(value[i]), signed, *ends(*intervals[:, i]))
    return LocalCanonicality(model.name, compared, scores, most_likely)


def _in_context(
    model: TokenisedModel,
    document: Document,
    builder: LatticeBuilder,
    lists: dict[str, list[tuple[int, ...]]],
    candidates: int,
) -> list[tuple[str, tuple[int, ...], list[tuple[int, ...]], FloatArray]]:
    """Each word with several segmentations: the word, its canonical one, all compared, and their log P, nats."""
    pieces = document.lattice.piece[document.best].tolist()
    source = document.lattice.source[document.best].tolist()
    scorer = reader(model, document)
    context = scorer.begin()
    found = []
    start = at = 0
    for word in builder.words(document.text.spelling):
        end = start + len(word)
        stop = at
        while stop < len(pieces) and source[stop] < end:
            stop += 1
        own = tuple(pieces[at:stop])
        if word not in lists:
            lattice = builder.build(word)
            lists[word] = [tuple(lattice.piece[arcs].tolist()) for arcs in n_best(lattice, candidates).each()]
        cuts = lists[word] if own in lists[word] else [*lists[word], own]
        if len(cuts) > 1:
            rows = [builder.inventory.ids[list(cut)] for cut in cuts]
            log_p = np.array([row.sum() for row in continued_log_probs(scorer, context, rows)])
            if np.isfinite(log_p[cuts.index(own)]):
                found.append((word, own, cuts, log_p))
        for piece in own:
            token = builder.inventory.ids[[piece]]
            if not np.isfinite(scorer.log_prob(np.array([context]), token)[0]):
                return found
            context = int(scorer.extend(np.array([context]), token)[0])
        scorer.keep(np.array([context]))
        start, at = end, stop
    return found
