"""The lexicon mode ``parse``: rare words are trained as classes by form, which unknown words then belong to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grammar.errors import InputError
from grammar.estimate.rules import RuleTable
from grammar.estimate.split_merge.encode import encode
from grammar.estimate.split_merge.estep import expected_counts
from grammar.estimate.split_merge.parameters import Layout, Parameters
from grammar.tree import Tree
from grammar.treebank.traverse import no_garbage_collection
from grammar.unknown import ANY, SCHEME, map_words, word_class, word_forms

NEW_FORM = 0.01  #: share of a class's unknown words left to `ANY`: forms that no rare word has

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WordClasses:
    """Which words of a treebank are rare, and the class of each."""

    frequent: frozenset[str]  #: words trained as they are
    rare: Mapping[str, str]  #: class of each rare word
    names: frozenset[str]  #: all classes with a rare word

    @classmethod
    def of(cls, trees: Sequence[Tree], rare: int, class_types: int) -> WordClasses:
        """Class the words seen at most ``rare`` times by their forms (`grammar.unknown.word_forms`).

        A class needs ``class_types`` different rare words; words of smaller ones go to the next coarser.

        Raises:
            InputError: no word is rare, or a word of the treebank has the name of a class.
        """
        counts = Counter(word for tree in trees for word in tree.leaves())
        forms = {word: word_forms(word) for word, count in sorted(counts.items()) if count <= rare}
        if not forms:
            raise InputError(
                f"no word is seen {rare} times or fewer, so nothing is known of unknown words;"
                " use the lexicon mode generate, or a larger number"
            )
        found: dict[str, str] = {}
        for place in range(max(map(len, forms.values())), 0, -1):  # from the last form, which is the coarsest
            groups: dict[str, list[str]] = defaultdict(list)
            for word, classes in forms.items():
                if word not in found and len(classes) >= place:
                    groups[classes[-place]].append(word)
            for name, words in groups.items():
                if len(words) >= class_types or name == ANY:
                    found.update(dict.fromkeys(words, name))
        names = frozenset(found.values())
        clash = sorted((names | {ANY}) & counts.keys())
        if clash:
            raise InputError(f"the word {clash[0]!r} of the treebank is also a class of unknown words; rename the word")
        return cls(frozenset(counts.keys() - found.keys()), found, names)

    def in_training(self, trees: Sequence[Tree]) -> list[Tree]:
        """The trees with every word that is not frequent replaced by its class."""
        return self._read(trees, self.frequent)

    def in_parsing(self, trees: Sequence[Tree]) -> list[Tree]:
        """The trees with every word never seen in training replaced by its class."""
        return self._read(trees, self.frequent | self.rare.keys())

    def as_meta(self, rare: int) -> dict[str, Any]:
        """What `grammar.unknown.read_words` needs, and how it came about."""
        return {"scheme": SCHEME, "rare": rare, "rare_words": len(self.rare), "classes": sorted(self.names | {ANY})}

    def _read(self, trees: Sequence[Tree], kept: Collection[str]) -> list[Tree]:
        read: dict[str, str] = {}

        def change(word: str) -> str:
            if word not in read:
                read[word] = word if word in kept else self.rare.get(word) or word_class(word, self.names)
            return read[word]

        with no_garbage_collection():
            return [map_words(tree, change) for tree in trees]


def with_words(parameters: Parameters, classes: WordClasses, trees: Sequence[Tree], prior: float) -> Parameters:
    """Give the rare words back their own probabilities, and leave a part of each class to unknown words.

    A substate keeps the probability it has for each frequent word, and for each class as a whole. Within a class
    and tag, a rare word of ``c`` occurrences and the unknown ones, of as many occurrences as there are different
    rare words (Witten and Bell 1991), share it in proportion. How a rare word's occurrences fall on the substates
    is what the trees say (one E-step) together with ``prior`` occurrences distributed as the class is.

    Args:
        parameters: trained on ``classes.in_training(trees)``.
        classes: of the words of ``trees``.
        trees: the binarised training trees, with their words.
        prior: occurrences, above 0.
    """
    lexicon = _Lexicon.of(parameters.layout.table, RuleTable.from_trees(trees), classes)
    start = _spread(parameters, lexicon, None, prior)
    _, counts = expected_counts(encode(trees, lexicon.table)[0], start)
    return _spread(parameters, lexicon, counts, prior)


@dataclass(frozen=True, eq=False)
class _Lexicon:
    """All words and classes of a treebank, and where the probability of each lexical rule comes from."""

    table: RuleTable  #: the count of a class's rule is its number of different rare words
    source: NDArray[np.int64]  #: (L,) trained rule that each lexical rule is a part of; -1 for none
    unseen: NDArray[np.bool_]  #: (L,) lexical rules that make classes

    @classmethod
    def of(cls, trained: RuleTable, known: RuleTable, classes: WordClasses) -> _Lexicon:
        """Join the rules of the trees as they are (``known``) with those of the classes (``trained``)."""
        rule_of = {(a, trained.words[w]): i for i, (a, _, _, w) in enumerate(trained.rules.tolist()) if w >= 0}
        words = tuple(sorted({*known.words, *classes.names, ANY}))
        word_id = {word: i for i, word in enumerate(words)}
        lexical = known.rules[:, 3] >= 0
        rows: list[tuple[int, int, int, int, bool]] = []  # parent, word, count, source, unseen
        types: Counter[tuple[int, str]] = Counter()
        pairs = known.rules[lexical][:, [0, 3]].tolist()
        for (parent, word), count in zip(pairs, known.counts[lexical].tolist(), strict=True):
            name = known.words[word]
            group = classes.rare.get(name)
            if group is not None:
                types[parent, group] += 1
            rows.append((parent, word_id[name], count, rule_of[parent, group or name], False))
        for (parent, name), count in types.items():
            rows.append((parent, word_id[name], count, rule_of[parent, name], True))
        for parent in {parent for parent, _ in types}:
            if (parent, ANY) not in types:
                rows.append((parent, word_id[ANY], 1, -1, True))
        table = np.array(sorted(rows), dtype=np.int64)
        absent = np.full(len(table), -1)
        rules = np.concatenate([known.rules[~lexical], np.column_stack([table[:, 0], absent, absent, table[:, 1]])])
        counts = np.concatenate([known.counts[~lexical], table[:, 2]])
        full = RuleTable(known.symbols, words, rules.astype(np.int32), counts, known.n_trees, known.n_tokens)
        return cls(full, table[:, 3], table[:, 4] > 0)


def _spread(parameters: Parameters, lexicon: _Lexicon, counts: FloatArray | None, prior: float) -> Parameters:
    """Spread the probability of each trained terminal over the words and the class that it stands for.

    Without ``counts`` (expected uses of the rules of the result's layout) in every substate alike.
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
        weight = lexicon.table.counts[rule + at : rule + at + n, None] * np.ones(substates)
        if counts is not None:
            own = counts[block.start : block.stop].reshape(n, substates)
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


def _leaning(
    own: FloatArray, source: NDArray[np.int64], unseen: NDArray[np.bool_], n_sources: int, prior: float
) -> FloatArray:
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
