"""Derivations as columns of text and numbers, without Python objects on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truesource.generator.sampler import Derivations, Sampler
from truesource.generator.trees import node_codes
from truesource.grammar.errors import InputError
from truesource.grammar.pcfg import PCFG

if TYPE_CHECKING:
    import pyarrow

    from truesource.generator.corpus_record import SymbolKey

_STRING_LIMIT = 2**31 - 1  # bytes in one string column of one shard


@dataclass(frozen=True)
class Columns:
    """What a corpus holds besides ``text``, ``n_tokens`` and ``logprob``."""

    trees: bool = True  #: the derivation of each sentence, see `truesource.generator.trees`
    string_logprob: bool = False  #: log probability of the sentence, all its derivations together; slow
    ids: bool = False  #: the words as numbers of ``symbols.json``


@dataclass(frozen=True)
class Spelling:
    """How words and symbols stand in the files: no white space, no brackets in symbols, all different."""

    words: tuple[str, ...]  #: (V,)
    symbols: tuple[str, ...]  #: (S,)

    @classmethod
    def of(cls, pcfg: PCFG) -> Spelling:
        """Spell a grammar's words and symbols; nearly all stand as they are."""
        words = _all_different([_no_space(word) for word in pcfg.terminals])
        return cls(words, _all_different([_no_bracket(_no_space(symbol)) for symbol in pcfg.symbols]))

    def key(self, pcfg: PCFG, *, ids: bool) -> SymbolKey:
        """What reads the files back: symbols by number with their treebank labels, words that are spelled differently.

        With ``ids`` also the words by number.
        """
        key: SymbolKey = {
            "symbols": list(self.symbols),
            "labels": list(pcfg.labels),
            "original_symbols": {s: t for s, t in zip(self.symbols, pcfg.symbols, strict=True) if s != t},
            "original_words": {s: t for s, t in zip(self.words, pcfg.terminals, strict=True) if s != t},
        }
        if ids:
            key["words"] = list(self.words)
        return key


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


def packed(names: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Names as UTF-8, one after the other, and their bounds, (n + 1,)."""
    encoded = [name.encode() for name in names]
    bounds = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum([len(name) for name in encoded], out=bounds[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), bounds


def spell(sampler: Sampler, derivations: Derivations, spelling: Spelling, columns: Columns) -> pyarrow.Table:
    """Derivations as a table: text, n_tokens, logprob and, as ``columns`` says, tree, string_logprob, ids."""
    import pyarrow as pa

    from truesource.generator._kernels import text as _kernels_text

    rules, ends = derivations.rules, derivations.ends
    text = _kernels_text.spell_words(rules, ends, sampler.left, sampler.first_lexical, *packed(spelling.words))
    table = {
        "text": strings(*text),
        "n_tokens": pa.array(derivations.n_tokens),
        "logprob": pa.array(derivations.log_prob),
    }
    if columns.trees:
        table["tree"] = pa.ListArray.from_arrays(_offsets(ends), pa.array(node_codes(sampler, derivations)))
    if columns.string_logprob:
        found = sampler.pcfg.exact.string_log_probs(sampler.sentences(derivations))
        table["string_logprob"] = pa.array(found)
    if columns.ids:
        words = sampler.left[rules[rules >= sampler.first_lexical]]
        bounds = np.concatenate([[0], np.cumsum(derivations.n_tokens, dtype=np.int64)])
        table["ids"] = pa.ListArray.from_arrays(_offsets(bounds), pa.array(words))
    return pa.table(table)


def strings(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> pyarrow.Array:
    """UTF-8 bytes, cut at ``bounds`` (n + 1,), as an array of n strings."""
    import pyarrow as pa

    return pa.Array.from_buffers(
        pa.string(), len(bounds) - 1, [None, _offsets(bounds).buffers()[1], pa.py_buffer(data)]
    )


def _offsets(bounds: NDArray[np.int64]) -> pyarrow.Array:
    import pyarrow as pa

    if bounds[-1] > _STRING_LIMIT:
        raise InputError("a shard's sentences take more than 2 GB; use a smaller shard size")
    return pa.array(bounds.astype(np.int32))
