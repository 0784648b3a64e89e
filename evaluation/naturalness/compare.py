"""Corpora side by side with a treebank: every measure of naturalness, each with its signature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratio
from truesource.evaluation.measures.correlation import spearman
from truesource.evaluation.measures.discrete_tests import against_exact, between
from truesource.evaluation.measures.integer_corpus import (
    Encoded,
    encode,
    expected_types,
    length_counts,
    permuted,
    with_rest,
)
from truesource.evaluation.measures.monte_carlo import ChanceTest
from truesource.evaluation.naturalness.zipf_mandelbrot import ReleasedFit, ZipfFit, fit_corpus, fit_released
from truesource.grammar.inference.exact import Variant
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords
from truesource.grammar.support.settings import DEFAULT_SEED

HIGHEST = 4  #: longest n-grams counted
SPLITS = 5  #: random draws of the sentences that n-grams are counted in
_Add = Callable[..., None]


@dataclass(frozen=True)
class Ngrams:
    """The n-grams of some corpora, each of them a code from 0 to ``types - 1``, the same in all corpora."""

    n: int
    codes: tuple[IntArray, ...]  #: for each corpus (P,), the code of every position where one starts
    sentence: tuple[IntArray, ...]  #: for each corpus (P,), the sentence of every position
    types: int

    def counts(self, corpus: int, rows: IntArray) -> IntArray:
        """Return occurrences of every n-gram in the sentences ``rows`` of a corpus, (types,)."""
        sentence = self.sentence[corpus]
        chosen = np.zeros(1 + max(int(sentence.max(initial=0)), int(rows.max(initial=0))), dtype=np.bool_)
        chosen[rows] = True
        return np.bincount(self.codes[corpus][chosen[sentence]], minlength=self.types)


@dataclass(frozen=True)
class Agreement:
    """N-grams of one sample compared with the reference's; shares are in [0, 1]."""

    spearman: float  #: rank correlation of the counts, in [-1, 1]
    shared_types: float  #: share of the sample's types that the reference has
    shared_tokens: float  #: share of the sample's n-grams whose type the reference has
    covered_types: float  #: share of the reference's types that the sample has
    covered_tokens: float  #: share of the reference's n-grams whose type the sample has


def ngrams(corpora: Sequence[Encoded], highest: int = HIGHEST) -> Iterator[Ngrams]:
    """Code the n-grams of all corpora for n = 1 to ``highest``; none crosses the end of a sentence.

    An n-gram is a pair of the code of its first n-1 words and its last word, so that two integers in one sort tell
    all n-grams apart, whatever n. Time O(n T log T), memory O(T) for T tokens.

    Args:
        corpora: encoded together.
        highest: largest n.
    """
    tokens = np.concatenate([corpus.tokens for corpus in corpora])
    left = np.concatenate([_left(corpus) for corpus in corpora])
    corpus_of = np.repeat(np.arange(len(corpora)), [len(corpus.tokens) for corpus in corpora])
    sentence = np.concatenate([corpus.sentence for corpus in corpora])
    words = max(corpus.vocabulary for corpus in corpora)
    position, codes = np.arange(len(tokens)), tokens
    for n in range(1, highest + 1):
        if n > 1:
            inside = left[position] >= n
            position = position[inside]
            _, codes = np.unique(codes[inside] * words + tokens[position + n - 1], return_inverse=True)
        ends = np.searchsorted(corpus_of[position], np.arange(len(corpora) + 1))
        parts = [slice(a, b) for a, b in pairwise(ends.tolist())]
        yield Ngrams(
            n,
            tuple(codes[part] for part in parts),
            tuple(sentence[position[part]] for part in parts),
            1 + int(codes.max(initial=-1)),
        )


