"""Exact targets of probes: posteriors of preterminals of words, and of phrase labels of spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.probing import Given, Kind, Truth
from truesource.grammar.inference.batch import Distributions
from truesource.grammar.inference.distributions import class_posteriors, next_token_distributions
from truesource.grammar.inference.posterior import Posterior, posterior, tables
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import meter
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.binarise import INTERMEDIATE

SEPARATOR = " … "  #: between the two ends of a span in its key
LEAST = 1e-12  #: labels with less total probability over all items are ignored
NONE = "(none)"  #: label of a span that is not a constituent
Span = tuple[int, int]


@dataclass(frozen=True, eq=False, kw_only=True)
class Targets:
    """The T items that a probe labels, sentence by sentence: words, or spans of words."""

    kind: Kind
    given: Given
    right: Truth  #: how the right label is selected
    labels: tuple[str, ...]  #: (C,)
    posterior: FloatArray  #: (T, C) exact; rows sum to one
    truth: IntArray  #: (T,) right label
    sentence: IntArray  #: (T,) ascending
    first: IntArray  #: (T,) place of the first word in its sentence
    last: IntArray  #: (T,) place of the last word; the same for words
    first_word: tuple[str, ...]  #: (T,) type of the first word
    last_word: tuple[str, ...]  #: (T,) type of the last word; the same for words
    excluded: tuple[int, ...]  #: sentences with probability 0 in the grammar

    def __len__(self) -> int:
        return len(self.truth)

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Word type, or both end types of a span, (T,)."""
        if self.kind != "span":
            return self.first_word
        return tuple(map(SEPARATOR.join, zip(self.first_word, self.last_word, strict=True)))

    def __post_init__(self) -> None:
        if not np.allclose(self.posterior.sum(axis=1), 1.0, atol=1e-6):
            raise ValueError("a posterior does not sum to one")


def word_targets(
    oracle: Oracle,
    sentences: Sequence[Sequence[str]],
    *,
    kind: Kind = "tag",
    given: Given = "sentence",
    truth: Truth = "argmax",
    seed: int = DEFAULT_SEED,
) -> Targets:
    """Return the exact posterior of each word's preterminal, coarse (its treebank tag) or fine (the symbol).

    Sentences are read as the oracle reads them, so words outside the model's vocabulary are ``<unk>`` here too.

    Args:
        oracle: oracle with the vocabulary of the model, see `truesource.evaluation.core.setting.oracle_for`.
        sentences: sentences of at least one word.
        kind: ``tag`` or ``state``.
        given: the whole ``sentence``, or its words up to this one (``left``), under the oracle's length condition.
        truth: right label: the most probable one (``argmax``), or the label in a derivation sampled from the
            posterior given the sentence (``sampled``, one per sentence, as in Jumelet and Zuidema 2023).
        seed: seed of the derivations.

    Raises:
        InputError: the grammar gives all sentences probability 0, or there are fewer than two labels.
    """
    language = oracle.grammar
    seen = [oracle.read(sentence) for sentence in sentences]
    names = language.labels if kind == "tag" else language.symbols
    numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
    classes = np.array([numbers[name] for name in names], dtype=np.int64)
    if given == "sentence":
        tables = class_posteriors(language.exact, seen, classes.tolist())
    else:
        tables = _given_left(oracle, seen, classes, len(numbers))
    possible = [i for i, table in enumerate(tables) if table.any()]
    if not possible:
        raise NothingToMeasureError(
            f"the grammar can make none of the {len(sentences)} sentences, so there is nothing to probe",
            "no-possible-sentence",
        )
    joint = np.concatenate([tables[i] for i in possible])
    labels, joint = used_labels([*numbers], joint)
    right = joint.argmax(axis=1)
    if truth == "sampled":
        column = {label: i for i, label in enumerate(labels)}
        label_of = dict(zip(language.symbols, names, strict=True))
        sampled = _sampled_preterminals(language, [seen[i] for i in possible], possible, seed)
        right = np.array([column[label_of[symbol]] for symbol in sampled], dtype=np.int64)
    sizes = np.array([len(seen[i]) for i in possible], dtype=np.int64)
    place = np.concatenate([np.arange(size) for size in sizes])
    words = tuple(word for i in possible for word in seen[i])
    return Targets(
        kind=kind,
        given=given,
        right=truth,
        labels=labels,
        posterior=joint,
        truth=right,
        sentence=np.repeat(np.array(possible, dtype=np.int64), sizes),
        first=place,
        last=place,
        first_word=words,
        last_word=words,
        excluded=tuple(sorted(set(range(len(sentences))) - set(possible))),
    )


