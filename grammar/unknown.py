"""Unknown words: their classes by form, and sentences as read by a grammar with such classes.

A grammar induced with the lexicon mode ``parse`` has classes of unknown words among its terminals
(``meta["unknown_words"]`` names them). The class of a word depends only on its letters, never on its position.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree, map_words, no_garbage_collection

ANY = "<unk>"  #: the class of every word, coarser than all others
SCHEME = "form"  #: name of the scheme of `word_forms`, in ``meta["unknown_words"]["scheme"]``
LONGEST_ENDING = 3  #: letters

_DIGITS = re.compile(r"\d+")


def word_forms(word: str) -> tuple[str, ...]:
    """Return the classes of a word by its form, finest first, `ANY` last.

    * Digits without letters: ``<unk:num:SHAPE>``, runs of up to four digits written as zeros, then ``<unk:num>``.
    * Neither letters nor digits: ``<unk:sym>``.
    * Others: ``low``, ``cap`` (first letter), ``caps`` (all letters, two or more) or ``mix`` (digits and
      letters); ``+dash`` with a hyphen inside; then the last three, two, one or no letters, in lower case, as long
      as two characters precede them.

    >>> word_forms("Well-being")[:2]
    ('<unk:cap+dash~ing>', '<unk:cap+dash~ng>')
    >>> word_forms("1984")
    ('<unk:num:0000>', '<unk:num>', '<unk>')
    """
    letters = [c for c in word if c.isalpha()]
    digits = any(c.isdigit() for c in word)
    if not letters:
        if not digits:
            return ("<unk:sym>", ANY)
        shape = _DIGITS.sub(lambda run: "0" * min(len(run[0]), 4), word)
        return (f"<unk:num:{shape}>", "<unk:num>", ANY)
    if digits:
        kind = "mix"
    elif len(letters) > 1 and all(c.isupper() for c in letters):
        kind = "caps"
    else:
        kind = "cap" if letters[0].isupper() else "low"
    kind += "+dash" if "-" in word[1:-1] else ""
    ending = word.lower()
    sizes = [n for n in range(LONGEST_ENDING, 0, -1) if len(word) >= n + 2 and ending[-n:].isalpha()]
    return (*(f"<unk:{kind}~{ending[-n:]}>" for n in sizes), f"<unk:{kind}>", ANY)


def word_class(word: str, classes: Collection[str]) -> str:
    """Return the finest of ``classes`` that the word belongs to, `ANY` if it belongs to none."""
    return next((form for form in word_forms(word) if form in classes), ANY)


def read_words(pcfg: PCFG, sentence: Sequence[str]) -> list[str]:
    """Return the sentence as the grammar reads it: words outside its lexicon replaced by their classes.

    An unknown first word is first tried in lower case, since a capital there is uninformative. A grammar without
    classes of unknown words (lexicon mode ``generate``) leaves every sentence unchanged.

    Raises:
        InputError: the grammar has classes by a scheme that this version does not support.
    """
    unknown = pcfg.meta.get("unknown_words")
    if unknown is None:
        return list(sentence)
    if unknown.get("scheme") != SCHEME:
        raise InputError(
            f"the grammar classes unknown words by {unknown.get('scheme')!r}; this version supports {SCHEME!r}"
        )
    lexicon = pcfg.word_ids
    classes = lexicon.keys() & set(unknown["classes"])
    words = [word if word in lexicon else word_class(word, classes) for word in sentence]
    if words and words[0] != sentence[0] and sentence[0].lower() in lexicon:
        words[0] = sentence[0].lower()
    return words


def put_words(tree: Tree, words: Sequence[str]) -> Tree:
    """Return the tree with its words replaced by the same number of words.

    Raises:
        InputError: the numbers of words differ.
    """
    left = list(words)
    if len(tree.leaves()) != len(left):
        raise InputError(f"expecting {len(tree.leaves())} words for the tree, got {len(left)}")
    left.reverse()
    return map_words(tree, lambda _: left.pop())


@dataclass(frozen=True, eq=False)
class RareWordClasses:
    """The rare words of a treebank, and the class of each."""

    frequent: frozenset[str]  #: words that keep their identity in training
    rare: Mapping[str, str]  #: class of each rare word
    names: frozenset[str]  #: all classes with a rare word

    @classmethod
    def of(cls, counts: Mapping[str, int], rare: int, class_types: int) -> RareWordClasses:
        """Return classes of the words of at most ``rare`` occurrences by their forms, see `word_forms`.

        A class needs ``class_types`` rare types; words of smaller classes go to the next coarser one.

        Raises:
            InputError: no word is rare, or a word of the treebank has the name of a class.
        """
        forms = {word: word_forms(word) for word, count in sorted(counts.items()) if count <= rare}
        if not forms:
            raise InputError(
                f"no word occurs {rare} times or fewer, so there are no data on unknown words;"
                " use the lexicon mode generate, or a larger number"
            )
        result: dict[str, str] = {}
        for place in range(max(map(len, forms.values())), 0, -1):  # from the last form, which is the coarsest
            groups: dict[str, list[str]] = defaultdict(list)
            for word, classes in forms.items():
                if word not in result and len(classes) >= place:
                    groups[classes[-place]].append(word)
            for name, words in groups.items():
                if len(words) >= class_types or name == ANY:
                    result.update(dict.fromkeys(words, name))
        names = frozenset(result.values())
        clash = sorted((names | {ANY}) & counts.keys())
        if clash:
            raise InputError(f"the word {clash[0]!r} of the treebank is also a class of unknown words; rename the word")
        return cls(frozenset(counts.keys() - result.keys()), result, names)

    def in_training(self, trees: Sequence[Tree]) -> list[Tree]:
        """Return the trees with every word that is not frequent replaced by its class."""
        return self._read(trees, self.frequent)

    def in_parsing(self, trees: Sequence[Tree]) -> list[Tree]:
        """Return the trees with every word never seen in training replaced by its class."""
        return self._read(trees, self.frequent | self.rare.keys())

    def as_meta(self, rare: int) -> dict[str, object]:
        """Return a record for `truesource.grammar.unknown.read_words`, and on its origin."""
        return {"scheme": SCHEME, "rare": rare, "rare_words": len(self.rare), "classes": sorted(self.names | {ANY})}

    def _read(self, trees: Sequence[Tree], in_lexicon: Collection[str]) -> list[Tree]:
        read: dict[str, str] = {}

        def change(word: str) -> str:
            if word not in read:
                read[word] = word if word in in_lexicon else self.rare.get(word) or word_class(word, self.names)
            return read[word]

        with no_garbage_collection():
            return [map_words(tree, change) for tree in trees]
