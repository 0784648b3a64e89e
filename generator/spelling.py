"""Derivations as text, without Python objects on the way, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from generator.sampler import Derivations, Sampler
from grammar.errors import InputError
from grammar.pcfg import PCFG
from grammar.tree import Tree

if TYPE_CHECKING:
    import pyarrow

_STRING_LIMIT = 2**31 - 1  # bytes in one string column of one shard
_PIECES = re.compile(r"\(([^ ()]+)|(\))|[^ ()]+")


@dataclass(frozen=True)
class Spelling:
    """How words and symbols stand in the files: no white space, no brackets in trees, all different."""

    words: tuple[str, ...]  #: (V,) in the text column
    tree_words: tuple[str, ...]  #: (V,) in the tree column, without brackets
    symbols: tuple[str, ...]  #: (S,) in the tree column

    @classmethod
    def of(cls, pcfg: PCFG) -> Spelling:
        """Spell a grammar's words and symbols; nearly all stand as they are."""
        words = _all_different([_no_space(word) for word in pcfg.terminals])
        symbols = _all_different([_no_bracket(_no_space(symbol)) for symbol in pcfg.symbols])
        return cls(words, tuple(map(_no_bracket, words)), symbols)

    def key(self, pcfg: PCFG) -> dict[str, dict[str, str]]:
        """What reads the files back: treebank labels, and names that are spelled differently."""
        return {
            "labels": dict(zip(self.symbols, pcfg.labels, strict=True)),
            "symbols": {s: t for s, t in zip(self.symbols, pcfg.symbols, strict=True) if s != t},
            "words": {s: t for s, t in zip(self.words, pcfg.terminals, strict=True) if s != t},
        }


def _no_space(name: str) -> str:
    return "".join("\N{OPEN BOX}" if c.isspace() else c for c in name) or "\N{EMPTY SET}"


def _no_bracket(name: str) -> str:
    return name.replace("(", "-LRB-").replace(")", "-RRB-")


def _all_different(names: list[str]) -> tuple[str, ...]:
    taken = set(names)
    if len(taken) == len(names):
        return tuple(names)
    seen: set[str] = set()
    for i, name in enumerate(names):
        while name in seen:
            name += "\N{PRIME}"
            if name not in taken:
                break
        seen.add(name)
        names[i] = name
    return tuple(names)


def _packed(names: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    encoded = [name.encode() for name in names]
    bounds = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum([len(name) for name in encoded], out=bounds[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), bounds


def spell(sampler: Sampler, derivations: Derivations, spelling: Spelling, *, trees: bool) -> pyarrow.Table:
    """Derivations as a table of columns text, n_tokens, logprob and, with ``trees``, tree."""
    import pyarrow as pa

    from generator import _kernels

    rules, ends = derivations.rules, derivations.ends
    words, word_bounds = _packed(spelling.words)
    text = _kernels.spell_words(rules, ends, sampler.left, sampler.first_lexical, words, word_bounds)
    columns = {
        "text": _strings(*text),
        "n_tokens": pa.array(derivations.n_tokens),
        "logprob": pa.array(derivations.log_prob),
    }
    if trees:
        kinds = (sampler.n_binary, sampler.first_lexical)
        names = (*_packed(spelling.tree_words), *_packed(spelling.symbols))
        columns["tree"] = _strings(*_kernels.spell_trees(rules, ends, sampler.parent, sampler.left, *kinds, *names))
    return pa.table(columns)


def _strings(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> pyarrow.Array:
    import pyarrow as pa

    if len(data) > _STRING_LIMIT:
        raise InputError("a shard's trees take more than 2 GB; use a smaller shard size")
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(bounds) - 1, buffers)


def parse_derivation(text: str, tokens: list[str], names: Mapping[str, str], dropped: set[str]) -> Tree:
    """Read one entry of the tree column.

    Args:
        text: Penn brackets on one line.
        tokens: the sentence, whose words replace those of ``text`` (which have no brackets).
        names: what each symbol of ``text`` becomes.
        dropped: symbols whose nodes give their children to the node above (the root stays).
    """
    words = iter(tokens)
    symbols: list[str] = []
    children: list[list[Tree | str]] = [[]]
    for piece in _PIECES.finditer(text):
        if piece[1] is not None:
            symbols.append(piece[1])
            children.append([])
        elif piece[2] is None:
            children[-1].append(next(words))
        else:
            symbol, below = symbols.pop(), children.pop()
            if symbol in dropped and symbols and isinstance(below[0], Tree):
                children[-1].extend(below)
            else:
                children[-1].append(Tree(names[symbol], tuple(below)))
    (root,) = children[0]
    assert isinstance(root, Tree)
    return root
