"""Canonical tokenisation: its share of P(D), for whole texts and word by word, and losses of repeated words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratios
from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import (
    Document,
    Documents,
    WithinWindow,
    most_pieces,
    reader,
    window_part,
)
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.paths import n_best, sample
from truesource.evaluation.tokenisation.results import Evaluation, check_windows, ratio_scores, seed_of
from truesource.generator.piece_model import IncrementalScorer, TokenisedModel
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import track
from truesource.grammar.support.settings import DEFAULT_SEED

LISTED = 5  #: number of segmentations in a record
BEYOND = 10.0  #: multiple of the usual rounding error that is not rounding
CASES = ("first", "same", "other")
WORDS = ("all", "multi-token")


def token_log_probs(model: TokenisedModel, rows: Sequence[IntArray]) -> list[FloatArray]:
    """Compute the log probability of each token of texts given earlier tokens, nats, without the end.

    See `continued_log_probs` for arguments. Tokens beyond the model's window have probability zero.
    """
    most = most_pieces(model)
    fit = most is None or max(map(len, rows), default=0) <= most
    scorer = model.incremental_scorer() if fit else WithinWindow.of(model)
    return continued_log_probs(scorer, scorer.begin(), rows)


def continued_log_probs(scorer: IncrementalScorer, context: int, rows: Sequence[IntArray]) -> list[FloatArray]:
    """Compute the log probability of each token of each row given a context and earlier tokens, nats.

    Rows are read in parallel, common prefixes once. After a token of probability zero, the rest of a row is not read
    and is -inf. All contexts except the given one are forgotten.

    Args:
        scorer: scorer of the model.
        context: context that all rows continue.
        rows: tokens (the model's numbers), not empty.
    """
    log_probs = [np.full(len(row), -np.inf) for row in rows]
    contexts = np.full(len(rows), context, dtype=np.int64)
    alive = np.arange(len(rows))
    for position in range(max(map(len, rows), default=0)):
        tokens = np.array([rows[i][position] for i in alive.tolist()], dtype=np.int64)
        pairs, inverse = np.unique(np.stack([contexts[alive], tokens]), axis=1, return_inverse=True)
        inverse = inverse.ravel()
        log_p = scorer.log_prob(pairs[0], pairs[1])[inverse]
        for i, value in zip(alive.tolist(), log_p.tolist(), strict=True):
            log_probs[i][position] = value
        going = np.isfinite(log_p) & np.array([len(rows[i]) > position + 1 for i in alive.tolist()])
        alive, inverse = alive[going], inverse[going]
        if len(alive):
            used, inverse = np.unique(inverse, return_inverse=True)
            contexts[alive] = scorer.extend(pairs[0][used], pairs[1][used])[inverse]
        scorer.keep(np.unique(np.append(contexts[alive], context)))
        if not len(alive):
            break
    return log_probs


def canonical_mass(evaluation: Evaluation, run: str, *, seed: int = DEFAULT_SEED) -> dict[str, Score]:
    """Compute the share of T* in the sum over all segmentations (Vieira et al. 2025; Chirkova et al. 2023).

    Scores: ``canonical_mass``, the mean over documents of P(T*)/P(D), which shrinks with the length of documents;
    ``canonical_mass_per_word``, the share to the power of 1 over the number of words, pooled:
    ``exp(-sum of gaps / sum of words)``; ``canonical_capped``, the share of documents with an estimate of P(D) below
    P(T*) by more than ten times the usual rounding. Intervals are from a document bootstrap.

    Args:
        evaluation: evaluation with the run.
        run: label of the run whose P(D) is used. A lower bound makes shares too large.
        seed: seed of the bootstrap.
    """
    gap = evaluation.log_p(run) - evaluation.one_best
    capped = gap < -BEYOND * evaluation.rounding * np.abs(evaluation.one_best)
    gap = np.maximum(gap, 0.0)
    ones = np.ones(len(gap))
    total = np.stack([np.exp(-gap), gap, capped.astype(np.float64)], axis=1)
    count = np.stack([ones, evaluation.words, ones], axis=1)
    intervals = np.clip(resampled_ratios(total, count, seed=seed), 0.0, [1.0, np.inf, 1.0])
    value = total.sum(axis=0) / count.sum(axis=0)
    value[1], intervals[:, 1] = np.exp(-value[1]), np.exp(-intervals[::-1, 1])
    signed = evaluation.signed(
        run, bound=evaluation.total(run).bound, unit="share", ci=ci_part(len(gap), seed, "document")
    )
    names = ("canonical_mass", "canonical_mass_per_word", "canonical_capped")
    return {name: Score(name, float(value[i]), signed, *ends(*intervals[:, i])) for i, name in enumerate(names)}


def local_canonicality(
    model: TokenisedModel,
    documents: Documents,
    builder: LatticeBuilder,
    *,
    candidates: int = 64,
    seed: int = DEFAULT_SEED,
) -> list[Score]:
    """Test if the most likely segmentation of each word, given the canonical text before, is canonical.

    For every word, the ``candidates`` segmentations that Q ranks highest are compared. P of a segmentation is that
    of its pieces, whatever follows, and zero if it does not fit the model's window. Scores, over the words with more
    than one segmentation: ``locally_canonical``, the share whose most likely segmentation is the tokeniser's;
    ``local_canonical_mass``, the mean share of the canonical tokenisation in the sum over the compared segmentations.
    Intervals are from a document bootstrap.

    Returns:
        Scores (empty if no word has two segmentations). ``compared``: number of words; ``instead``: the
        segmentations that are most often more probable, with counts.

    Raises:
        InputError: pieces reach from one word to the next, or ``candidates`` is below 2.
    """
    if not builder.factorises:
        raise InputError("some pieces reach over white space, so words have no separate segmentations to compare")
    if candidates < 2:
        raise InputError(f"a comparison needs at least 2 segmentations of a word, got {candidates}")
    lists: dict[str, list[tuple[int, ...]]] = {}
    total, count = np.zeros((len(documents), 2)), np.zeros((len(documents), 2))
    instead: dict[tuple[str, tuple[str, ...]], int] = {}
    for row, document in enumerate(
        track(documents.documents, "segmentations of words in context, by text", len(documents))
    ):
        for word, canonical, cuts, log_p in _in_context(model, document, builder, lists, candidates):
            best = cuts[int(np.argmax(log_p))]
            total[row] += best == canonical, np.exp(log_p[cuts.index(canonical)] - np.logaddexp.reduce(log_p))
            count[row] += 1.0
            if best != canonical:
                other = word, tuple(builder.inventory.names[piece] for piece in best)
                instead[other] = instead.get(other, 0) + 1
    compared = int(count[:, 0].sum())
    scores: list[Score] = []
    others = sorted(((" ".join(cut), times) for (_, cut), times in instead.items()), key=lambda o: (-o[1], o[0]))
    if compared:
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
        names = ("locally_canonical", "local_canonical_mass")
        columns = {name: (total[:, i], count[:, i]) for i, name in enumerate(names)}
        for score in ratio_scores(columns, signed, seed, within=(0.0, 1.0)).values():
            scores.append(score.at(model=model.name, compared=compared).with_more(instead=others[:LISTED]))
    return scores


def _in_context(
    model: TokenisedModel,
    document: Document,
    builder: LatticeBuilder,
    lists: dict[str, list[tuple[int, ...]]],
    candidates: int,
) -> list[tuple[str, tuple[int, ...], list[tuple[int, ...]], FloatArray]]:
    """Yield each ambiguous word: word, canonical segmentation, all segmentations, their log P in nats."""
    pieces = document.lattice.piece[document.best].tolist()
    source = document.lattice.source[document.best].tolist()
    scorer = reader(model, document)
    context = scorer.begin()
    compared = []
    start = at = 0
    for word in builder.words(document.text.spelling):
        end = start + len(word)
        stop = at
        while stop < len(pieces) and source[stop] < end:
            stop += 1
        canonical = tuple(pieces[at:stop])
        if word not in lists:
            lattice = builder.build(word)
            lists[word] = [tuple(lattice.piece[arcs].tolist()) for arcs in n_best(lattice, candidates).each()]
        cuts = lists[word] if canonical in lists[word] else [*lists[word], canonical]
        if len(cuts) > 1:
            rows = [builder.inventory.ids[list(cut)] for cut in cuts]
            log_p = np.array([row.sum() for row in continued_log_probs(scorer, context, rows)])
            if np.isfinite(log_p[cuts.index(canonical)]):
                compared.append((word, canonical, cuts, log_p))
        for piece in canonical:
            token = builder.inventory.ids[[piece]]
            if not np.isfinite(scorer.log_prob(np.array([context]), token)[0]):
                return compared
            context = int(scorer.extend(np.array([context]), token)[0])
        scorer.keep(np.array([context]))
        start, at = end, stop
    return compared


def caching(
    model: TokenisedModel,
    documents: Documents,
    builder: LatticeBuilder,
    settings: EstimatorSettings,
    *,
    bootstrap: int = DEFAULT_SEED,
) -> list[Score]:
    """Compute the loss of repeated words by their earlier segmentation (Cao & Rimell 2021, section 4.3, table 2).

    For each document, ``settings.samples`` segmentations are sampled from Q. A word that occurred before in its
    document counts if it is segmented (1) as one of its earlier occurrences in some sample and (2) as none of them in
    another. Its loss is minus the sum of the log probabilities of its pieces. ``same`` is the mean over the words that
    count and the samples in which they satisfy (1), ``other`` the mean over the samples in which they satisfy (2), and
    ``first`` the mean loss, over all samples, of the first occurrences of the words that count, each once. The same is
    computed for the words that the tokeniser itself segments into several pieces. Words are separated by white space,
    in the spelling of the tokeniser with white space. Intervals are from a document bootstrap.

    Args:
        model: model whose losses are computed.
        documents: texts long enough for words to recur.
        builder: builder of the lattices; it defines the words.
        settings: ``samples``, ``b`` and ``seed``.
        bootstrap: seed of the bootstrap.

    Returns:
        A record for each loss, nats per word, with keys ``words`` and ``case``; empty if no word counts.
        ``occurrences``: later occurrences segmented both as before and in another way; ``types``: word types
        among them, document by document.

    Raises:
        InputError: pieces reach from one word to the next, so that words have no separate loss; the canonical
            tokenisation of a text is longer than the window of the model.
    """
    if not builder.factorises:
        raise InputError("some pieces reach over white space, so that words have no separate pieces to compare")
    check_windows(model, documents)
    totals = np.zeros((len(documents), len(WORDS), len(CASES)))
    counts = np.zeros_like(totals)
    occurrences, types = np.zeros(len(WORDS), dtype=np.int64), np.zeros(len(WORDS), dtype=np.int64)
    impossible = 0
    pairs = zip(documents.numbers, documents.documents, strict=True)
    for row, (number, document) in enumerate(track(pairs, "losses of repeated words, by text", len(documents))):
        read = _read(model, document, builder, settings, seed_of(settings.seed, number))
        impossible += read.impossible
        for column, words in enumerate(WORDS):
            losses = read.losses(multiple=words == "multi-token")
            totals[row, column], counts[row, column] = losses[:2]
            occurrences[column] += losses[2]
            types[column] += losses[3]
    parts = _signed_parts(model, documents, settings, impossible, bootstrap)
    scores: list[Score] = []
    for column, words in enumerate(WORDS):
        total, count = totals[:, column], counts[:, column]
        if not count.sum(axis=0).all():
            continue
        signed = signature({**parts, "repeated-words": words})
        columns = {f"loss_{case}": (total[:, i], count[:, i]) for i, case in enumerate(CASES)}
        for case, score in zip(CASES, ratio_scores(columns, signed, bootstrap).values(), strict=True):
            among = {"occurrences": int(occurrences[column]), "types": int(types[column])}
            scores.append(score.at(model=model.name, words=words, case=case, **among))
    return scores


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


@dataclass(frozen=True, eq=False)
class _Sampled:
    """The words of one document in all sampled segmentations."""

    words: Sequence[str]
    canonical: Sequence[int]  #: start of the pieces of each word in T*
    forms: Sequence[Sequence[tuple[int, ...]]]  #: pieces by distinct segmentation and word
    loss: FloatArray  #: (segmentations, words) nats
    times: IntArray  #: how often each segmentation was sampled
    impossible: int

    def losses(self, *, multiple: bool) -> tuple[FloatArray, FloatArray, int, int]:
        """Sum over the words that count, by `CASES` (3,): nats, pairs of a word and a sample; occurrences; types."""
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
        return total, count, occurrences, len(types)


def _read(
    model: TokenisedModel, document: Document, builder: LatticeBuilder, settings: EstimatorSettings, seed: int
) -> _Sampled:
    """Sample segmentations of a document and score their words."""
    lattice, ids = document.lattice, model.pieces.inventory.ids
    words = builder.words(document.text.spelling)
    ends = np.array(list(itertools.accumulate(map(len, words))))
    paths = sample(lattice, settings.samples, b=settings.b, seed=seed)
    times: dict[tuple[int, ...], int] = {}
    for arcs in paths.each():
        cut = tuple(arcs.tolist())
        times[cut] = times.get(cut, 0) + 1
    cuts = [np.array(cut, dtype=np.int64) for cut in times]
    scored = token_log_probs(model, [ids[lattice.piece[cut]] for cut in cuts])
    finite_rows = [i for i, row in enumerate(scored) if np.isfinite(row).all()]
    forms: list[list[tuple[int, ...]]] = []
    loss = np.empty((len(finite_rows), len(words)))
    for row, i in enumerate(finite_rows):
        place = np.searchsorted(ends, lattice.source[cuts[i]], side="right")
        bounds = np.searchsorted(place, np.arange(len(words) + 1))
        pieces = lattice.piece[cuts[i]].tolist()
        forms.append([tuple(pieces[a:z]) for a, z in itertools.pairwise(bounds.tolist())])
        loss[row] = -np.bincount(place, scored[i], minlength=len(words))
    canonical = np.bincount(np.searchsorted(ends, lattice.source[document.best], side="right"), minlength=len(words))
    drawn_times = np.array(list(times.values()), dtype=np.int64)
    impossible = int(drawn_times.sum() - drawn_times[finite_rows].sum())
    return _Sampled(words, canonical.tolist(), forms, loss, drawn_times[finite_rows], impossible)
