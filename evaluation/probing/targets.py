"""Exact targets of probes: for every word the posterior of the symbol that makes it, for spans that of phrases."""

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
LEAST = 1e-12  #: a label with less than this, in all items together, is none
NONE = "(none)"  #: label of a span that is no constituent
Span = tuple[int, int]


@dataclass(frozen=True, eq=False, kw_only=True)
class Targets:
    """The T items that a probe labels, sentence after sentence: words, or spans of words."""

    kind: Kind
    given: Given
    right: Truth  #: how the label that counts as right is chosen
    labels: tuple[str, ...]  #: (C,)
    posterior: FloatArray  #: (T, C) exact; rows sum to one
    truth: IntArray  #: (T,) the label that counts as right
    sentence: IntArray  #: (T,) ascending
    first: IntArray  #: (T,) place of the first word in its sentence
    last: IntArray  #: (T,) place of the last one; of a word, the same
    first_word: tuple[str, ...]  #: (T,) type of the first word
    last_word: tuple[str, ...]  #: (T,) type of the last one; of a word, the same
    excluded: tuple[int, ...]  #: sentences that the grammar cannot make

    def __len__(self) -> int:
        return len(self.truth)

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The word type; of a span, those of its two ends, (T,)."""
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

    Sentences are read as the oracle reads them, so words that the model does not tell apart are ``<unk>`` here too.

    Args:
        oracle: with the vocabulary of the model, see `truesource.evaluation.core.setting.oracle_for`.
        sentences: at least one word each.
        kind: ``tag`` or ``state``.
        given: the whole ``sentence``, or its words up to this one (``left``), under the oracle's length condition.
        truth: what counts as right: the most probable label (``argmax``), or that of a derivation drawn from the
            posterior given the sentence (``sampled``, one a sentence, as in Jumelet and Zuidema 2023).
        seed: of the derivations.

    Raises:
        InputError: the grammar can make none of the sentences, or there are fewer than two labels.
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
    kept = [i for i, table in enumerate(tables) if table.any()]
    if not kept:
        raise NothingToMeasureError(
            f"the grammar can make none of the {len(sentences)} sentences, so there is nothing to probe",
            "no-possible-sentence",
        )
    joint = np.concatenate([tables[i] for i in kept])
    labels, joint = used_labels([*numbers], joint)
    right = joint.argmax(axis=1)
    if truth == "sampled":
        column = {label: i for i, label in enumerate(labels)}
        label_of = dict(zip(language.symbols, names, strict=True))
        sampled = _drawn_preterminals(language, [seen[i] for i in kept], kept, seed)
        right = np.array([column[label_of[symbol]] for symbol in sampled], dtype=np.int64)
    sizes = np.array([len(seen[i]) for i in kept], dtype=np.int64)
    place = np.concatenate([np.arange(size) for size in sizes])
    words = tuple(word for i in kept for word in seen[i])
    return Targets(
        kind=kind,
        given=given,
        right=truth,
        labels=labels,
        posterior=joint,
        truth=right,
        sentence=np.repeat(np.array(kept, dtype=np.int64), sizes),
        first=place,
        last=place,
        first_word=words,
        last_word=words,
        excluded=tuple(sorted(set(range(len(sentences))) - set(kept))),
    )


def used_labels(names: Sequence[str], table: FloatArray) -> tuple[tuple[str, ...], FloatArray]:
    """The labels that occur, and the posterior over them, (T, C).

    Raises:
        InputError: there are fewer than two.
    """
    used = np.flatnonzero(table.sum(axis=0) > LEAST)
    if len(used) < 2:
        only = f"always {names[used[0]]}" if len(used) else "none at all"
        raise NothingToMeasureError(
            f"a probe needs two labels or more to tell apart, but here the label is {only}", "one-label"
        )
    kept = table[:, used]
    return tuple(names[i] for i in used.tolist()), kept / kept.sum(axis=1, keepdims=True)


def _given_left(oracle: Oracle, seen: Sequence[Sequence[str]], classes: IntArray, n_classes: int) -> list[FloatArray]:
    """Posterior of each word's class given the words up to it, (n, C) a sentence; zeros where it is impossible."""
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