def agreement(counts: IntArray, reference: IntArray, variant: Variant = "default") -> Agreement | None:
    """Compare two samples of equally many sentences; None if either has no n-gram.

    Over the union of types, n-grams that occur once in one sample and never in the other lower rho, the more the larger
    n: only the rho of two halves of the reference, of the same size, shows the attainable value.

    Args:
        counts: (types,) of the sample.
        reference: (types,) of the reference.
        variant: ``default`` ranks all types of either side; ``paper`` only the reference's, as the released
            code does, so that n-grams of the sample alone do not count against it.
    """
    if not counts.any() or not reference.any():
        return None
    ranked = reference > 0 if variant == "paper" else (counts + reference) > 0
    ours, theirs = counts > 0, reference > 0
    both = ours & theirs
    return Agreement(
        spearman(counts[ranked].astype(np.float64), reference[ranked].astype(np.float64)),
        float(np.count_nonzero(both) / np.count_nonzero(ours)),
        float(counts[both].sum() / counts.sum()),
        float(np.count_nonzero(both) / np.count_nonzero(theirs)),
        float(reference[both].sum() / reference.sum()),
    )


def _left(corpus: Encoded) -> IntArray:
    """Return tokens from each position to the end of its sentence, itself included, (T,)."""
    return np.repeat(np.cumsum(corpus.lengths), corpus.lengths) - np.arange(len(corpus.tokens))


@dataclass(frozen=True, repr=False)
class Naturalness(ResultRecords):
    """Result of `compare_naturalness`: scores for the tables, and what the figures draw."""

    reference: str  #: name of the source that the others are compared with
    scores: dict[str, dict[str, Score]]  #: by source, the reference first, and by measure
    fits: dict[str, tuple[ZipfFit, ReleasedFit | None]]  #: by source
    lengths: dict[str, IntArray]  #: by source, sentences of 0, 1, ... tokens
    exact: dict[str, FloatArray]  #: exact length pmf of the sources that have one
    variant: Variant

    @property
    def sentences(self) -> dict[str, int]:
        """Number of sentences by source."""
        return {source: int(counts.sum()) for source, counts in self.lengths.items()}

    @override
    def as_scores(self) -> list[Score]:
        return [score for source, row in self.scores.items() for score in keyed(row.values(), source=source)]


def compare_naturalness(
    sources: Mapping[str, Sequence[Sequence[str]]],
    reference: str,
    *,
    exact: Mapping[str, FloatArray] | None = None,
    variant: Variant = "default",
    seed: int = DEFAULT_SEED,
    documents: Sequence[int] | None = None,
) -> Naturalness:
    """Compare corpora with a reference, such as the held-out part of a treebank.

    Laws are fitted to, and n-grams counted in, equally many sentences of every source, and the type-token ratio is
    over equally many tokens, since all three depend on size. N-grams of a source are compared with one half of the
    reference; the reference itself with its other half, which is the value of a perfect source if halves are by
    ``documents``. Halves of sentences share the words of their documents, so they agree better. A grammar estimated
    from the reference itself would look too good: give held-out trees.

    Args:
        sources: sentences by name, the reference among them.
        reference: name of the reference.
        exact: exact length pmf (h+1,) of sources that are drawn from a grammar, h not below the longest sentence.
        variant: ``paper`` ranks the n-grams of the reference only; both fits of the law are always there.
        seed: of all that is random.
        documents: of the reference, the number of the document of each sentence; None, or one document: halves are of
            sentences.

    Raises:
        InputError: the reference is not among the sources, a source has fewer than 2 sentences or 3 different words,
            or there is nothing to compare.
    """
    if reference not in sources or len(sources) < 2:
        raise InputError(f"give the reference {reference!r} and at least one other source")
    names = [reference, *(name for name in sources if name != reference)]
    for name in names:
        if len(sources[name]) < 2:
            raise InputError(f"halves are compared, so {name!r} needs 2 sentences or more, got {len(sources[name])}")
    naturalness = Naturalness(reference, {name: {} for name in names}, {}, {}, dict(exact or {}), variant)
    corpora = dict(zip(names, encode([sources[name] for name in names]), strict=True))
    digests = {name: digest_sentences(sources[name]) for name in names}

    def add(source: str, name: str, value: float, parts: Mapping[str, object], *interval: float | None) -> None:
        data = {"data": digests[source], "reference": digests[reference], "seed": seed}
        low, high = interval or (None, None)
        naturalness.scores[source][name] = Score(name, value, signature({**parts, **data}), low, high)

    _add_sizes(corpora, add, seed)
    _add_lengths(corpora, naturalness, add, seed)
    _add_laws(corpora, naturalness, add, seed)
    _add_ngrams(corpora, variant, add, seed, documents)
    return naturalness


