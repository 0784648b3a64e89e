"""Mode ``parse``: rare words are trained as classes by form, which unknown words then belong to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.traverse import no_garbage_collection
from truesource.grammar.unknown import ANY, SCHEME, map_words, word_class, word_forms


@dataclass(frozen=True, eq=False)
class RareWordClasses:
    """Which words of a treebank are rare, and the class of each."""

    frequent: frozenset[str]  #: words trained as they are
    rare: Mapping[str, str]  #: class of each rare word
    names: frozenset[str]  #: all classes with a rare word

    @classmethod
    def of(cls, trees: Sequence[Tree], rare: int, class_types: int) -> RareWordClasses:
        """Class the words seen at most ``rare`` times by their forms (`truesource.grammar.unknown.word_forms`).

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
        """What `truesource.grammar.unknown.read_words` needs, and how it came about."""
        return {"scheme": SCHEME, "rare": rare, "rare_words": len(self.rare), "classes": sorted(self.names | {ANY})}

    def _read(self, trees: Sequence[Tree], kept: Collection[str]) -> list[Tree]:
        read: dict[str, str] = {}

        def change(word: str) -> str:
            if word not in read:
                read[word] = word if word in kept else self.rare.get(word) or word_class(word, self.names)
            return read[word]

        with no_garbage_collection():
            return [map_words(tree, change) for tree in trees]
