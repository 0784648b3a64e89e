"""Samples compared with the exact distribution of a grammar: every tendency and its test, one table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.signature import digest_sentences
from truesource.evaluation.measures.discrete_tests import against_exact, atoms, mean_against_exact
from truesource.evaluation.measures.integer_corpus import encode_with_words, length_counts, with_rest
from truesource.evaluation.measures.monte_carlo import judged
from truesource.evaluation.tendencies import TendencySettings
from truesource.evaluation.tendencies.findings import (
    KINDS,
    Parts,
    Sentences,
    Tendencies,
    TendencyTable,
    TruthCurves,
    check_sources,
    classes_of,
)
from truesource.evaluation.tendencies.measured import Sample, Sizes, against, curves_of, describe, ranks_against
from truesource.evaluation.tendencies.rank_frequency import by_rank_of
from truesource.evaluation.tendencies.truth import TrueText
from truesource.evaluation.tendencies.type_token import (
    LEAST,
    HeapsLaw,
    TypeCounts,
    fit_heaps,
    fit_means,
    pooled,
    to_laws,
)
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter

ENDS = (0.025, 0.975)
MEASURED = 10_000  #: sentences of the truth that its numbers of known tokens are estimated on


def floor(tables: Sequence[TypeCounts], law: HeapsLaw | None, *, least: int = LEAST) -> dict[str, FloatArray]:
    """Return the middle 95% of the distances that samples of the truth have at each length.

    Args:
        tables: of the samples.
        law: of the truth; None without a law.
        least: number of sentences of a length for a distance, as in `length_distances`.

    Returns:
        ``own``, ``reference_law`` and ``reference``, the last to the other samples, (2, L+1) each; NaN if fewer than
        half of the samples have ``least`` sentences.
    """
    whole = pooled(tables)
    rows: dict[str, list[FloatArray]] = {"own": [], "reference_law": [], "reference": []}
    for types in tables:
        few = types.sentences < least
        try:
            own_law: HeapsLaw | None = fit_heaps(types)
        except InputError:  # all of one length
            own_law = None
        distances = {
            "own": None if own_law is None else to_laws(types, own_law),
            "reference_law": None if law is None else to_laws(types, law),
            "reference": _apart(types, whole),
        }
        for name, values in distances.items():
            rows[name].append(np.where(few, np.nan, np.nan if values is None else values))
    return {name: _ends(np.array(values)) for name, values in rows.items()}


def _apart(types: TypeCounts, whole: TypeCounts) -> FloatArray:
    """Return the distance at every length to the other sentences of ``whole``, (L+1,); NaN if either side has none."""
    distance = np.full(types.high + 1, np.nan)
    for length in np.flatnonzero((types.sentences > 0) & (whole.sentences > types.sentences)).tolist():
        both = whole.row(length)
        row_counts = types.row(length, len(both))
        one, other = (np.cumsum(row) / row.sum() for row in (row_counts, both - row_counts))
        distance[length] = np.abs(one - other).max()
    return distance


def _ends(values: FloatArray) -> FloatArray:
    """Return the quantiles of every column with mostly numbers, (2, L+1)."""
    there = np.isfinite(values).mean(axis=0) >= 0.5
    quantiles = np.full((2, values.shape[1]), np.nan)
    quantiles[:, there] = np.nanquantile(values[:, there], ENDS, axis=0)
    return quantiles


def against_truth(
    sources: Mapping[str, Sentences], truth: TrueText, options: TendencySettings | None = None
) -> Tendencies:
    """Compare samples with the exact distribution of a grammar.

    Lengths and shares have exact distributions, from which their null distributions are drawn. The null distributions
    of word frequencies, laws and vocabularies are from samples of the truth of the same number of sentences. These are
    exact too, as the sentences of a grammar are independent.

    Args:
        sources: sentences by name, in the words of the grammar.
        truth: of the vocabulary that all samples are read in.
        options: see there.

    Raises:
        InputError: there is no sample, one is empty, or has a sentence without words.
    """
    options = options or TendencySettings()
    check_sources(sources)
    texts = [truth.read(sentences) for sentences in sources.values()]
    encoded, words = encode_with_words(texts, truth.words)
    classes = classes_of(options, words)
    members = {name: [words[i] for i in codes.tolist()] for name, codes in classes.items()}
    longest = max(truth.high, *(int(corpus.lengths.max()) for corpus in encoded))
    unknown = truth.unknown_code
    samples = {name: Sample(corpus, classes, longest, unknown) for name, corpus in zip(sources, encoded, strict=True)}
    sizes = _sizes(samples, truth)
    table = TendencyTable("truth", truth.signature_part, options)
    law = _law_of(truth)
    chance: dict[int, Chance] = {}
    for (name, sample), text in zip(samples.items(), texts, strict=True):
        parts = {"data": digest_sentences(text), "sentences": len(text)}
        _exact(table, name, sample, truth, members, parts, options)
        n = len(sample.corpus)
        if n not in chance:
            chance[n] = chance_of(truth, n, classes, longest, sizes, options)
        values = against(sample, truth, sizes)
        rarefied = {"types": f"{sizes.tokens}tokens", "bigram_types": f"{sizes.pairs}pairs"}
        for measure, value in values.items():
            tendency, tail = KINDS[measure]
            null = chance[n].values.get(measure)
            test = None if null is None else judged(value, null, tail)
            how = {**parts, "chance": f"{options.chance}-samples"}
            if measure in rarefied:
                how["rarefied-to"] = rarefied[measure]
            table.add(name, tendency, measure, value, test, how, null="samples")
        table.add_outside(name, truth.outside(sources[name]), parts)
        for measure in KINDS:
            if measure not in values:
                table.note(name, measure)
        by_rank = by_rank_of(sample.counts[: len(truth.words)], truth.known)
        ranks = ranks_against(sample, truth)
        base = pooled(chance[n].types)
        table.curves[name] = curves_of(sample, by_rank, ranks, chance[n].values, base=base, law=law, seed=options.seed)
        describe(table, name, sample, table.curves[name], parts)
    exponents = [curves.ranks.reference_exponent for curves in table.curves.values() if curves.ranks is not None]
    usual = Counter(len(sample.corpus) for sample in samples.values()).most_common(1)[0][0]
    shares = {name: truth.share_pmf(in_grammar) for name in members if (in_grammar := _known(truth, members[name]))}
    return table.done(
        sizes.tokens,
        TruthCurves(
            lengths=np.pad(truth.length_pmf, (0, longest - truth.high)),
            types=np.pad(truth.types_by_length, (0, longest - truth.high)),
            heaps=law,
            by_rank=truth.ranked,
            exponent=exponents[0] if exponents else None,
            shares=shares,
            floor=floor(chance[usual].types, law),
        ),
    )


@dataclass(frozen=True)
class Chance:
    """Samples of the truth of one size."""

    values: Mapping[str, FloatArray]  #: every measure of `against` that all of them have, (chance,) each
    types: list[TypeCounts]


def chance_of(
    truth: TrueText,
    n: int,
    classes: Mapping[str, IntArray],
    longest: int,
    sizes: Sizes,
    options: TendencySettings,
) -> Chance:
    """Return values of samples of the truth of n sentences."""
    rows: list[dict[str, float]] = []
    types: list[TypeCounts] = []
    within = {name: codes[codes < len(truth.words)] for name, codes in classes.items()}
    with meter(f"samples of the truth, {n:,} sentences each", total=options.chance) as progress:
        for corpus in truth.samples(n, options.chance, seed=options.seed):
            sample = Sample(corpus, within, longest, truth.unknown_code)
            rows.append(against(sample, truth, sizes))
            types.append(sample.types)
            progress.advance(1)
    common = set.intersection(*(set(row) for row in rows)) if rows else set()
    return Chance({name: np.array([row[name] for row in rows]) for name in KINDS if name in common}, types)


def _law_of(truth: TrueText) -> HeapsLaw | None:
    """Return Heaps' law of the truth, exactly; None if it has none."""
    length = np.flatnonzero((truth.length_pmf > 0) & (truth.types_by_length > 0))
    try:
        return fit_means(length, truth.length_pmf[length], truth.types_by_length[length])
    except InputError:  # sentences of one length, or one word
        return None