def _drawn_preterminals(
    language: PCFG, sentences: Sequence[Sequence[str]], numbers: Sequence[int], seed: int
) -> list[str]:
    """The symbol above each word in one derivation of each sentence, drawn from the exact posterior."""
    drawn = []
    with meter("sampled derivations of sentences", len(sentences)) as bar:
        for sentence, number in zip(sentences, numbers, strict=True):
            tree = posterior(language, sentence).sample(np.random.default_rng([seed, number]))
            drawn += [node.label for node in tree.subtrees() if node.is_preterminal]
            bar.advance()
    return drawn


def span_targets(
    oracle: Oracle, sentences: Sequence[Sequence[str]], *, truth: Truth = "argmax", seed: int = DEFAULT_SEED
) -> Targets:
    """Return for some spans of two words or more the exact posterior of the phrase label, `NONE` among them.

    The label of a constituent is that of the lowest node over the span, the one that branches; symbols that
    binarisation made are no constituents. Spans are balanced: in each sentence one derivation is drawn from the
    posterior, all its constituents of 2 to n-1 words are taken, and for each another span of the same length, drawn
    without repeats from those that are no constituent there, as long as there are any.

    What was drawn says which spans are items, so it cannot say what they are: right labels that are ``sampled`` are
    those of a second derivation, which knows nothing of the first. Each is a draw from its item's posterior.

    Args:
        oracle: with the vocabulary of the model.
        sentences: at least one word each.
        truth: as in `evaluation.probing.targets.word_targets`; ``sampled``, by a second derivation of each sentence.
        seed: of derivations and spans.

    Raises:
        InputError: the grammar can make none of the sentences, they have no such spans, or there are fewer than two
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
    kept = joint.argmax(axis=1) if truth == "argmax" else np.array([at[names[i]] for i in right], dtype=np.int64)
    sentence, first, last = np.array(places, dtype=np.int64).T
    begin, end = zip(*ends, strict=True)
    return Targets(
        kind="span",
        given="sentence",
        right=truth,
        labels=labels,
        posterior=joint,
        truth=kept,
        sentence=sentence,
        first=first,
        last=last,
        first_word=begin,
        last_word=end,
        excluded=tuple(excluded),
    )


def constituents(tree: Tree, pcfg: PCFG) -> dict[Span, str]:
    """Label of each constituent of 2 to n-1 words by (i, j), words i to j-1; that of the lowest node over it."""
    label = dict(zip(pcfg.symbols, pcfg.labels, strict=True))
    n = len(tree.leaves())
    spans: dict[Span, str] = {}
    place = 0
    stack: list[tuple[Tree, int]] = [(tree, -1)]  # with the word it begins at, once its children are done
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
    """P(label of the lowest node over words i to j-1), `NONE` for no constituent; (len(names),), sums to one."""
    span = chart.span(i, j)
    weight = chart.closed[span] * chart.chart.bare[span]
    known = tables(chart.pcfg.exact)
    by_label = np.bincount(known.state_label, weight, minlength=len(known.labels))
    of_label = dict(zip(known.labels, by_label.tolist(), strict=True))
    row = np.array([of_label.get(name, 0.0) for name in names])
    row[names.index(NONE)] = max(0.0, 1.0 - float(row.sum()))
    return row


def _balanced(drawn: dict[Span, str], n: int, rng: np.random.Generator) -> list[Span]:
    """The constituents, and for each another span of its length, as far as there are some; in order."""
    chosen = set(drawn)
    for i, j in sorted(drawn):
        width = j - i
        others = [(k, k + width) for k in range(n - width + 1) if (k, k + width) not in chosen]
        if others:
            chosen.add(others[int(rng.integers(len(others)))])
    return sorted(chosen)
