"""The lexicon of mode ``parse``: classes of rare words made words again, with a part left to unknown ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.grammar.estimate.rules import RuleTable
from truesource.grammar.estimate.split_merge.encode import encode
from truesource.grammar.estimate.split_merge.estep import expected_entries
from truesource.grammar.estimate.split_merge.parameters import Layout, Parameters
from truesource.grammar.estimate.split_merge.sparse import SparseRules
from truesource.grammar.estimate.split_merge.word_classes import RareWordClasses
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.tree import Tree
from truesource.grammar.unknown import ANY, word_class

NEW_FORM = 0.01  #: share of a class's unknown words left to `ANY`: forms that no rare word has


def with_words(
    parameters: Parameters, classes: RareWordClasses, trees: Sequence[Tree], prior: float, tag_prior: float
) -> Parameters:
    """Give the rare words back their own probabilities, and leave a part of each class to unknown words.

    A substate keeps the probability it has for each frequent word, and for each class as a whole. Within a class
    and tag, a rare word of ``c`` occurrences and the unknown ones, of as many occurrences as there are different
    rare words (Witten and Bell 1991), share it in proportion. A rare word's occurrences fall on the tags as the trees
    say together with ``tag_prior`` occurrences distributed as the tags of its class are over different words, so it
    may have a tag that it was never seen with; for these other tags, a frequent word counts as a rare one of the class
    that its form belongs to. A rare word's occurrences fall on the substates of a tag as the trees say (one E-step)
    together with ``prior`` occurrences distributed as the class is.

    Args:
        parameters: trained on ``classes.in_training(trees)``.
        classes: of the words of ``trees``.
        trees: the binarised training trees, with their words.
        prior: occurrences, above 0.
        tag_prior: occurrences, 0 or more.
    """
    lexicon = _Lexicon.of(parameters.layout.table, RuleTable.from_trees(trees), classes, tag_prior)
    rules = SparseRules.of(_spread(parameters, lexicon, None, prior))
    _, counts = expected_entries(encode(trees, lexicon.table)[0], rules)
    return _spread(parameters, lexicon, rules.flat(counts)[_first_lexical(rules.layout) :].copy(), prior)


def _first_lexical(layout: Layout) -> int:
    """Position of the first lexical rule in the flat array."""
    return int(layout.rules[np.argmax(layout.table.rules[:, 3] >= 0), 0])


@dataclass(frozen=True, eq=False)
class _Lexicon:
    """All words and classes of a treebank, and where the probability of each lexical rule comes from."""

    table: RuleTable  #: a rule that no tree has counts as seen once, a class's as often as it has different words
    source: IntArray  #: (L,) trained rule that each lexical rule is a part of; -1 for none
    unseen: BoolArray  #: (L,) lexical rules that make classes
    weight: FloatArray  #: (L,) occurrences of each lexical rule: for rare words those of `_tag_counts`

    @classmethod
    def of(cls, trained: RuleTable, known: RuleTable, classes: RareWordClasses, tag_prior: float) -> _Lexicon:
        """Join the rules of the trees as they are (``known``) with those of the classes (``trained``)."""
        rule_of = {(a, trained.words[w]): i for i, (a, _, _, w) in enumerate(trained.rules.tolist()) if w >= 0}
        words = tuple(sorted({*known.words, *classes.names, ANY}))
        word_id = {word: i for i, word in enumerate(words)}
        lexical = known.rules[:, 3] >= 0
        seen: dict[str, dict[int, float]] = defaultdict(dict)  # occurrences of each word by parent
        pairs = known.rules[lexical][:, [0, 3]].tolist()
        for (parent, word), count in zip(pairs, known.counts[lexical].tolist(), strict=True):
            seen[known.words[word]][parent] = float(count)
        types: dict[str, Counter[int]] = defaultdict(Counter)  # different rare words of each class by parent
        for name, label in classes.rare.items():
            types[label].update(seen[name].keys())
        rows: list[tuple[int, int, int, bool, float]] = []  # parent, word, source, unseen, weight
        for name, found in seen.items():
            rare = name in classes.rare
            group = classes.rare[name] if rare else word_class(name, classes.names)
            for a, n in _tag_counts(found, types.get(group, {}), tag_prior).items():
                if rare or a not in found:
                    rows.append((a, word_id[name], rule_of[a, group], False, n))
            if not rare:
                rows += [(a, word_id[name], rule_of[a, name], False, n) for a, n in found.items()]
        for label, parents in types.items():
            rows += [(a, word_id[label], rule_of[a, label], True, float(k)) for a, k in parents.items()]
        for parent in {parent for parents in types.values() for parent in parents} - types.get(ANY, Counter()).keys():
            rows.append((parent, word_id[ANY], -1, True, 1.0))
        rows.sort()
        table = np.array([row[:2] for row in rows], dtype=np.int64)
        absent = np.full(len(table), -1)
        rules = np.concatenate([known.rules[~lexical], np.column_stack([table[:, 0], absent, absent, table[:, 1]])])
        weight = np.array([row[4] for row in rows])
        counts = np.concatenate([known.counts[~lexical], np.maximum(np.rint(weight), 1.0).astype(np.int64)])
        full = RuleTable(known.symbols, words, rules.astype(np.int32), counts, known.n_trees, known.n_tokens)
        return cls(full, np.array([row[2] for row in rows]), np.array([row[3] for row in rows]), weight)


def _tag_counts(seen: Mapping[int, float], types: Mapping[int, int], prior: float) -> dict[int, float]:
    """Occurrences of a rare word by tag, as many as ``seen`` has, with ``prior`` of them as in the class.

    Args:
        seen: occurrences by tag.
        types: different words of the class by tag.
        prior: occurrences added before all are scaled back to as many as there were.
    """
    if prior == 0.0:
        return dict(seen)
    total, n_types = sum(seen.values()), sum(types.values())
    shrunk = total / (total + prior)
    return {tag: shrunk * (seen.get(tag, 0.0) + prior * n / n_types) for tag, n in types.items()}


def _spread(parameters: Parameters, lexicon: _Lexicon, counts: FloatArray | None, prior: float) -> Parameters:
    """Spread the probability of each trained terminal over the words and the class that it stands for.

    Without ``counts`` (expected uses of the lexical rules of the result's layout) in every substate alike.
    """
    layout = Layout(lexicon.table, parameters.layout.substates)
    prob = np.zeros(layout.size)
    trained = [(block, table) for block, table in parameters.blocks() if block.left < 0]
    blocks = [block for block in layout.blocks if block.left < 0]
    prob[: blocks[0].start] = parameters.prob[: trained[0][0].start]
    any_word = lexicon.table.words.index(ANY)
    rule = len(lexicon.table.rules) - len(lexicon.source)  # first lexical rule
    first = len(parameters.layout.table.rules) - sum(block.shape[0] for block, _ in trained)
    at = 0
    for (old, old_prob), block in zip(trained, blocks, strict=True):
        n, substates = block.shape[0], block.shape[3]
        here = slice(at, at + n)
        source, unseen = lexicon.source[here] - first, lexicon.unseen[here]
        weight = lexicon.weight[here, None] * np.ones(substates)
        if counts is not None:
            own = counts[block.start - blocks[0].start : block.stop - blocks[0].start].reshape(n, substates)
            weight *= _leaning(own, source, unseen, old.shape[0], prior)
        at, first = at + n, first + old.shape[0]
        joined = source >= 0
        total = np.zeros((old.shape[0], substates))
        np.add.at(total, source[joined], weight[joined])
        fine = np.zeros((n, substates))
        fine[joined] = old_prob.reshape(-1, substates)[source[joined]] * weight[joined] / total[source[joined]]
        if unseen.any():
            (any_rule,) = np.flatnonzero(lexicon.table.rules[rule + at - n : rule + at, 3] == any_word)
            left = NEW_FORM * fine[unseen]
            fine[unseen] -= left
            fine[any_rule] += left.sum(axis=0)
        prob[block.start : block.stop] = fine.ravel()
    return Parameters(layout, prob, parameters.trees)


def _leaning(own: FloatArray, source: IntArray, unseen: BoolArray, n_sources: int, prior: float) -> FloatArray:
    """How much more often than its class a word falls on each substate, (rules, substates); 1 for the class itself.

    ``own`` are the expected uses in the trees. The share of a word's occurrences that fall on a substate is
    estimated with ``prior`` occurrences more, distributed as the class is.
    """
    group = np.zeros((n_sources, own.shape[1]))
    words = ~unseen
    np.add.at(group, source[words], own[words])
    size = group.sum(axis=1, keepdims=True)
    share = np.divide(group, size, out=np.zeros_like(group), where=size > 0.0)[source[words]]
    uses = own[words].sum(axis=1, keepdims=True)
    found = (own[words] + prior * share) / (uses + prior)
    result = np.ones_like(own)
    result[words] = np.divide(found, share, out=np.ones_like(found), where=share > 0.0)
    return result