def _known(truth: TrueText, words: list[str]) -> list[str]:
    return [word for word in words if word in truth.pcfg.word_ids]


def _sizes(samples: Mapping[str, Sample], truth: TrueText) -> Sizes:
    """Return numbers of known tokens and pairs that every sample has, and almost surely every sample of the truth."""
    n = min(len(sample.corpus) for sample in samples.values())
    tokens = min(int(sample.known.sum()) for sample in samples.values())
    pairs = min(int(sample.bigrams.sum()) for sample in samples.values())
    if truth.unknown_code is not None:
        return Sizes(*(max(0, min(size, least)) for size, least in zip((tokens, pairs), _least(truth, n), strict=True)))
    length = np.arange(truth.high + 1)
    mean, square = float(length @ truth.length_pmf), float(length**2 @ truth.length_pmf)
    slack = 6.0 * math.sqrt(n * max(0.0, square - mean * mean))
    return Sizes(max(1, min(tokens, int(n * mean - slack))), max(0, min(pairs, int(n * (mean - 1.0) - slack))))


def _least(truth: TrueText, n: int) -> list[int]:
    """Estimate numbers of known tokens and pairs that n sentences of the truth have almost surely, from a sample."""
    (sample,) = truth.samples(MEASURED, 1, seed=0)
    in_vocabulary = sample.tokens != truth.unknown_code
    pair = in_vocabulary[1:] & in_vocabulary[:-1] & (sample.sentence[1:] == sample.sentence[:-1])
    least = []
    for at, sentence in ((in_vocabulary, sample.sentence), (pair, sample.sentence[1:])):
        each = np.bincount(sentence[at], minlength=len(sample))
        slack = 6.0 * math.sqrt(n * (1.0 + n / MEASURED)) * float(each.std())
        least.append(int(n * float(each.mean()) - slack))
    return least