def used_labels(names: Sequence[str], table: FloatArray) -> tuple[tuple[str, ...], FloatArray]:
    """Return the labels that occur, and the posterior over them, (T, C).

    Raises:
        InputError: there are fewer than two labels.
    """
    used = np.flatnonzero(table.sum(axis=0) > LEAST)
    if len(used) < 2:
        only = f"always {names[used[0]]}" if len(used) else "none at all"
        raise NothingToMeasureError(f"a probe needs at least two labels, but here the label is {only}", "one-label")
    used_columns = table[:, used]
    return tuple(names[i] for i in used.tolist()), used_columns / used_columns.sum(axis=1, keepdims=True)


def _given_left(oracle: Oracle, seen: Sequence[Sequence[str]], classes: IntArray, n_classes: int) -> list[FloatArray]:
    """Compute the posterior of each word's class given the words up to it, (n, C) per sentence; zeros if impossible."""
    language = oracle.grammar
    columns = language.exact.emission.tocsc()
    tables = [np.zeros((len(sentence), n_classes)) for sentence in seen]
    whole = np.zeros(len(seen), dtype=bool)

    def reduce(block: Distributions) -> tuple[Distributions, FloatArray]:
        result = np.zeros((len(block.members), n_classes))
        for row, word in enumerate(block.observed.tolist()):
            if block.possible[row] and 0 <= word < len(language.vocabulary):
                rules = slice(columns.indptr[word], columns.indptr[word + 1])
                states = columns.indices[rules]
                weight = block.states[row, states] * columns.data[rules]
                if weight.sum() > 0.0:
                    result[row] = np.bincount(classes[states], weight / weight.sum(), minlength=n_classes)
        return block, result

    for block, result in next_token_distributions(language.exact, seen, reduce, oracle.lengths):
        for row, members in enumerate(block.members):
            for i in members:
                whole[i] = block.whole[row]
                if block.position < len(seen[i]):
                    tables[i][block.position] = result[row]
    return [table if whole[i] else np.zeros_like(table) for i, table in enumerate(tables)]


def _sampled_preterminals(
    language: PCFG, sentences: Sequence[Sequence[str]], numbers: Sequence[int], seed: int
) -> list[str]:
    """Sample one derivation of each sentence from the exact posterior, and return its preterminals."""
    preterminals = []
    with meter("sampled derivations of sentences", len(sentences)) as bar:
        for sentence, number in zip(sentences, numbers, strict=True):
            tree = posterior(language, sentence).sample(np.random.default_rng([seed, number]))
            preterminals += [node.label for node in tree.subtrees() if node.is_preterminal]
            bar.advance()
    return preterminals


