"""Exact targets for spans of words: which phrase, if any, they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.probing.settings import Truth
from truesource.evaluation.probing.targets import Targets, used_labels
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.inference.posterior import Posterior, posterior, tables
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import meter
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.binarise import INTERMEDIATE

NONE = "(none)"  #: label of a span that is no constituent
Span = tuple[int, int]


def span_targets(
    oracle: Oracle, sentences: Sequence[Sequence[str]], *, truth: Truth = "argmax", seed: int = DEFAULT_SEED
) -> Targets:
    """For some spans of two words or more the exact posterior of the phrase label, `NONE` among them.

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
    language = oracle.language
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
                found = posterior(language, words)
            except InputError:
                excluded.append(number)
                continue
            rng = np.random.default_rng([seed, number])
            chosen = _balanced(constituents(found.sample(rng), language), len(words), rng)
            if truth == "sampled":
                other = constituents(found.sample(np.random.default_rng([seed, number, 1])), language)
                right += [column[other.get(span, NONE)] for span in chosen]
            for i, j in chosen:
                rows.append(span_posterior(found, i, j, names))
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
    found: dict[Span, str] = {}
    place = 0
    stack: list[tuple[Tree, int]] = [(tree, -1)]  # with the word it begins at, once its children are done
    while stack:
        node, begin = stack.pop()
        if begin >= 0:
            name = label[node.label]
            if 2 <= place - begin < n and not name.startswith(INTERMEDIATE):
                found[begin, place] = name
        elif node.is_preterminal:
            place += 1
        else:
            if len(node.children) > 1:
                stack.append((node, place))
            stack.extend((child, -1) for child in reversed(node.children) if isinstance(child, Tree))
    return found


def span_posterior(found: Posterior, i: int, j: int, names: Sequence[str]) -> FloatArray:
    """P(label of the lowest node over words i to j-1), `NONE` for no constituent; (len(names),), sums to one."""
    span = found.span(i, j)
    weight = found.closed[span] * found.chart.bare[span]
    known = tables(found.pcfg.exact)
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
