"""Exact sampling from a PCFG: ancestral, or conditioned on sentence length without rejection."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grammar.conditioning import LengthRange
from grammar.errors import InputError
from grammar.pcfg import PCFG
from grammar.tree import Tree

MAX_NODES = 1_000_000  #: largest derivation drawn, in rules
SMALLEST_MASS = 1e-290  #: below this probability of a length range, rounding would spoil the distribution
_TREEBANK_STREAM = 0x7EEB  #: keeps a treebank apart from a corpus drawn with the same seed


@dataclass(frozen=True)
class Derivations:
    """Derivations as rows of rule numbers in preorder; rules are numbered binary, unary, lexical."""

    rules: NDArray[np.int32]  #: (N,) all rows, one after the other
    ends: NDArray[np.int64]  #: (n+1,) row i is ends[i]:ends[i+1]
    n_tokens: NDArray[np.int32]  #: (n,)
    log_prob: NDArray[np.float64]  #: (n,) nats, of the derivation under the unconditioned grammar

    def __len__(self) -> int:
        return len(self.n_tokens)


def random_state(seed: int, *stream: int) -> NDArray[np.uint64]:
    """State (4,) of an independent stream of random numbers, the same on every machine.

    Raises:
        InputError: the seed is not a non-negative `int`.
    """
    if type(seed) is not int or seed < 0:
        raise InputError(f"a seed is a whole number from 0 on, got {seed!r}")
    return np.random.SeedSequence(seed, spawn_key=stream).generate_state(4, np.uint64).astype(np.uint64)


class Sampler:
    """Draws derivations of a grammar, from ``P`` or from ``P(. | low <= length <= high)``.

    Under a length range no sample is thrown away: lengths are drawn from the exact pmf of the start
    symbol, and each rule and split with the inside masses of the lengths below it. Memory is
    8 bytes * (high + 1) * (binary + unary rules), used only for the symbols and lengths met.

    Args:
        pcfg: the grammar.
        lengths: condition on the number of tokens; None for none.
        start: symbol to expand; the grammar's start symbol by default.

    Raises:
        InputError: no sentence of the range can be made, ``start`` is unknown, or there is no range and
            derivations of the grammar may grow without end.
    """

    def __init__(self, pcfg: PCFG, lengths: LengthRange | None = None, *, start: str | None = None) -> None:
        if start is not None and start not in pcfg.symbol_ids:
            raise InputError(f"the grammar has no symbol {start!r}")
        self.pcfg = pcfg
        self.lengths = lengths
        self.start = pcfg.start if start is None else pcfg.symbol_ids[start]
        self.n_binary, self.n_unary = len(pcfg.binary), len(pcfg.unary)
        self.first_lexical = self.n_binary + self.n_unary
        self.parent = np.concatenate([pcfg.binary[:, 0], pcfg.unary[:, 0], pcfg.lexical[:, 0]])
        self.left = np.concatenate([pcfg.binary[:, 1], pcfg.unary[:, 1], pcfg.lexical[:, 1]])
        self.right = np.concatenate([pcfg.binary[:, 2], np.full(len(self.left) - self.n_binary, -1, dtype=np.int32)])
        self.logp = np.concatenate([pcfg.binary_logp, pcfg.unary_logp, pcfg.lexical_logp])
        #: ln P(length in range), nats; 0 without a range
        self.log_mass = 0.0
        self._rows: tuple[NDArray[np.float64], NDArray[np.bool_]] | None = None
        if lengths is None:
            self._refuse_endless()
            self._options, self._bounds = self._by_parent(0, len(self.left))
            self._sums = self._running(self._options, self._bounds, np.exp(self.logp))
        else:
            self._condition(lengths)

    def _condition(self, lengths: LengthRange) -> None:
        mass = np.ascontiguousarray(self.pcfg.exact.length_masses(lengths.high).T)
        total = float(mass[self.start, lengths.low : lengths.high + 1].sum())
        if total < SMALLEST_MASS:
            raise InputError(self._why_impossible(lengths))
        self.log_mass = math.log(total)
        self._mass = mass
        self._options, self._bounds = self._by_parent(0, self.first_lexical)
        self._word_options, self._word_bounds = self._by_parent(self.n_binary, len(self.left))
        weights = np.exp(self.logp)
        unary = slice(self.n_binary, self.first_lexical)
        weights[unary] *= mass[self.left[unary], 1]
        self._word_sums = self._running(self._word_options, self._word_bounds, weights)

    def _refuse_endless(self) -> None:
        below = self.pcfg if self.start == self.pcfg.start else replace(self.pcfg, start=self.start)
        radius = below.exact.spectral_radius
        if radius >= 1.0:
            raise InputError(
                f"derivations of this grammar may never end (spectral radius {radius:.4f}, must be below 1);"
                " give a length range or mend its probabilities"
            )

    def _why_impossible(self, lengths: LengthRange) -> str:
        name = self.pcfg.symbols[self.start]
        possible = np.flatnonzero(self._possible(lengths.high + 20))
        if any(n in lengths for n in possible.tolist()):
            return f"sentences of {lengths} tokens of {name!r} are too rare to draw; widen the range"
        near = [*possible[possible < lengths.low][-3:], *possible[possible > lengths.high][:3]]
        listed = ", ".join(str(n) for n in near) or "none that short"
        return f"{name!r} makes no sentence of {lengths} tokens; possible lengths near it: {listed}"

    def _possible(self, high: int) -> NDArray[np.bool_]:
        """Which lengths up to ``high`` the start symbol can have, however improbable, (high + 1,)."""
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

    def _by_parent(self, begin: int, end: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        parents = self.parent[begin:end]
        options = (np.argsort(parents, kind="stable") + begin).astype(np.int32)
        counts = np.bincount(parents, minlength=len(self.pcfg.symbols))
        return options, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @staticmethod
    def _running(
        options: NDArray[np.int32], bounds: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        from generator import _kernels

        return np.asarray(_kernels.row_sums_running(bounds, weights[options]))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": None}

    def draw(self, n: int, state: NDArray[np.uint64], *, max_nodes: int = MAX_NODES) -> Derivations:
        """Draw ``n`` derivations; ``state`` (from `random_state`) moves on.

        Raises:
            InputError: a derivation grew beyond ``max_nodes`` rules.
        """
        from generator import _kernels

        rules = (self.left, self.right, self.logp)
        kinds = (self.n_binary, self.n_unary)
        tail = (self.start, n, state, max_nodes)
        if self.lengths is None:
            free = (self._options, self._bounds, self._sums)
            drawn = _kernels.draw_free(*map(_plain, rules), *kinds, *map(_plain, free), *tail)
        else:
            if self._rows is None:
                shape = self.lengths.high + 1
                ready = np.zeros((shape, len(self.pcfg.symbols)), dtype=np.bool_)
                self._rows = np.empty((shape, self.first_lexical)), ready
            phrase, word = (
                (self._options, self._bounds),
                (self._word_options, self._word_bounds, self._word_sums),
            )
            range_ = (_plain(self._mass), self.lengths.low, self.lengths.high)
            drawn = _kernels.draw_conditioned(
                *map(_plain, rules),
                *kinds,
                *map(_plain, phrase),
                *self._rows,
                *map(_plain, word),
                *range_,
                *tail,
            )
        if not drawn[-1]:
            raise InputError(
                f"a derivation grew beyond {max_nodes} rules; the grammar's recursion is too probable,"
                " give a length range or mend its probabilities"
            )
        return Derivations(*drawn[:-1])

    def sentences(self, derivations: Derivations) -> list[list[str]]:
        """The words of each derivation."""
        lexical = derivations.rules >= self.first_lexical
        terminals = self.pcfg.terminals
        words = [terminals[w] for w in self.left[derivations.rules[lexical]].tolist()]
        ends = np.concatenate([[0], np.cumsum(derivations.n_tokens, dtype=np.int64)]).tolist()
        return [words[a:b] for a, b in pairwise(ends)]

    def trees(self, derivations: Derivations, *, coarse: bool = True, binarised: bool = False) -> Iterator[Tree]:
        """Each derivation as a tree.

        Args:
            derivations: from `draw`.
            coarse: treebank labels (``PCFG.labels``) in place of the grammar's own symbols.
            binarised: keep the ``@`` nodes that binarisation made.
        """
        labels, symbols = self.pcfg.labels, self.pcfg.symbols
        names = labels if coarse else symbols
        spliced = [label.startswith("@") and not binarised for label in labels]
        rules, ends = derivations.rules, derivations.ends.tolist()
        for begin, end in pairwise(ends):
            row = rules[begin:end]
            yield self._tree(row.tolist(), self.parent[row].tolist(), names, spliced)

    def _tree(self, rules: list[int], parents: list[int], names: Sequence[str], spliced: Sequence[bool]) -> Tree:
        done: list[tuple[Tree | str, ...]] = []  # from the right, what is below a node is ready before it
        for rule, parent in zip(reversed(rules), reversed(parents), strict=True):
            below: tuple[Tree | str, ...]
            if rule >= self.first_lexical:
                below = (self.pcfg.terminals[int(self.left[rule])],)
            else:
                below = done.pop() if rule >= self.n_binary else done.pop() + done.pop()
                if spliced[parent]:
                    done.append(below)
                    continue
            done.append((Tree(names[parent], below),))
        (top,) = done
        rootless = rules[0] < self.first_lexical and spliced[parents[0]]
        return Tree(names[parents[0]], top) if rootless or not isinstance(top[0], Tree) else top[0]


def sample_treebank(
    pcfg: PCFG, n: int, seed: int, lengths: LengthRange | None = None, *, coarse: bool = True
) -> list[Tree]:
    """Draw ``n`` trees, n-ary again (no ``@`` nodes), with treebank labels unless ``coarse`` is false.

    Independent of a corpus drawn with the same seed.

    Raises:
        InputError: as `Sampler`; or ``n`` is below 1.
    """
    if n < 1:
        raise InputError(f"asking for {n} trees; a treebank needs at least one")
    sampler = Sampler(pcfg, lengths)
    state = random_state(seed, _TREEBANK_STREAM)
    return list(sampler.trees(sampler.draw(n, state), coarse=coarse))


def _plain(array: Any) -> NDArray[Any]:
    """A read-only view of the base class, so that kernels see one type, memory-mapped or not."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