def _exact(
    table: TendencyTable,
    name: str,
    sample: Sample,
    truth: TrueText,
    members: Mapping[str, list[str]],
    parts: Parts,
    options: TendencySettings,
) -> None:
    """Add lengths and shares, whose exact distributions are known."""
    draws = {"draws": options.draws, "seed": options.seed}
    how = {**parts, "null": f"{options.draws}-draws"}
    high = sample.longest
    counts = length_counts(sample.corpus.lengths, high)
    exact = with_rest(np.pad(truth.length_pmf, (0, high - truth.high)))
    table.add_distances(name, "length", against_exact(counts, exact, **draws), how, "draws")
    table.add_impossible(name, "length", float(counts[exact <= 0.0].sum() / counts.sum()), parts)
    values = np.arange(high + 2, dtype=np.float64)
    if len(sample.corpus) > 1:
        table.add_mean(name, "length", mean_against_exact(values, counts, exact, **draws), how, "draws")
    for label, words in members.items():
        in_grammar = _known(truth, words)
        if not in_grammar:
            table.remark(f"{name}: no word of the class {label} is in the grammar; its shares are not compared")
            continue
        values, seen, exact = _joined(sample.shares(label), *truth.share_pmf(in_grammar))
        table.add_distances(name, label, against_exact(seen, exact, **draws), how, "draws")
        table.add_impossible(name, label, float(seen[exact <= 0.0].sum() / seen.sum()), parts)
        if len(sample.corpus) > 1:
            table.add_mean(name, label, mean_against_exact(values, seen, exact, **draws), how, "draws")
        code = sample.classes[label]
        pooled = float(sample.counts[code].sum() / sample.counts.sum())
        table.add(name, label, f"{label}_pooled_share", pooled, None, parts)


def _joined(shares: FloatArray, values: FloatArray, pmf: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return shares of a sample and exact ones over the same atoms."""
    union, (seen, _) = atoms(shares, values)
    exact = np.zeros(len(union))
    exact[np.searchsorted(union, values)] = pmf
    return union, seen, exact
