"""Samples compared with another text: every tendency and its test, one table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from truesource.evaluation.core.oracle import UNKNOWN
from truesource.evaluation.core.signature import digest_sentences
from truesource.evaluation.measures import PERMUTATIONS
from truesource.evaluation.measures.discrete_tests import (
    RANKS,
    atoms,
    between,
    compare_words,
    cramers_v,
    mean_difference,
    permuted_words,
)
from truesource.evaluation.measures.integer_corpus import Encoded, encode_with_words
from truesource.evaluation.measures.monte_carlo import ChanceTest, Tail, judged
from truesource.evaluation.tendencies import TendencySettings
from truesource.evaluation.tendencies.findings import (
    KINDS,
    Parts,
    Sentences,
    Tendencies,
    TendencyTable,
    check_sources,
    classes_of,
)
from truesource.evaluation.tendencies.measured import Sample, Sizes, curves_of, describe
from truesource.evaluation.tendencies.rank_frequency import RankFrequency, by_own_rank, rank_frequency
from truesource.evaluation.tendencies.type_token import TypeCounts, fit_heaps, pooled
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED

LABELS = {"tv": "unigram_tv", "linf": "unigram_linf", "rank_ks": "rank_ks"}  #: names in the table


def gap_at_equal_lengths(first: TypeCounts, second: TypeCounts) -> float | None:
    """Return the mean difference of types at equal lengths, weighted by n m / (n + m); None without a common length."""
    n, m = first.sentences, second.sentences
    both = (n > 0) & (m > 0)
    if not both.any():
        return None
    weight = n[both] * m[both] / (n[both] + m[both])
    return float(weight @ (first.means() - second.means())[both] / weight.sum())


def type_tests(
    first: TypeCounts, second: TypeCounts, *, draws: int = PERMUTATIONS, seed: int = DEFAULT_SEED
) -> dict[str, tuple[float, ChanceTest]] | None:
    """Return differences, first minus second, of Heaps' exponents and of types at equal lengths, with their tests.

    Both depend on the length and number of types of sentences alone, so permuting sentences is sampling tables from a
    multivariate hypergeometric distribution.

    Args:
        first: table of one sample.
        second: of the other, of the same size.
        draws: of the null distribution.
        seed: of the draws.

    Returns:
        ``heaps_beta_difference`` and ``types_gap``; None if a sample has no Heaps' law, or no length is common.

    Raises:
        InputError: the tables differ in size.
    """
    if first.high != second.high:
        raise InputError("the two tables of types go up to different lengths; give `type_counts` one `high`")
    value = _differences(first, second)
    if value is None:
        return None
    whole = pooled([first, second])
    rng = np.random.default_rng(seed)
    dealt = rng.multivariate_hypergeometric(whole.count, int(first.count.sum()), size=draws, method="marginals")
    null = []
    for row in dealt:
        sides = ((row, row > 0), (whole.count - row, whole.count > row))
        one, other = (TypeCounts(whole.length[at], whole.types[at], n[at], whole.high) for n, at in sides)
        differences = _differences(one, other)
        if differences is not None:
            null.append(differences)
    if len(null) < draws:  # some deal has no law: too few sentences to test anything
        return None
    columns = np.array(null).T
    names = ("heaps_beta_difference", "types_gap")
    return {
        name: (v, judged(v, column, "both", centre=0.0)) for name, v, column in zip(names, value, columns, strict=True)
    }


def _differences(first: TypeCounts, second: TypeCounts) -> tuple[float, float] | None:
    try:
        beta = fit_heaps(first).beta - fit_heaps(second).beta
    except InputError:
        return None
    gap = gap_at_equal_lengths(first, second)
    return None if gap is None else (beta, gap)


def against_sample(
    sources: Mapping[str, Sentences],
    reference: Sentences,
    options: TendencySettings | None = None,
    *,
    name: str = "reference",
) -> Tendencies:
    """Compare samples with a text, which is a sample, too; the null hypothesis is that sentences are exchangeable.

    Laws are fitted to counts ranked by themselves (the ranks of the truth are not known here), so their distances have
    no test; the distance of the two rank-frequency distributions has one, with new ranks at every permutation.

    Args:
        sources: sentences by name.
        reference: of the text.
        options: see there.
        name: of the reference.

    Raises:
        InputError: there is no sample, one is empty, has a sentence without words, or is called like the reference.
    """
    options = options or TendencySettings()
    if name in sources:
        raise InputError(f"a sample is called {name!r} like the reference; give it another name")
    check_sources(sources)
    check_sources({name: reference})
    encoded, words = encode_with_words([*sources.values(), reference])
    classes = classes_of(options, words)
    longest = max(int(corpus.lengths.max()) for corpus in encoded)
    unknown = words.index(UNKNOWN) if UNKNOWN in words else None
    *samples, base = (Sample(corpus, classes, longest, unknown) for corpus in encoded)
    table = TendencyTable("sample", f"{digest_sentences(reference)}/{len(reference)}sentences", options, called=name)
    sizes = Sizes(
        min(int(sample.known.sum()) for sample in (*samples, base)),
        min(int(sample.bigrams.sum()) for sample in (*samples, base)),
    )
    for source, sample in zip(sources, samples, strict=True):
        parts = {"data": digest_sentences(sources[source]), "sentences": len(sources[source])}
        _sentence_values(table, source, sample, base, parts, options)
        null = _words(table, source, sample, base, parts, options)
        ranks = _laws(table, source, sample, base, parts, options)
        _types(table, source, sample, base, parts, options)
        _vocabularies(table, source, sample, sizes, parts)
        by_rank = by_own_rank(sample.known)
        table.curves[source] = curves_of(sample, by_rank, ranks, null, base=base.types, seed=options.seed)
        describe(table, source, sample, table.curves[source], parts)
    of_reference = {"data": digest_sentences(reference), "sentences": len(reference)}
    _vocabularies(table, name, base, sizes, of_reference)
    ranks = _laws(table, name, base, base, of_reference, options)
    _heaps(table, name, base, of_reference)
    table.curves[name] = curves_of(base, by_own_rank(base.known), ranks, {}, seed=options.seed)
    describe(table, name, base, table.curves[name], of_reference)
    return table.done(sizes.tokens)


def _sentence_values(
    table: TendencyTable, source: str, sample: Sample, base: Sample, parts: Parts, options: TendencySettings
) -> None:
    """Add lengths, and shares of classes of words."""
    draws = {"draws": options.draws, "seed": options.seed}
    how = {**parts, "null": f"{options.draws}-deals"}
    enough = min(len(sample.corpus), len(base.corpus)) > 1
    values = {"length": (sample.corpus.lengths.astype(np.float64), base.corpus.lengths.astype(np.float64))}
    for label in sample.classes:
        values[label] = sample.shares(label), base.shares(label)
    for label, (mine, theirs) in values.items():
        different, (counts, others) = atoms(mine, theirs)
        tests = between(counts, others, **draws)
        table.add_distances(source, label, tests, how, "deals")
        v = cramers_v(tests["chi_square"].value, len(mine) + len(theirs), len(different))
        table.add(source, label, f"{label}_cramers_v", v, None, parts)
        if enough:
            table.add_mean(source, label, mean_difference(different, counts, others, **draws), how, "deals")
        if label != "length":
            code = sample.classes[label]
            pooled = float(sample.counts[code].sum() / sample.counts.sum())
            table.add(source, label, f"{label}_pooled_share", pooled, None, parts)


def _words(
    table: TendencyTable, source: str, sample: Sample, base: Sample, parts: Parts, options: TendencySettings
) -> dict[str, FloatArray]:
    """Return word frequencies, sentences permuted: the same deals with ``<unk>`` and, for ranks, without."""
    draws = {"draws": options.permutations, "seed": options.seed}
    null = permuted_words(sample.corpus, base.corpus, ranks=RANKS, **draws)
    values = compare_words(sample.corpus, base.corpus, ranks=RANKS)
    if sample.unknown is not None:  # which is a word like others for distances, but has no rank
        with_rank, others = (_without(side.corpus, sample.unknown) for side in (sample, base))
        empty = np.count_nonzero(np.concatenate([with_rank.lengths, others.lengths]) == 0)
        if empty < min(len(with_rank), len(others)):  # no deal can have <unk> only
            null["rank_ks"] = permuted_words(with_rank, others, ranks=RANKS, **draws)["rank_ks"]
            values["rank_ks"] = compare_words(with_rank, others, ranks=RANKS)["rank_ks"]
        else:
            del null["rank_ks"], values["rank_ks"]
            table.note(source, "rank_ks")
    tail: Tail = "paper" if options.variant == "paper" else "upper"
    how = {**parts, "null": f"{options.permutations}-sentence-permutations", "ranks": RANKS}
    for measure, value in values.items():
        label = LABELS[measure]
        test = judged(value, null[measure], tail)
        table.add(source, KINDS[label][0], label, value, test, how, null="permutations")
        if label == "unigram_tv":
            excess = value - float(null[measure].mean())
            table.add(source, "unigram", "unigram_tv_above_chance", excess, None, how)
    return {LABELS[measure]: values for measure, values in null.items()}


def _laws(
    table: TendencyTable, source: str, sample: Sample, base: Sample, parts: Parts, options: TendencySettings
) -> RankFrequency | None:
    """Add Zipf's law, with ranks by own counts."""
    try:
        laws = rank_frequency(by_own_rank(sample.known), by_own_rank(base.known), variant=options.variant)
    except InputError:
        table.note(source, "zipf_exponent")
        return None
    values = {
        "rank_ks_own_law": laws.to_own_law,
        "rank_ks_reference_law": laws.to_reference_law,
        "zipf_exponent": laws.exponent,
    }
    for label, value in values.items():
        table.add(source, "rank-frequency", label, value, None, {**parts, "ranks": f"own/{laws.ranks}"})
    return laws