def _add_sizes(corpora: Mapping[str, Encoded], add: _Add, seed: int) -> None:
    """Add mean lengths, and the type-token ratio of as many tokens as the smallest source has."""
    least = min(len(corpus.tokens) for corpus in corpora.values())
    for name, corpus in corpora.items():
        total = corpus.lengths.astype(np.float64)
        interval = resampled_ratio(total, np.ones(len(corpus)), seed=seed)
        parts = {"sentences": len(corpus), "ci": ci_part(len(corpus), seed)}
        add(name, "mean_length", float(total.mean()), parts, *ends(*interval))
        types = expected_types(corpus.counts(), least)
        sizes = {"tokens": least, "rarefied-from": len(corpus.tokens), "rarefied": "exact"}
        add(name, "type_token_ratio", types / least, sizes)


def _add_lengths(corpora: Mapping[str, Encoded], naturalness: Naturalness, add: _Add, seed: int) -> None:
    """Add distances of sampled lengths to the reference's, and of the reference's to exact ones."""
    high = max(int(corpus.lengths.max()) for corpus in corpora.values())
    counts = {name: length_counts(corpus.lengths, high) for name, corpus in corpora.items()}
    naturalness.lengths.update({name: count[:-1] for name, count in counts.items()})

    def put(source: str, suffix: str, tests: Mapping[str, ChanceTest], against: str, n: object) -> None:
        parts = {"against": against, "sentences": n, "null": "9999-draws"}
        for name in ("tv", "chi_square"):
            if (test := tests.get(name)) is not None:
                add(source, f"length_{name}{suffix}", test.value, parts)
                add(source, f"length_{name}_p{suffix}", test.p, parts)
        add(source, f"length_tv_null{suffix}", tests["tv"].null_mean, parts)

    of_reference = counts[naturalness.reference]
    for name in corpora:
        if name == naturalness.reference:
            continue
        sizes = f"{len(corpora[name])}/{len(corpora[naturalness.reference])}"
        put(name, "", between(counts[name], of_reference, seed=seed), "sample", sizes)
        if name in naturalness.exact:
            exact = naturalness.exact[name][: high + 1]
            if len(exact) <= high and exact.sum() < 1.0 - 1e-9:
                raise InputError(f"the exact lengths of {name!r} end before the longest sentence, of {high} words")
            pmf = with_rest(np.pad(exact, (0, high + 1 - len(exact))))
            truth = against_exact(of_reference, pmf, seed=seed)
            put(name, "_exact", truth, "exact", len(corpora[naturalness.reference]))


