"""The rules of a grammar: a frozen set of arrays, checked at construction."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truesource.grammar.sentences import takes_sentence
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import counted
from truesource.grammar.word_numbers import decoded

ROW_TOLERANCE = 1e-6  #: tolerance of the sum of a symbol's rule probabilities
_SPACE = re.compile(r"[ \t\r\n\f\v]")  #: separators of words in texts; other white space may be part of a word
ROUNDING = 1e-12  #: deviation of the sum from one due to float64; rows with a larger one are divided by their sum


@dataclass(frozen=True, eq=False)
class GrammarRules:
    """The rules of a probabilistic context-free grammar: binary, unary and lexical rules, without empty rules.

    Any symbol may have rules of all three kinds; unary cycles and left recursion are allowed. States are numbered 0 to
    S-1 in the order of ``symbols``, words 0 to V-1 in the order of ``vocabulary``. Rule arrays are sorted (binary by
    left, right, parent; unary by child, parent; lexical by word, parent) and read-only. Rules of a symbol that sum to
    one only within 1e-6, as rounded ones do, are divided by their sum: all exact quantities are of a proper grammar.

    Raises:
        InputError: a name is not a Unicode string, an index is out of range, a rule is duplicated, a probability is not
            in (0, 1], or the rules of a symbol do not sum to one within 1e-6 (the message names the symbol).
    """

    symbols: tuple[str, ...]  #: (S,) names, all distinct
    vocabulary: tuple[str, ...]  #: (V,) words, all distinct
    start: int  #: start state of every derivation
    binary: Int32Array  #: (R, 3) parent, left child, right child
    binary_logp: FloatArray  #: (R,) nats
    unary: Int32Array  #: (Q, 2) parent, child
    unary_logp: FloatArray  #: (Q,) nats
    lexical: Int32Array  #: (L, 2) parent, word
    lexical_logp: FloatArray  #: (L,) nats
    labels: tuple[str, ...]  #: (S,) treebank label each state projects to; ``@...`` is from binarisation
    meta: Mapping[str, Any] = field(default_factory=dict)  #: JSON values on how it was made; not part of the digest

    def __post_init__(self) -> None:
        for names in (self.symbols, self.vocabulary, self.labels):
            _require_texts(names)
        _require_words(self.vocabulary)
        n_symbols, n_words = len(self.symbols), len(self.vocabulary)
        if n_symbols == 0 or len(set(self.symbols)) != n_symbols:
            raise InputError("a grammar needs at least one symbol, and distinct symbols")
        if len(set(self.vocabulary)) != n_words:
            raise InputError("a word is twice in the vocabulary; remove one")
        if len(self.labels) != n_symbols:
            raise InputError(f"expecting {n_symbols} labels (one per symbol), got {len(self.labels)}")
        if not 0 <= self.start < n_symbols:
            raise InputError(f"the start symbol's number {self.start} is not in 0..{n_symbols - 1}")
        limits = {
            "binary": (n_symbols, n_symbols, n_symbols),
            "unary": (n_symbols, n_symbols),
            "lexical": (n_symbols, n_words),
        }
        for name, sizes in limits.items():
            rules = np.ascontiguousarray(getattr(self, name), dtype=np.int32).reshape(-1, len(sizes))
            logp = np.ascontiguousarray(getattr(self, f"{name}_logp"), dtype=np.float64)
            if logp.shape != (len(rules),):
                raise InputError(f"expecting shape {(len(rules),)} for {name}_logp, got {logp.shape}")
            if len(rules) and ((rules < 0).any() or (rules >= np.array(sizes)).any()):
                raise InputError(f"a {name} rule has a symbol or word that is not in the grammar")
            wrong = ~(np.isfinite(logp) & (logp <= 1e-9))
            if wrong.any():
                parent = self.symbols[int(rules[np.flatnonzero(wrong)[0], 0])]
                raise InputError(f"a {name} rule of {parent!r} has a probability outside (0, 1]; correct it")
            order = rule_order(rules)
            rules, logp = rules[order], np.minimum(logp[order], 0.0)
            if len(rules) > 1 and (rules[1:] == rules[:-1]).all(axis=1).any():
                raise InputError(f"a {name} rule is duplicated; remove one")
            for attribute, value in ((name, rules), (f"{name}_logp", logp)):
                value.flags.writeable = False
                object.__setattr__(self, attribute, value)
        self._check_rows()

    def _check_rows(self) -> None:
        sums = self.row_sums
        used = np.zeros(len(self.symbols), dtype=bool)
        for rules in (self.binary, self.unary, self.lexical):
            used[rules.ravel() if rules is not self.lexical else rules[:, 0]] = True
        used[self.start] = True
        ruleless = used & (sums == 0.0)
        if ruleless.any():
            name = self.symbols[int(np.flatnonzero(ruleless)[0])]
            raise InputError(f"the symbol {name!r} is used but has no rules; give it rules or quote it if it is a word")
        require_proper(self.symbols, sums, used & (np.abs(sums - 1.0) > ROW_TOLERANCE))
        self._divide(np.where(used & (np.abs(sums - 1.0) > ROUNDING), sums, 1.0))

    def _divide(self, sums: FloatArray) -> None:
        """Divide the rules of each symbol by its entry of ``sums`` (S,)."""
        if (sums == 1.0).all():
            return
        for name in ("binary", "unary", "lexical"):
            logp = np.minimum(getattr(self, f"{name}_logp") - np.log(sums)[getattr(self, name)[:, 0]], 0.0)
            logp.flags.writeable = False
            object.__setattr__(self, f"{name}_logp", logp)
        self.__dict__.pop("row_sums", None)

    @cached_property
    def row_sums(self) -> FloatArray:
        """Total rule probability of each symbol, (S,); 1 up to rounding."""
        sums = np.zeros(len(self.symbols))
        for rules, logp in self.tables():
            np.add.at(sums, rules[:, 0], np.exp(logp))
        return sums

    def tables(self) -> tuple[tuple[Int32Array, FloatArray], ...]:
        """Return rules and log probabilities of the three kinds: binary, unary, lexical."""
        return ((self.binary, self.binary_logp), (self.unary, self.unary_logp), (self.lexical, self.lexical_logp))

    def __getstate__(self) -> dict[str, object]:
        """Return the arrays for another process, without cached results."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    # -- construction ---------------------------------------------------------------------------------

    @classmethod
    def from_rules(
        cls,
        rules: Iterable[tuple[str, tuple[str, ...], float]],
        *,
        start: str,
        words: Callable[[str, tuple[str, ...]], bool],
        labels: Mapping[str, str] | None = None,
        normalise: bool = False,
        order: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Self:
        """Build from (parent, children, weight) triples; weights of equal rules are added.

        Args:
            rules: one or two children; weights are probabilities, or any positive numbers with ``normalise``.
            start: name of the start symbol.
            words: returns whether a rule's single child is a word.
            labels: treebank label of each symbol; by default its name.
            normalise: divide each symbol's weights by their sum.
            order: symbols to number first, after the start symbol; the rest follow in order of appearance.
            meta: JSON values on how the grammar was made.
        """
        symbols = {name: i for i, name in enumerate(dict.fromkeys([start, *order]))}
        terminals: dict[str, int] = {}
        tables: tuple[dict[tuple[int, ...], float], ...] = ({}, {}, {})
        totals: dict[int, float] = {}
        for parent, children, weight in rules:
            if not (math.isfinite(weight) and weight > 0):
                raise InputError(
                    f"the rule {parent} -> {' '.join(children)} has weight {weight}, expecting a positive number"
                )
            a = symbols.setdefault(parent, len(symbols))
            if len(children) == 2:
                key = (a, *(symbols.setdefault(c, len(symbols)) for c in children))
                table = tables[0]
            elif len(children) == 1 and words(parent, children):
                key = (a, terminals.setdefault(children[0], len(terminals)))
                table = tables[2]
            elif len(children) == 1:
                key = (a, symbols.setdefault(children[0], len(symbols)))
                table = tables[1]
            else:
                raise InputError(
                    f"the rule {parent} -> {' '.join(children)} has {len(children)} children, expecting 1 or 2"
                )
            table[key] = table.get(key, 0.0) + weight
            totals[a] = totals.get(a, 0.0) + weight
        binary, unary, lexical = (
            _arrays(table, width, totals if normalise else None) for table, width in zip(tables, (3, 2, 2), strict=True)
        )
        names = tuple(symbols)
        names_to_labels = labels or {}
        return cls(
            names,
            tuple(terminals),
            0,
            *(*binary, *unary, *lexical),
            tuple(names_to_labels.get(name, name) for name in names),
            dict(meta or {}),
        )

    # -- properties ---------------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """SHA-256 of symbols, words, rules and probabilities, hexadecimal."""
        return digest_rules([self.symbols, self.vocabulary, self.start, self.labels], self.tables())

    @property
    def identity(self) -> str:
        """Name of the grammar in signatures: 8 digits of the digest, after the language and its settings, if any.

        A grammar derived from a language, by a merged vocabulary for example, is ``changed``.
        """
        language = self.meta.get("language")
        if language is None:
            return self.digest[:8]
        changed = "" if language["digest"] == self.digest else "changed "
        return f"{changed}{language['reference']} {self.digest[:8]}"

    @property
    def n_rules(self) -> int:
        """Number of rules of all three kinds."""
        return len(self.binary) + len(self.unary) + len(self.lexical)

    @cached_property
    def symbol_ids(self) -> dict[str, int]:
        """Number of each symbol."""
        return {name: i for i, name in enumerate(self.symbols)}

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """Number of each word."""
        return {word: i for i, word in enumerate(self.vocabulary)}

    @takes_sentence
    def encode(self, sentence: Sequence[str]) -> Int32Array:
        """Return word numbers of a sentence, (n,); -1 for an unknown word."""
        return np.array([self.word_ids.get(word, -1) for word in sentence], dtype=np.int32)

    def decode(self, ids: ArrayLike) -> list[str]:
        """Return the words of some numbers, (n,); the way back from `encode`.

        Raises:
            InputError: there is no such word.
        """
        return decoded(self.vocabulary, ids)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.symbols)} symbols, {len(self.vocabulary)} words,"
            f" {len(self.binary)} binary, {len(self.unary)} unary, {len(self.lexical)} lexical rules)"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GrammarRules) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def with_meta(self, **entries: Any) -> Self:
        """Copy the grammar with further entries in ``meta``."""
        return replace(self, meta={**self.meta, **entries})

    def collapse(self, vocabulary: Iterable[str], unknown: str = "<unk>") -> Self:
        """Return the grammar of the language in which ``unknown`` replaces every word outside ``vocabulary``.

        PCFGs are closed under such a mapping: lexical probabilities of the merged words are added, so the result is the
        exact ground truth for a model whose tokeniser does the same (context and target alike).
        """
        keep = set(vocabulary)
        names = [word for word in self.vocabulary if word in keep and word != unknown]
        ids = {word: i for i, word in enumerate(names)}
        target = np.array([ids.get(word, len(names)) for word in self.vocabulary], dtype=np.int64)
        return self._merged((*names, unknown), target)

    def merge_words(self, names: Mapping[str, str]) -> Self:
        """Return the grammar of the language in which each word of ``names`` is replaced by another word of it.

        The result is as exact as the result of `collapse`.
        """
        words = tuple(word for word in self.vocabulary if names.get(word, word) == word)
        ids = {word: i for i, word in enumerate(words)}
        target = np.array([ids[names.get(word, word)] for word in self.vocabulary], dtype=np.int64)
        return self._merged(words, target)

    def _merged(self, words: tuple[str, ...], target: IntArray) -> Self:
        """Return the grammar over other words; ``target`` (V,) is the number of the one that replaces each word."""
        parents, numbers = self.lexical[:, 0].astype(np.int64), target[self.lexical[:, 1]]
        keys, inverse = np.unique(parents * len(words) + numbers, return_inverse=True)
        merged = np.zeros(len(keys))
        np.add.at(merged, inverse, np.exp(self.lexical_logp))
        lexical = np.stack([keys // len(words), keys % len(words)], axis=1).astype(np.int32)
        logp = np.log(np.minimum(merged, 1.0))
        return replace(self, vocabulary=words, lexical=lexical, lexical_logp=logp)

    def sizes(self) -> dict[str, int]:
        """Return counts of symbols, words and rules, for reports."""
        return {
            "symbols": len(self.symbols),
            "labels": len(set(self.labels)),
            "words": len(self.vocabulary),
            "binary": len(self.binary),
            "unary": len(self.unary),
            "lexical": len(self.lexical),
        }


def _arrays(
    table: Mapping[tuple[int, ...], float], width: int, totals: Mapping[int, float] | None
) -> tuple[Int32Array, FloatArray]:
    """Return rules (n, width) and their log weights (n,), over the total of each parent if totals are given."""
    keys = np.array(list(table), dtype=np.int32).reshape(-1, width)
    weights = np.array(list(table.values()), dtype=np.float64)
    if totals is not None and len(keys):
        weights = weights / np.array([totals[int(a)] for a in keys[:, 0]])
    return keys, np.log(weights)


def rule_order(rules: Int32Array) -> IntArray:
    """Return the order of rules (n, 1 + children) of one kind in a grammar: by children, then parent, (n,)."""
    return np.lexsort((rules[:, 0], *(rules[:, c] for c in range(rules.shape[1] - 1, 0, -1))))


def _require_texts(names: tuple[str, ...]) -> None:
    """Refuse names that cannot be written to a file.

    Raises:
        InputError: one is not a string, or has half of a surrogate pair in it.
    """
    try:
        "".join(names).encode()
    except (TypeError, UnicodeEncodeError):
        wrong = next(name for name in names if not isinstance(name, str) or not _encodable(name))
        raise InputError(f"the name of a symbol, a label or a word must be a Unicode string, got {wrong!r}") from None


def _require_words(words: tuple[str, ...]) -> None:
    """Refuse words that cannot be in text with words between white space.

    Raises:
        InputError: one is empty or has ASCII white space in it.
    """
    if "" in words or _SPACE.search("".join(words)):
        wrong = next(word for word in words if not word or _SPACE.search(word))
        raise InputError(
            f"the word {wrong!r} {'has white space in it' if wrong else 'is empty'}, which no text or tokeniser can"
            " represent; split it into words: truesource convert --cut-words"
        )


def _encodable(name: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in name)


def digest_rules(names: Sequence[object], tables: Iterable[tuple[NDArray[Any], NDArray[Any]]]) -> str:
    """Return `GrammarRules.digest` of symbols, words, start and labels, and of rules without changes."""
    sha = hashlib.sha256(json.dumps(names).encode())
    for rules, logp in tables:
        sha.update(rules.tobytes())
        sha.update(logp.tobytes())
    return sha.hexdigest()


def require_proper(names: Sequence[str], sums: FloatArray, wrong: BoolArray, path: str | Path | None = None) -> None:
    """Refuse rows that do not sum to one.

    Raises:
        InputError: there are any in ``wrong``; the message names the worst.
    """
    if wrong.any():
        worst = int(np.argmax(np.where(wrong, np.abs(sums - 1.0), 0.0)))
        raise InputError(
            f"the rules of {names[worst]!r} sum to {sums[worst]:.8g}, not 1"
            f" ({counted(int(wrong.sum()), 'such symbol')}); correct them, or normalise: truesource convert"
            " --normalise",
            path,
        )
