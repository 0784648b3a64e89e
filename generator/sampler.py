"""Exact sampling from a PCFG, ancestral or conditioned on length without rejection, and derivations as trees.

The ``tree`` column of a corpus has the nodes of each derivation in preorder, each as ``3 * symbol + children``: the
number of its symbol, and 2, 1 or 0 children that are symbols (0: it is above a word). The words are in the
sentence, in order. This takes 2 to 3 bytes a token on disk, brackets take 6 to 7.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.generator import _kernels as kernels
from truesource.generator.columns import as_numbers, strings
from truesource.grammar._kernels.rules import Choices, NumberedRules
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.heights import height_mass
from truesource.grammar.inference.rules import extent
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray, random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import require_items
from truesource.grammar.tree import Tree
from truesource.grammar.truth import Truth

DRAWN = 32  #: least bytes of a sentence while it is sampled
MAX_NODES = 1_000_000  #: largest sampled derivation, in rules
SMALLEST_MASS = 1e-290  #: below this probability of a length range, rounding would distort the distribution
SMALLEST_HEIGHT_MASS = 1e-3  #: below this share of trees under a height cap, rejection takes too long
_TREEBANK_STREAM = 0x7EEB  #: separates a treebank from a corpus with the same seed


@dataclass(frozen=True)
class Reading:
    """Names of nodes, and the nodes that are replaced by their children."""

    names: tuple[str, ...]  #: (S,)
    dropped: BoolArray  #: (S,); the root and symbols over words always remain

    @classmethod
    def of(cls, symbols: Sequence[str], labels: Sequence[str], *, coarse: bool, binarised: bool) -> Reading:
        """Return treebank labels if ``coarse``, else symbols; ``@`` nodes remain if ``binarised``."""
        dropped = [label.startswith("@") and not binarised for label in labels]
        return cls(tuple(labels if coarse else symbols), np.array(dropped, dtype=np.bool_))


def read_tree(codes: Sequence[int], tokens: Sequence[str], reading: Reading) -> Tree:
    """Return the tree of one sentence."""
    names, dropped = reading.names, reading.dropped
    words = iter(reversed(tokens))
    done: list[tuple[Tree | str, ...]] = []  # from the right: subtrees are ready before their parent
    for i in range(len(codes) - 1, -1, -1):
        symbol, children = divmod(codes[i], 3)
        below: tuple[Tree | str, ...]
        if children == 0:
            below = (next(words),)
        else:
            below = done.pop() if children == 1 else done.pop() + done.pop()
            if i > 0 and dropped[symbol]:
                done.append(below)
                continue
        done.append((Tree(names[symbol], below),))
    ((root,),) = done
    assert isinstance(root, Tree)
    return root


def read_brackets(table: Any, names: tuple[NDArray[np.uint8], IntArray], dropped: BoolArray) -> Any:
    """Return Penn brackets of every row of a table with columns text and tree, as an array of strings.

    Args:
        table: table of one shard.
        names: names of symbols, escaped (`grammar.tree`), from `generator.columns.packed`.
        dropped: (S,), as in `Reading`.
    """
    import pyarrow as pa

    text, nodes = (table.column(name).combine_chunks() for name in ("text", "tree"))
    if table.num_rows == 0:
        return pa.array([], type=pa.string())
    _, offsets, data = text.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[text.offset :][: len(text) + 1]
    letters = np.frombuffer(data, dtype=np.uint8)
    ends = as_numbers(nodes.offsets)
    return strings(*kernels.spell_brackets(as_numbers(nodes.values), ends, letters, bounds, *names, dropped))


@dataclass(frozen=True)
class Derivations:
    """Derivations as rows of rule numbers in preorder; rules are numbered binary, unary, lexical."""

    rules: Int32Array  #: (N,) all rows, one after the other
    ends: IntArray  #: (n+1,) row i is ends[i]:ends[i+1]
    n_tokens: Int32Array  #: (n,)
    log_prob: FloatArray  #: (n,) nats, of the derivation under the unconditioned grammar
    language: IntArray | None = None  #: (n,) number of the language of each document, if languages are finitely many

    def __len__(self) -> int:
        return len(self.n_tokens)

    def take(self, some: BoolArray) -> Derivations:
        """Return the derivations with true ``some`` (n,), in their order."""
        sizes = np.diff(self.ends)
        ends = np.concatenate([[0], np.cumsum(sizes[some])])
        language = None if self.language is None else self.language[some]
        return Derivations(self.rules[np.repeat(some, sizes)], ends, self.n_tokens[some], self.log_prob[some], language)

    def ordered(self, order: IntArray) -> Derivations:
        """Return the derivations in another order: row i is row ``order[i]``."""
        sizes = np.diff(self.ends)[order]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        within = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
        language = None if self.language is None else self.language[order]
        rules = self.rules[np.repeat(self.ends[:-1][order], sizes) + within]
        return Derivations(rules, ends, self.n_tokens[order], self.log_prob[order], language)

    @classmethod
    def joined(cls, parts: Sequence[Derivations]) -> Derivations:
        """Join some batches, one batch after the other."""
        if len(parts) == 1:
            return parts[0]
        sizes = np.concatenate([np.diff(part.ends) for part in parts])
        ends = np.concatenate([[0], np.cumsum(sizes)])
        columns = ([getattr(part, name) for part in parts] for name in ("rules", "n_tokens", "log_prob"))
        rules, n_tokens, log_prob = (np.concatenate(column) for column in columns)
        languages = [part.language for part in parts if part.language is not None]
        return cls(rules, ends, n_tokens, log_prob, np.concatenate(languages) if languages else None)


class TruthSampler(ABC):
    """Sampler of the sentences of a truth, as derivations.

    Args:
        truth: a grammar or a process.
        lengths: condition on the number of tokens; None for none.
        left: (T,) word of each lexical rule; other rules have other values.
        first_lexical: number of the first lexical rule.
    """

    max_height: int | None = None  #: highest tree; None for no cap
    log_mass = 0.0  #: ln P(length in range), nats; 0 without a range
    log_height_mass = 0.0  #: ln P(height up to ``max_height`` | length in range), nats; 0 without a cap

    def __init__(self, truth: Truth, lengths: LengthRange | None, left: Int32Array, first_lexical: int) -> None:
        self.truth, self.lengths, self.left, self.first_lexical = truth, lengths, left, first_lexical

    @abstractmethod
    def draw(self, n: int, state: NDArray[np.uint64], *, max_nodes: int = MAX_NODES) -> Derivations:
        """Draw ``n`` derivations; ``state`` (from `random_state`) advances.

        Raises:
            InputError: a derivation exceeded ``max_nodes`` rules.
        """

    def sentences(self, derivations: Derivations) -> list[list[str]]:
        """Return the words of each derivation."""
        lexical = derivations.rules >= self.first_lexical
        terminals = self.truth.vocabulary
        words = [terminals[w] for w in self.left[derivations.rules[lexical]].tolist()]
        ends = np.concatenate([[0], np.cumsum(derivations.n_tokens, dtype=np.int64)]).tolist()
        return [words[a:b] for a, b in pairwise(ends)]


class Sampler(TruthSampler):
    """Sampler of derivations of a grammar, from ``P`` or from ``P(. | low <= length <= high)``.

    Under a length range no sample is rejected: lengths are drawn from the exact pmf of the start symbol, and each rule
    and split with the inside masses of the lengths below it. Memory is 8 bytes * (high + 1) * (binary + unary rules),
    used only for occurring symbols and lengths.

    Args:
        pcfg: the grammar.
        lengths: condition on the number of tokens; None for none.
        start: symbol to expand; the grammar's start symbol by default.
        max_height: reject higher trees and draw again (Jumelet & Zuidema 2023, their released sampler); heights as
            in `truesource.grammar.inference.expected`. None for no cap.

    Raises:
        InputError: there is no sentence in the range, ``start`` is unknown, there is no range and derivations of
            the grammar may never end, or nearly all trees are above ``max_height``.
    """

    def __init__(
        self, pcfg: PCFG, lengths: LengthRange | None = None, *, start: str | None = None, max_height: int | None = None
    ) -> None:
        if start is not None and start not in pcfg.symbol_ids:
            raise InputError(f"the grammar has no symbol {start!r}; choose another")
        self.pcfg = pcfg if start is None else replace(pcfg, start=pcfg.symbol_ids[start])
        self.n_binary, self.n_unary = len(pcfg.binary), len(pcfg.unary)
        left = np.concatenate([pcfg.binary[:, 1], pcfg.unary[:, 1], pcfg.lexical[:, 1]])
        super().__init__(self.pcfg, lengths, left, self.n_binary + self.n_unary)
        self.max_height = max_height
        self.start = self.pcfg.start
        self.parent = np.concatenate([pcfg.binary[:, 0], pcfg.unary[:, 0], pcfg.lexical[:, 0]])
        self.right = np.concatenate([pcfg.binary[:, 2], np.full(len(self.left) - self.n_binary, -1, dtype=np.int32)])
        self.logp = np.concatenate([pcfg.binary_logp, pcfg.unary_logp, pcfg.lexical_logp])
        self._rows: tuple[FloatArray, BoolArray] | None = None
        if lengths is None:
            self._refuse_endless()
            self._choices = self._by_parent(0, len(self.left), np.exp(self.logp))
        else:
            self._condition(lengths)
        if max_height is not None:
            self._cap(max_height)

    def _cap(self, max_height: int) -> None:
        result = height_mass(self.pcfg, max_height, self.lengths)
        if result < SMALLEST_HEIGHT_MASS:
            raise InputError(
                f"only {result:.2g} of the trees have a height up to {max_height}, too few to sample; raise the cap"
            )
        self.log_height_mass = math.log(result)

    def _condition(self, lengths: LengthRange) -> None:
        mass = np.ascontiguousarray(self.pcfg.exact.length_masses(lengths.high).T)
        total = float(mass[self.start, lengths.low : lengths.high + 1].sum())
        if total < SMALLEST_MASS:
            raise InputError(self._why_impossible(lengths))
        self.log_mass = math.log(total)
        self._mass = mass
        self._sizes = np.stack(extent(mass), axis=1)
        weights = np.exp(self.logp)
        unary = slice(self.n_binary, self.first_lexical)
        weights[unary] *= mass[self.left[unary], 1]
        self._words = self._by_parent(self.n_binary, len(self.left), weights)
        self._phrases = self._by_parent(0, self.first_lexical, weights)  # sums are filled on demand

    def _refuse_endless(self) -> None:
        radius = self.pcfg.exact.spectral_radius
        if radius >= 1.0:
            raise InputError(
                f"derivations of this grammar may never end (spectral radius {radius:.4f}, must be below 1);"
                " specify a range of lengths, or change its probabilities",
                code="inconsistent",
            )

    def _why_impossible(self, lengths: LengthRange) -> str:
        name = self.pcfg.symbols[self.start]
        possible = np.flatnonzero(self._possible(lengths.high + 20))
        if any(n in lengths for n in possible.tolist()):
            return f"sentences of {lengths} tokens of {name!r} are too rare to sample; widen the range"
        near = [*possible[possible < lengths.low][-3:], *possible[possible > lengths.high][:3]]
        listed = ", ".join(str(n) for n in near) or "none that short"
        return f"{name!r} has no sentence of {lengths} tokens; possible lengths near it: {listed}"

    def _possible(self, high: int) -> BoolArray:
        """Return which lengths up to ``high`` the start symbol can have, however improbable, (high + 1,)."""
        linear = self.pcfg.exact.linear
        if linear is not None:
            return np.asarray(linear.possible_lengths(high)[:, self.start])
        parent, left, right = self.pcfg.binary.T
        chains = self.pcfg.exact.unary_closure > 0.0
        can = np.zeros((high + 1, len(chains)), dtype=np.bool_)
        for n in range(1, high + 1):
            bare = np.zeros(len(chains), dtype=np.bool_)
            bare[self.pcfg.lexical[:, 0]] = n == 1
            for k in range(1, n):
                bare[parent[can[k, left] & can[n - k, right]]] = True
            can[n] = chains[:, bare].any(axis=1)
        return can[:, self.start]

    def _by_parent(self, begin: int, end: int, weights: FloatArray) -> Choices:
        """Return the rules ``begin`` to ``end`` by parent, and their running weights, of ``weights`` (T,)."""
        parents = self.parent[begin:end]
        options = (np.argsort(parents, kind="stable") + begin).astype(np.int32)
        counts = np.bincount(parents, minlength=len(self.pcfg.symbols))
        bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Choices(options, bounds, np.asarray(kernels.row_sums_running(bounds, weights[options])))

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_rows": None}

    def draw(self, n: int, state: NDArray[np.uint64], *, max_nodes: int = MAX_NODES) -> Derivations:
        """Draw ``n`` derivations; ``state`` (from `random_state`) advances.

        Raises:
            InputError: a derivation exceeded ``max_nodes`` rules.
        """
        require_items(n, "sentences to draw", DRAWN)
        if self.max_height is None:
            return self._draw(n, state, max_nodes)
        parts: list[Derivations] = []
        missing = n
        while missing or not parts:
            batch = self._draw(missing, state, max_nodes)
            tall = kernels.heights(batch.rules, batch.ends, self.n_binary, self.first_lexical) > self.max_height
            parts.append(batch.take(~tall))
            missing = int(tall.sum())
        return Derivations.joined(parts)

    def _draw(self, n: int, state: NDArray[np.uint64], max_nodes: int) -> Derivations:
        numbered = NumberedRules(_plain(self.left), _plain(self.right), _plain(self.logp), self.n_binary, self.n_unary)
        tail = (self.start, n, state, max_nodes)
        if self.lengths is None:
            arrays = kernels.draw_free(numbered, Choices(*map(_plain, self._choices)), *tail)
        else:
            if self._rows is None:
                shape = self.lengths.high + 1
                ready = np.zeros((shape, len(self.pcfg.symbols)), dtype=np.bool_)
                self._rows = np.empty((shape, self.first_lexical)), ready
            sums, ready = self._rows
            phrases, words = (Choices(*map(_plain, some)) for some in (self._phrases, self._words))
            arrays = kernels.draw_conditioned(
                *(numbered, phrases._replace(sums=sums), ready, words),
                *(_plain(self._mass), _plain(self._sizes), self.lengths.low, self.lengths.high),
                *tail,
            )
        if not arrays[-1]:
            raise InputError(
                f"a derivation exceeded {max_nodes} rules: the grammar's recursion is too probable;"
                " specify a range of lengths, or change its probabilities"
            )
        return Derivations(*arrays[:-1])

    def trees(self, derivations: Derivations, *, coarse: bool = True, binarised: bool = False) -> Iterator[Tree]:
        """Yield each derivation as a tree.

        Args:
            derivations: result of `draw`.
            coarse: treebank labels (``PCFG.labels``) in place of the grammar's symbols.
            binarised: keep the ``@`` nodes of binarisation.
        """
        reading = Reading.of(self.pcfg.symbols, self.pcfg.labels, coarse=coarse, binarised=binarised)
        codes = self.node_codes(derivations)
        for (begin, end), words in zip(pairwise(derivations.ends.tolist()), self.sentences(derivations), strict=True):
            yield read_tree(codes[begin:end].tolist(), words, reading)

    def node_codes(self, derivations: Derivations) -> NDArray[Any]:
        """Return nodes of all derivations as `read_tree` takes them, (N,), int16 or, of many symbols, int32."""
        rules = derivations.rules
        children = (rules < self.first_lexical).astype(np.int32) + (rules < self.n_binary)
        kind = np.int16 if 3 * len(self.pcfg.symbols) <= np.iinfo(np.int16).max else np.int32
        return (3 * self.parent[rules] + children).astype(kind)


def sample_treebank(
    pcfg: PCFG, n: int, seed: int, lengths: LengthRange | None = None, *, coarse: bool = True
) -> list[Tree]:
    """Draw ``n`` trees, n-ary (no ``@`` nodes), with treebank labels unless ``coarse`` is false.

    They are independent of a corpus with the same seed.

    Raises:
        InputError: as `Sampler`; or ``n`` is below 1.
    """
    if n < 1:
        raise InputError(f"a treebank needs at least one tree, got {n}")
    sampler = Sampler(pcfg, lengths)
    state = random_state(seed, _TREEBANK_STREAM)
    return list(sampler.trees(sampler.draw(n, state), coarse=coarse))


def _plain(array: Any) -> NDArray[Any]:
    """Return a read-only view of the base class, so that kernels see one type, memory-mapped or not."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