def _add_laws(corpora: Mapping[str, Encoded], naturalness: Naturalness, add: _Add, seed: int) -> None:
    """Add Zipf-Mandelbrot laws by maximum likelihood, and by the published recipe if enough words recur."""
    least = min(len(corpus) for corpus in corpora.values())
    for name, corpus in corpora.items():
        rows = permuted(len(corpus), seed)[:least]
        try:
            fit = fit_corpus(corpus, rows, seed=seed)
        except NothingToMeasureError as error:
            raise NothingToMeasureError(f"{name}: {error.reason}", error.code) from error
        law, released = fit.law, _released(corpus, rows, seed)
        naturalness.fits[name] = fit, released
        sizes: dict[str, object] = {"sentences": f"{least // 2}+{least // 2}"}
        parts = sizes | {"support": f"1..{law.types}", "fit": "mle"}
        if isinstance(fit.truth, str):
            signed = parts | {"ranks": "estimated", "ci": f"none/{fit.truth}"}
            add(name, "zipf_alpha", law.alpha, signed)
            add(name, "zipf_beta", law.beta, signed)
        else:
            signed = sizes | {"support": f"1..{fit.truth.words}", "fit": "simulated-moments", "ranks": "corrected"}
            add(name, "zipf_alpha", fit.truth.alpha.value, signed | {"ci": "sandwich95"}, *fit.truth.alpha[1:])
            add(name, "zipf_beta", fit.truth.beta.value, signed | {"ci": "sandwich95"}, *fit.truth.beta[1:])
        for what, value in (("kl", law.kl), ("tv", law.tv), ("unranked", fit.unranked)):
            add(name, f"zipf_{what}", value, parts | {"ci": "none"})
        if released is not None:
            parts = sizes | {"support": "infinite", "fit": "paper", "law-types": released.types, "ci": "none"}
            add(name, "zipf_alpha_paper", released.alpha, parts)
            add(name, "zipf_beta_paper", released.beta, parts)


def _released(corpus: Encoded, rows: IntArray, seed: int) -> ReleasedFit | None:
    try:
        return fit_released(corpus, rows, seed=seed)
    except InputError:
        return None


def _halves(n: int, documents: Sequence[int], seed: int, split: int) -> tuple[IntArray, IntArray]:
    """Return two halves of n sentences in random order, of which no document is in both.

    Documents are dealt in random order, each to the half that has fewer sentences.
    """
    order = permuted(n, seed, split)
    _, of = np.unique(np.asarray(documents), return_inverse=True)
    number, sizes = int(of.max()) + 1, np.bincount(of)
    in_second, totals = np.zeros(number, dtype=bool), [0, 0]
    for document in permuted(number, seed, split).tolist():
        side = int(totals[1] < totals[0])
        in_second[document] = side == 1
        totals[side] += int(sizes[document])
    second = in_second[of[order]]
    return order[~second], order[second]


def _add_ngrams(
    corpora: Mapping[str, Encoded], variant: Variant, add: _Add, seed: int, documents: Sequence[int] | None
) -> None:
    """Add agreement with one half of the reference, the first of ``corpora``: mean and range over random splits."""
    names = list(corpora)
    by_document = documents is not None and len(set(documents)) > 1
    n = len(corpora[names[0]])
    halved = [_halves(n, documents, seed, split) for split in range(SPLITS)] if documents and by_document else []
    most = min((len(half) for halves in halved for half in halves), default=n // 2)
    size = min(most, *(len(corpora[name]) for name in names[1:]))
    for table in ngrams(list(corpora.values())):
        seen: dict[str, list[Agreement]] = {name: [] for name in names}
        for split in range(SPLITS):
            orders = [permuted(len(corpus), seed, split) for corpus in corpora.values()]
            first, second = halved[split] if halved else (orders[0], orders[0][size:])
            half = table.counts(0, first[:size])
            for i, name in enumerate(names):
                rows = second[:size] if i == 0 else orders[i][:size]
                met = agreement(table.counts(i, rows), half, variant)
                if met is not None:
                    seen[name].append(met)
        parts: dict[str, object] = {
            "types": "union" if variant == "default" else "reference",
            "sentences": f"{size}+{size}",
            **({"documents": len(set(documents or ()))} if by_document else {}),
            "interval": f"range-of-{SPLITS}-splits",
        }
        for name, met_all in seen.items():
            if len(met_all) == SPLITS:
                for what in ("spearman", "shared_types", "shared_tokens", "covered_types", "covered_tokens"):
                    values = [getattr(met, what) for met in met_all]
                    ends = min(values), max(values)
                    add(name, f"ngram_{what}_{table.n}", float(np.mean(values)), parts, *ends)
