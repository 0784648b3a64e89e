"""Exact targets of probes: for every word, the posterior of the symbol that makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.probing.settings import Given, Kind, Truth
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.inference.distributions import Distributions, class_posteriors, next_token_distributions
from truesource.grammar.inference.posterior import posterior
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.printable import meter

SEPARATOR = " … "  #: between the two ends of a span in its key
LEAST = 1e-12  #: a label with less than this, in all items together, is none


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
    """For every word the exact posterior of its preterminal, coarse (its treebank tag) or fine (the symbol itself).

    Sentences are read as the oracle reads them, so words that the model does not tell apart are ``<unk>`` here too.

    Args:
        oracle: with the vocabulary of the model, see `truesource.evaluation.core.comparison.oracle_for`.
        sentences: at least one word each.
        kind: ``tag`` or ``state``.
        given: the whole ``sentence``, or its words up to this one (``left``), under the oracle's length condition.
        truth: what counts as right: the most probable label (``argmax``), or that of a derivation drawn from the
            posterior given the sentence (``sampled``, one a sentence, as in Jumelet and Zuidema 2023).
        seed: of the derivations.

    Raises:
        InputError: the grammar can make none of the sentences, or there are fewer than two labels.
    """
    language = oracle.language
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
    language = oracle.language
    columns = language.exact.emission.tocsc()
    tables = [np.zeros((len(sentence), n_classes)) for sentence in seen]
    whole = np.zeros(len(seen), dtype=bool)

    def reduce(block: Distributions) -> tuple[Distributions, FloatArray]:
        found = np.zeros((len(block.members), n_classes))
        for row, word in enumerate(block.observed.tolist()):
            if block.possible[row] and 0 <= word < len(language.terminals):
                rules = slice(columns.indptr[word], columns.indptr[word + 1])
                states = columns.indices[rules]
                weight = block.states[row, states] * columns.data[rules]
                if weight.sum() > 0.0:
                    found[row] = np.bincount(classes[states], weight / weight.sum(), minlength=n_classes)
        return block, found

    for block, found in next_token_distributions(language.exact, seen, reduce, oracle.lengths):
        for row, members in enumerate(block.members):
            for i in members:
                whole[i] = block.whole[row]
                if block.position < len(seen[i]):
                    tables[i][block.position] = found[row]
    return [table if whole[i] else np.zeros_like(table) for i, table in enumerate(tables)]


def _drawn_preterminals(
    language: PCFG, sentences: Sequence[Sequence[str]], numbers: Sequence[int], seed: int
) -> list[str]:
    """The symbol above each word in one derivation of each sentence, drawn from the exact posterior."""
    found = []
    with meter("sampled derivations of sentences", len(sentences)) as bar:
        for sentence, number in zip(sentences, numbers, strict=True):
            tree = posterior(language, sentence).sample(np.random.default_rng([seed, number]))
            found += [node.label for node in tree.subtrees() if node.is_preterminal]
            bar.advance()
    return found
