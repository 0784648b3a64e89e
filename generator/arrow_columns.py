"""Derivations as columns of text and numbers, without Python objects on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truesource.generator.arrow_strings import offsets, packed, strings
from truesource.generator.corpus_record import SymbolKey
from truesource.generator.derivations import Derivations
from truesource.generator.plan import Columns
from truesource.generator.sampler import Sampler
from truesource.generator.transforms import Transform, text_order
from truesource.generator.trees import Reading, read_brackets
from truesource.grammar.bracketing import escaped
from truesource.grammar.pcfg import PCFG

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Spelling:
    """How words and symbols stand in the files: no white space, no brackets in symbols, all different."""

    words: tuple[str, ...]  #: (V,)
    symbols: tuple[str, ...]  #: (S,)
    labels: tuple[str, ...]  #: (S,) of the treebank; in brackets they are escaped

    @classmethod
    def of(cls, pcfg: PCFG) -> Spelling:
        """Spell a grammar's words and symbols; nearly all stand as they are."""
        words = _all_different([_no_space(word) for word in pcfg.terminals])
        symbols = _all_different([_no_bracket(_no_space(symbol)) for symbol in pcfg.symbols])
        return cls(words, symbols, pcfg.labels)

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


def spell(
    sampler: Sampler,
    derivations: Derivations,
    spelling: Spelling,
    columns: Columns,
    transform: Transform | None = None,
    split: str = "train",
) -> pyarrow.Table:
    """Derivations as a table: text, n_tokens, logprob and, as ``columns`` says, split, tree, string_logprob, ids.

    A transform changes the order of the words in text and ids, nothing else.
    """
    import pyarrow as pa

    from truesource.generator._kernels.text import spell_words

    rules, ends = derivations.rules, derivations.ends
    leaves = originals = rules[rules >= sampler.first_lexical]
    if transform is not None:
        leaves = leaves[text_order(transform, derivations.n_tokens)]
    bounds = np.concatenate([[0], np.cumsum(derivations.n_tokens, dtype=np.int64)])

    def written(words: NDArray[np.int32]) -> pyarrow.Array:
        return strings(*spell_words(words, bounds, sampler.left, sampler.first_lexical, *packed(spelling.words)))

    table = {
        "text": written(leaves),
        "n_tokens": pa.array(derivations.n_tokens),
        "logprob": pa.array(derivations.log_prob),
    }
    if columns.split:
        table["split"] = pa.repeat(split, len(derivations.n_tokens))
    if columns.trees != "none":
        table["tree"] = pa.ListArray.from_arrays(offsets(ends), pa.array(sampler.node_codes(derivations)))
    if columns.trees == "text":
        text = table["text"] if transform is None else written(originals)
        table["tree"] = _brackets(text, table["tree"], spelling)
    if columns.string_logprob:
        found = sampler.pcfg.exact.string_log_probs(sampler.sentences(derivations))
        table["string_logprob"] = pa.array(found)
    if columns.ids:
        table["ids"] = pa.ListArray.from_arrays(offsets(bounds), pa.array(sampler.left[leaves]))
    return pa.table(table)


def _brackets(text: pyarrow.Array, nodes: pyarrow.Array, spelling: Spelling) -> pyarrow.Array:
    """Trees as Penn brackets with treebank labels, one a sentence."""
    import pyarrow as pa

    reading = Reading.of(spelling.symbols, spelling.labels, coarse=True, binarised=False)
    names = packed(tuple(map(escaped, reading.names)))
    return read_brackets(pa.table({"text": text, "tree": nodes}), names, reading.dropped)