def _types(
    table: TendencyTable, source: str, sample: Sample, base: Sample, parts: Parts, options: TendencySettings
) -> None:
    """Add Heaps' law, and types at equal lengths."""
    law = sample.heaps
    if law is None:
        table.note(source, "heaps_beta")
        return
    _heaps(table, source, sample, parts)
    if base.heaps is None:
        table.note(source, "heaps_beta_difference", "the text it is compared with has no Heaps' law")
        return
    if gap_at_equal_lengths(sample.types, base.types) is None:
        table.note(source, "heaps_beta_difference", "it has no sentence as long as one of the text it is compared with")
        return
    tests = type_tests(sample.types, base.types, draws=options.permutations, seed=options.seed)
    if tests is None:
        table.note(
            source,
            "heaps_beta_difference",
            "dealt out anew, some samples have no Heaps' law: the sentences are too few",
        )
        return
    for label, (value, test) in tests.items():
        table.add(
            source, "type-token", label, value, test, {**parts, "null": f"{options.permutations}-deals"}, null="deals"
        )


def _heaps(table: TendencyTable, source: str, sample: Sample, parts: Parts) -> None:
    """Add the law of the types of one sample, if it has one."""
    if (law := sample.heaps) is None:
        return
    values = {"heaps_beta": law.beta, "heaps_alpha": law.alpha, "heaps_dispersion": law.dispersion}
    for label, value in values.items():
        table.add(source, "type-token", label, value, None, parts)


def _vocabularies(table: TendencyTable, source: str, sample: Sample, sizes: Sizes, parts: Parts) -> None:
    """Add the share of unknown words, and known types of words and pairs at equal sizes."""
    if sample.unknown is not None:
        share = float(sample.counts[sample.unknown] / sample.counts.sum())
        table.add(source, "unigram", "unknown_share", share, None, {**parts, "unit": "share"})
    how = {**parts, "rarefied-to": f"{sizes.tokens}tokens"}
    if sizes.tokens:
        table.add(source, "vocabulary", "types", sample.rarefied(sizes.tokens), None, how)
    else:
        table.note(source, "types")
    if not sizes.pairs:
        table.note(source, "bigram_types")
        return
    how = {**parts, "rarefied-to": f"{sizes.pairs}pairs"}
    table.add(source, "vocabulary", "bigram_types", sample.rarefied_bigrams(sizes.pairs), None, how)


def _without(corpus: Encoded, word: int) -> Encoded:
    """Return a corpus without a word; some of its sentences may have no words then."""
    others = corpus.tokens != word
    lengths = np.bincount(corpus.sentence[others], minlength=len(corpus))
    return Encoded(corpus.tokens[others], lengths, corpus.vocabulary)