def span_targets(
    oracle: Oracle, sentences: Sequence[Sequence[str]], *, truth: Truth = "argmax", seed: int = DEFAULT_SEED
) -> Targets:
    """Return the exact posterior of phrase labels, including `NONE`, for spans of at least two words.

    The label of a constituent is the label of the lowest node over the span, which branches; symbols from
    binarisation are not constituents. Spans are balanced: in each sentence, one derivation is sampled from the
    posterior, all its constituents of 2 to n-1 words are items, and for each another span of the same length, sampled
    without repeats from the spans that are not constituents there, if there are any.

    This derivation selects the items, so it must not label them: ``sampled`` right labels come
    from a second, independent derivation. Each is a sample from its item's posterior.

    Args:
        oracle: oracle with the vocabulary of the model.
        sentences: sentences of at least one word.
        truth: see `evaluation.probing.targets.word_targets`; ``sampled`` uses a second derivation of each sentence.
        seed: seed of derivations and spans.

    Raises:
        InputError: the grammar gives all sentences probability 0, they have no such spans, or there are fewer than two
            labels.
    """
    language = oracle.grammar
    names = [NONE, *(name for name in dict.fromkeys(language.labels) if not name.startswith(INTERMEDIATE))]
    column = {name: i for i, name in enumerate(names)}
    rows: list[FloatArray] = []
    places: list[tuple[int, int, int]] = []
    right: list[int] = []
    ends: list[tuple[str, str]] = []
    excluded: list[int] = []
    with meter("labelled spans of sentences", len(sentences)) as bar:
        for number, sentence in enumerate(sentences):
            bar.advance()
            words = oracle.read(sentence)
            try:
                chart = posterior(language, words)
            except InputError:
                excluded.append(number)
                continue
            rng = np.random.default_rng([seed, number])
            chosen = _balanced(constituents(chart.sample(rng), language), len(words), rng)
            if truth == "sampled":
                other = constituents(chart.sample(np.random.default_rng([seed, number, 1])), language)
                right += [column[other.get(span, NONE)] for span in chosen]
            for i, j in chosen:
                rows.append(span_posterior(chart, i, j, names))
                places.append((number, i, j - 1))
                ends.append((words[i], words[j - 1]))
    if not rows:
        reason = "the grammar can make none of them" if len(excluded) == len(sentences) else "all are too short"
        raise NothingToMeasureError(f"the {len(sentences)} sentences have no spans to probe: {reason}", "no-spans")
    labels, joint = used_labels(names, np.stack(rows))
    at = {name: i for i, name in enumerate(labels)}
    best = joint.argmax(axis=1) if truth == "argmax" else np.array([at[names[i]] for i in right], dtype=np.int64)
    sentence, first, last = np.array(places, dtype=np.int64).T
    begin, end = zip(*ends, strict=True)
    return Targets(
        kind="span",
        given="sentence",
        right=truth,
        labels=labels,
        posterior=joint,
        truth=best,
        sentence=sentence,
        first=first,
        last=last,
        first_word=begin,
        last_word=end,
        excluded=tuple(excluded),
    )


def constituents(tree: Tree, pcfg: PCFG) -> dict[Span, str]:
    """Return the label of the lowest node over each constituent of 2 to n-1 words, by (i, j), words i to j-1."""
    label = dict(zip(pcfg.symbols, pcfg.labels, strict=True))
    n = len(tree.leaves())
    spans: dict[Span, str] = {}
    place = 0
    stack: list[tuple[Tree, int]] = [(tree, -1)]  # with its first word, once its children are done
    while stack:
        node, begin = stack.pop()
        if begin >= 0:
            name = label[node.label]
            if 2 <= place - begin < n and not name.startswith(INTERMEDIATE):
                spans[begin, place] = name
        elif node.is_preterminal:
            place += 1
        else:
            if len(node.children) > 1:
                stack.append((node, place))
            stack.extend((child, -1) for child in reversed(node.children) if isinstance(child, Tree))
    return spans


def span_posterior(chart: Posterior, i: int, j: int, names: Sequence[str]) -> FloatArray:
    """Compute P(label of the lowest node over words i to j-1), `NONE` if not a constituent; (len(names),)."""
    span = chart.span(i, j)
    weight = chart.closed[span] * chart.chart.bare[span]
    label_tables = tables(chart.pcfg.exact)
    by_label = np.bincount(label_tables.state_label, weight, minlength=len(label_tables.labels))
    of_label = dict(zip(label_tables.labels, by_label.tolist(), strict=True))
    row = np.array([of_label.get(name, 0.0) for name in names])
    row[names.index(NONE)] = max(0.0, 1.0 - float(row.sum()))
    return row


def _balanced(constituents: dict[Span, str], n: int, rng: np.random.Generator) -> list[Span]:
    """Return the constituents, and for each another span of its length if there are any left; in order."""
    chosen = set(constituents)
    for i, j in sorted(constituents):
        width = j - i
        others = [(k, k + width) for k in range(n - width + 1) if (k, k + width) not in chosen]
        if others:
            chosen.add(others[int(rng.integers(len(others)))])
    return sorted(chosen)
