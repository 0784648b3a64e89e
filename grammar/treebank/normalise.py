"""Normalise treebank trees: empty nodes, function tags, root label, unary chains, case, rare words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.conventions import CONVENTIONS, Convention, Ledger, Name, generalised
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import line_of_settings
from truesource.grammar.support.records import check_fields
from truesource.grammar.tree import Tree, fold, is_word_label, map_words
from truesource.grammar.treebank.brackets import LooseWordError, first_words, tagged

NO_WORDS = "no words left"  #: reason to refuse a tree without remaining words
BRACKETS = frozenset(["-LRB-", "-RRB-", "-LCB-", "-RCB-", "-LSB-", "-RSB-"])  #: words that are never lower-cased

#: Suffixes in a signature, after three letters or more; the first match applies.
_ENDINGS = ("ness", "ment", "ing", "ion", "ity", "est", "ous", "ive", "ful", "ble", "ed", "er", "al", "ly", "y", "s")
_SPACE = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Normalisation:
    r"""Steps of cleaning every tree, in the order of the fields. The defaults follow Petrov et al. (2006).

    White space inside a word (a no-break space, or an escape such as ``\x20``) always becomes ``_``: corpora are text
    with spaces between words. Normalisation is idempotent, except for rare words, which are counted anew. In Penn's
    convention a category ends at the first ``-`` or ``=``, except for a first character (``-LRB-``) and a part of one
    letter after the category (``PRP-S``); quoted words that label themselves (``'x-a'``) are unchanged in every
    convention. Collapsed chains keep the root and the preterminals. Classes of rare words: `signature`; conventions:
    `truesource.grammar.conventions`.

    Raises:
        InputError: an unknown option, or ``rare_below`` and ``unknown`` that contradict each other.
    """

    advanced: ClassVar = frozenset(
        {"strip_empty", "strip_functions", "root", "root_aliases", "unaries", "rare_below", "unknown"}
    )
    strip_empty: Annotated[
        bool, Field(description="Remove empty elements such as traces (-NONE-), and nodes that become empty.")
    ] = True
    strip_functions: Annotated[
        bool, Field(description="Reduce labels to the category, by the convention: NP-SBJ=2 becomes NP.")
    ] = True
    root: Annotated[
        str | None,
        Field(description="Label put above every tree with another top label; none: leave tops unchanged."),
    ] = "ROOT"
    root_aliases: Annotated[tuple[str, ...], Field(description="Top labels that root replaces.")] = (
        "",
        "TOP",
        "S1",
        "VROOT",
    )
    unaries: Annotated[
        Literal["keep", "same", "collapse"],
        Field(description="Unary chains: keep all, drop an X above an X (same), keep the top phrase (collapse)."),
    ] = "same"
    lowercase: Annotated[bool, Field(description="Lower-case the words, except -LRB- and similar.")] = False
    lengths: Annotated[
        LengthRange | None, Field(description="Range of lengths of trees in words, such as 1..60; none: all lengths.")
    ] = None
    rare_below: Annotated[
        int,
        Field(
            ge=0,
            description="Replace words that occur less often in the resulting trees, by unknown; 0: none.",
        ),
    ] = 0
    unknown: Annotated[
        Literal["keep", "unk", "signature"],
        Field(description="Replacement of rare words: <unk> (unk), or a class by form such as <unk-ing> (signature)."),
    ] = "keep"
    convention: Annotated[
        Name,
        Field(description="Annotation of the treebank: which leaves are words, which part of a label is its category."),
    ] = "penn"

    annotation: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=3,
            description="Sign in a leaf before its lemma or tag, such as - in cats-cat or / in cat/NN; the word is"
            " the part before the last sign. none: the sign of the convention.",
        ),
    ] = None
    loose_words: Annotated[
        Literal["tag", "first"] | None,
        Field(
            description="Trees with a word next to other children of its node, as in (NP New York): tag puts its own"
            " tag, the word in quotes, above each such word; first takes the first of several words, as in (NN"
            " dogs dog) of a word and its lemma; none: such trees are excluded.",
        ),
    ] = None

    def __repr__(self) -> str:
        defaults = {field.name: field.default for field in fields(self)}
        return line_of_settings(type(self).__name__, {name: getattr(self, name) for name in defaults}, defaults)

    def __post_init__(self) -> None:
        check_fields(self, "normalisation")
        if self.root == "":
            raise InputError("the root label cannot be empty; set a label, or None to leave tops unchanged")
        if (self.rare_below > 1) != (self.unknown != "keep"):
            raise InputError(
                f"rare_below={self.rare_below} and unknown={self.unknown!r} contradict each other;"
                " replacing rare words needs rare_below of 2 or more and unknown 'unk' or 'signature'"
            )

    def apply(self, tree: Tree, ledger: Ledger | None = None) -> Tree | None:
        """Return the normalised tree, or None if no word is left; lengths and rare words are not checked.

        Args:
            tree: the tree as read.
            ledger: records what was dropped, cut and joined.

        Raises:
            LooseWordError: a word is not the only child of its node, and such words are not given tags.
        """
        if self.loose_words is not None:
            whole, tree = tree, tagged(tree) if self.loose_words == "tag" else first_words(tree)
            if ledger is not None and self.loose_words == "first":
                ledger.further += len(whole.leaves()) - len(tree.leaves())

        def combine(node: Tree, values: list[Tree | None]) -> Tree | None:
            top = node is tree
            if len(node.children) > 1 and len(values) < len(node.children):
                raise LooseWordError(node)
            label = self._label(node.label, top)
            short = _category(node.label, self.convention) if self.strip_functions else node.label
            if ledger is not None and short != node.label:
                ledger.cut[node.label, short] += 1
            if not values:
                return self._preterminal(node, label, short, ledger)
            children = [value for value in values if value is not None]
            if not children:
                return None
            if self.strip_empty and _is_no_constituent(short, self.convention):
                if ledger is not None:
                    ledger.dropped[generalised(short)] += sum(len(child.leaves()) for child in children)
                return None
            if len(children) == 1 and (not label or self._swallows(label, children[0], top)):
                return children[0] if not label or label == children[0].label else Tree(label, children[0].children)
            return Tree(label, tuple(children))

        result = fold(tree, combine)
        if result is not None and self._convention.joint:
            result = self._joined(result, ledger)
        if result is None or self.root is None or result.label == self.root:
            return result
        return Tree(self.root, (result,))

    @property
    def _convention(self) -> Convention:
        return CONVENTIONS[self.convention]

    def _joined(self, tree: Tree, ledger: Ledger | None) -> Tree | None:
        """Return the tree with the parts of each split word joined at the position of the first part."""
        joint = self._convention.joint
        words = tree.leaves()
        merged: list[str | None] = []
        last = 0  # index of the word that the next part belongs to
        for i, word in enumerate(words):
            if i and word.startswith(joint) and words[i - 1].endswith(joint):
                merged.append(None)
                merged[last] = str(merged[last]).removesuffix(joint) + word.removeprefix(joint)
            else:
                merged.append(word)
                last = i
        joined = merged.count(None)
        if not joined:
            return tree
        if ledger is not None:
            ledger.joined += joined
        rest = iter(merged)

        def combine(node: Tree, values: list[Tree | None]) -> Tree | None:
            if not values:
                word = next(rest)
                return None if word is None else Tree(node.label, (word,))
            children = [value for value in values if value is not None]
            if len(children) == 1 and self._swallows(node.label, children[0], node is tree):
                return Tree(node.label, children[0].children)
            return Tree(node.label, tuple(children)) if children else None

        return fold(tree, combine)

    def refusal(self, tree: Tree | None) -> str | None:
        """Return the reason to refuse the result of `apply`; None if it is accepted."""
        if tree is None:
            return NO_WORDS
        if not tree.label:
            return "no label above several constituents"
        if self.lengths is not None and len(tree.leaves()) not in self.lengths:
            return f"length outside {self.lengths}"
        return None

    def _label(self, label: str, top: bool) -> str:
        label = _category(label, self.convention) if self.strip_functions else label
        return self.root if top and self.root is not None and label in self.root_aliases else label

    def _preterminal(self, node: Tree, label: str, short: str, ledger: Ledger | None) -> Tree | None:
        if not node.children:
            return None
        whole = word = str(node.children[0])
        separator = self.annotation or self._convention.annotation
        if separator:
            form, _, rest = whole.rpartition(separator)
            word = form if form and rest else whole
        if self.strip_empty:
            by_label = _is_no_constituent(short, self.convention)
            if by_label or _is_no_word(word, self.convention) or _is_no_word(f"{short} {word}", self.convention, True):
                if ledger is not None:
                    ledger.dropped[generalised(short if by_label else word)] += 1
                return None
        if ledger is not None and word is not whole:
            ledger.separated[separator] += 1
        words = (_clean_word(word, self.lowercase),)
        return node if label == node.label and words == node.children else Tree(label, words)

    def _swallows(self, label: str, child: Tree, top: bool) -> bool:
        if self.unaries == "keep":
            return False
        if label == child.label:
            return True
        return self.unaries == "collapse" and not child.is_preterminal and not (top and label == self.root)


def _clean_word(word: str, lowercase: bool) -> str:
    if word.split() != [word]:
        word = _SPACE.sub("_", word)
    return word.lower() if lowercase and word not in BRACKETS else word


@lru_cache(maxsize=100_000)
def _category(label: str, convention: Name) -> str:
    match = None if is_word_label(label) else re.match(CONVENTIONS[convention].category, label)
    return label if match is None else match[0]


@lru_cache(maxsize=100_000)
def _is_no_constituent(label: str, convention: Name) -> bool:
    return re.fullmatch(CONVENTIONS[convention].nodes, label, re.DOTALL) is not None


@lru_cache(maxsize=100_000)
def _is_no_word(word: str, convention: Name, is_tagged: bool = False) -> bool:
    pattern = CONVENTIONS[convention].tagged_words if is_tagged else CONVENTIONS[convention].words
    return re.fullmatch(pattern, word, re.DOTALL) is not None


def signature(word: str) -> str:
    """Return the class of an unknown word by its form: ``<unk-num>``, ``<unk-sym>``, or its case, hyphen and ending.

    Examples: ``1984`` is ``<unk-num>``, ``--`` is ``<unk-sym>``, ``NATO`` is ``<unk-caps>``,
    ``Rockets`` is ``<unk-cap-s>``, ``well-being`` is ``<unk-dash-ing>``, ``dog`` is ``<unk>``.
    """
    if any(c.isdigit() for c in word):
        return "<unk-num>"
    if not any(c.isalpha() for c in word):
        return "<unk-sym>"
    features = ["unk"]
    if word.isupper() and len(word) > 1:
        features.append("caps")
    elif word[0].isupper():
        features.append("cap")
    if "-" in word[1:-1]:
        features.append("dash")
    if not word.isupper():
        ending = next((e for e in _ENDINGS if len(word) > len(e) + 2 and word.endswith(e)), None)
        features += [] if ending is None else [ending]
    return f"<{'-'.join(features)}>"


def replace_unknown(
    trees: Iterable[Tree], vocabulary: Collection[str], unknown: Literal["unk", "signature"]
) -> list[Tree]:
    """Return the trees with every word outside ``vocabulary`` replaced by ``<unk>`` or its `signature`."""
    classes: dict[str, str] = {}

    def word_of(word: str) -> str:
        if word in vocabulary:
            return word
        if word not in classes:
            classes[word] = "<unk>" if unknown == "unk" else signature(word)
        return classes[word]

    return [map_words(tree, word_of) for tree in trees]


def frequent_words(trees: Iterable[Tree], at_least: int) -> set[str]:
    """Return words that occur at least ``at_least`` times."""
    counts = Counter(word for tree in trees for word in tree.leaves())
    return {word for word, count in counts.items() if count >= at_least}
