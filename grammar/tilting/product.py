"""The product of a grammar and a reward automaton: symbols with the states of the automaton before and after.

A symbol A becomes one symbol for each class of pairs of states (q, q'): the strings of A that lead from q to q'. Pairs
with the same strings, for the same gains, are one class, so that a counter up to m has m classes and not m^2. The rule
A -> B C has one copy for each state in the middle (Bar-Hillel, Perles & Shamir 1961; Nederhof & Satta 2003).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tilting.partitions import coarsest_partition
from truesource.grammar.tilting.rewards import RewardAutomaton

BUDGET = 20_000_000  #: most rules of a product
MOST_STATES = 512  #: most states of an automaton
MOST_SPLITS = 2**25  #: most classes of pairs of states times states


class Copies(NamedTuple):
    """The copies of each symbol in a product."""

    classes: IntArray  #: (Q, Q) class of each pair of states
    makes: BoolArray  #: (K, S) whether the copy derives some string
    number: IntArray  #: (K, S) the symbol of the product; 0 if it is unreachable


@dataclass(frozen=True, eq=False)
class Product:
    """The rules of a product that occur in sentences, each with the rule of the grammar that it copies.

    The start of a product is below no symbol, and its rules also earn the reward of the last state.
    """

    names: tuple[str, ...]  #: name of each symbol
    copied: IntArray  #: (S',) original symbol of each symbol
    binary: Int32Array  #: (R', 3) parent, left child, right child
    unary: Int32Array  #: (Q', 2)
    lexical: Int32Array  #: (L', 2) parent, word
    rule: tuple[IntArray, IntArray, IntArray]  #: number of the original of each rule of the three kinds
    gain: tuple[FloatArray, FloatArray, FloatArray]  #: gain of each rule
    start: int = 0
    copies: Copies | None = None  #: existing copies of the grammar's symbols; None if not from an automaton
    layers: tuple[IntArray, IntArray] | None = None  #: length and symbol of the product for each symbol but the start
    _by_length: dict[LengthRange, Product] = field(default_factory=dict, init=False, repr=False)

    def partitions(self) -> csr_matrix[np.float64]:
        """Return sets of symbols that partition the strings of a symbol of the grammar, (G, S'): 1 for the members.

        They are the copies of a symbol from one state of the automaton to all others. Sets with an unreachable member
        are excluded.
        """
        assert self.copies is not None, "only a product with an automaton has copies"
        number, makes = self.copies.number, self.copies.makes
        rows = np.unique(np.sort(self.copies.classes, axis=1), axis=0)
        members: list[IntArray] = []
        for row in rows:
            classes = np.unique(row)
            some = makes[classes]
            whole = np.flatnonzero(some.any(axis=0) & (~some | (number[classes] > 0)).all(axis=0))
            members.extend(number[classes[some[:, a]], a] for a in whole)
        start = np.cumsum([0, *map(len, members)])
        columns = np.concatenate([np.empty(0, dtype=np.int64), *members])
        return csr_matrix((np.ones(len(columns)), columns, start), shape=(len(members), len(self.names)))


Rules = tuple[IntArray, IntArray, FloatArray]  #: rules, numbers of their originals, gains


class _Pairs:
    """Pairs of states (q, q'), in classes with the same strings and gains."""

    def __init__(self, automaton: RewardAutomaton) -> None:
        n = automaton.n_states
        columns, kind = np.unique(np.concatenate([automaton.step, automaton.gain]), axis=1, return_inverse=True)
        self.kind = kind.ravel()  #: (V,) words with the same effect in all states are of one kind
        self.step, self.gain = columns[:n].astype(np.int64), columns[n:]  #: (Q, kinds)
        self.of = _classes(self.step, self.gain)  #: (Q, Q) class of each pair
        first = np.unique(self.of, return_index=True)[1]
        self.source, self.target = np.divmod(first, n)  #: (K,) one pair of each class
        if len(first) * n > MOST_SPLITS:
            raise InputError(
                f"the automaton has {n:,} states, whose pairs have {len(first):,} classes that split in"
                f" {len(first) * n:,} ways, more than {MOST_SPLITS:,}; choose a simpler reward",
                code="too-many-rules",
            )
        #: (K, Q) strings of class k are a string of class ``left[k, q]``, then a string of class ``right[k, q]``
        self.left = self.of[self.source].astype(np.int32)
        self.right = self.of.T[self.target].astype(np.int32)

    def splits(self, some: BoolArray, changed: BoolArray | None = None) -> IntArray:
        """Return triples (k, left, right) of classes whose parts are both among some, one of them changed, (n, 3)."""
        possible = some[self.left] & some[self.right]
        if changed is not None:
            possible &= changed[self.left] | changed[self.right]
        k, middle = np.nonzero(possible)
        return np.stack([k, self.left[k, middle], self.right[k, middle]], axis=1)

    def goes(self, k: int, words: Int32Array) -> BoolArray:
        """Return which of some words are strings of class k."""
        return np.asarray(self.step[self.source[k], self.kind[words]] == self.target[k])


def _classes(step: IntArray, gain: FloatArray) -> IntArray:
    """Return classes of pairs of states (Q, Q): each kind of word leads a class to one class, with one gain."""
    n = len(step)
    earned = np.unique(gain, return_inverse=True)[1].reshape(n, -1)
    diagonal = np.eye(n, dtype=np.int64).ravel()
    source, target = np.divmod(np.arange(n * n), n)
    after = step[source] * n + target[:, None]  # (Q Q, kinds) the target pair of each word
    alike = np.unique(earned, axis=0, return_inverse=True)[1].ravel()
    label = coarsest_partition(after, 2 * alike[source] + diagonal)
    first = np.unique(label, return_index=True)[1]
    number = _ordered(label[after[first]], diagonal[first], earned[source[first]])
    return number[label].reshape(n, n)


def _ordered(step: IntArray, label: IntArray, earned: IntArray) -> IntArray:
    """Return the order of the states of a minimal automaton by the step of Moore's refinement that separates them."""
    size = 0
    while label.max() + 1 > size:
        size = int(label.max()) + 1
        key = np.concatenate([label[:, None], label[step], earned], axis=1)
        label = np.unique(key, axis=0, return_inverse=True)[1].ravel()
    return np.asarray(label)


def _where(numbers: Any, condition: BoolArray) -> Any:
    """Return numbers where a condition holds; a single number applies to all."""
    return numbers if isinstance(numbers, int) else numbers[condition]


def _any(copies: BoolArray) -> BoolArray:
    """Return the classes with a copy of some symbol, (K,)."""
    return np.asarray(copies.any(axis=1))


class _Copies:
    """The copies of symbols that occur in sentences, then the rules over them."""

    def __init__(self, pcfg: GrammarRules, automaton: RewardAutomaton, ends: BoolArray) -> None:
        self.pcfg, self.automaton, self.pairs = pcfg, automaton, _Pairs(automaton)
        self.a, self.b, self.c = pcfg.binary.T
        self.above, self.below = pcfg.unary.T
        self.tag, self.word = pcfg.lexical.T
        shape = len(self.pairs.source), len(pcfg.symbols)
        self.makes = self._productive(np.zeros(shape, dtype=bool))  # (K, S) whether the copy derives some string
        whole = self.pairs.of[automaton.start]
        self.roots = {  # class of whole sentences: reward of its last state
            int(whole[q]): float(automaton.end[q]) for q in np.flatnonzero(ends) if self.makes[whole[q], pcfg.start]
        }
        self.splits = self.pairs.splits(_any(self.makes))  # (n, 3) by ascending class
        self.used = self._used(np.zeros(shape, dtype=bool))  # (K, S) whether the copy is reachable

    def _productive(self, makes: BoolArray) -> BoolArray:
        for k in range(len(makes)):
            makes[k, self.tag[self.pairs.goes(k, self.word)]] = True
        changed = _any(makes)
        while changed.any():
            before = makes.sum(axis=1)
            for row in np.flatnonzero(changed).tolist():
                self._above(makes[row])
            changed |= makes.sum(axis=1) > before
            before = makes.sum(axis=1)
            for (k, left, right), (a, b, c) in self._together(self.pairs.splits(_any(makes), changed)):
                possible = makes[left, b] & makes[right, c]
                makes[_where(k, possible), _where(a, possible)] = True
            changed = makes.sum(axis=1) > before
        return makes

    def _together(self, splits: IntArray) -> Iterator[tuple[Any, Any]]:
        """Yield splits with rules, one side in a loop and the other as an array: as many steps as the fewer have."""
        if len(splits) < len(self.a):
            yield from ((split, (self.a, self.b, self.c)) for split in splits.tolist())
        else:
            yield from ((splits.T, rule) for rule in self.pcfg.binary.tolist())

    def _above(self, row: BoolArray) -> None:
        """Add the parents of unary rules to the symbols of a class."""
        before = -1
        while before < (before := int(row.sum())):
            row[self.above[row[self.below]]] = True

    def _used(self, used: BoolArray) -> BoolArray:
        active = used.copy()
        active[list(self.roots), self.pcfg.start] = True
        changed = _any(active)
        while changed.any():
            before = active.sum(axis=1)
            for (k, left, right), (a, b, c) in self._together(self.splits[changed[self.splits[:, 0]]]):
                possible = active[k, a] & self.makes[left, b] & self.makes[right, c]
                for child, symbol in ((left, b), (right, c)):
                    place = _where(child, possible), _where(symbol, possible)
                    used[place] = active[place] = True
            for k in np.flatnonzero(_any(active)).tolist():
                symbols = self.below[active[k, self.above] & self.makes[k, self.below]]
                used[k, symbols] = active[k, symbols] = True
            changed = active.sum(axis=1) > before
        return used

    def _splits_of(self, parents: BoolArray) -> list[list[int]]:
        """Return splits of the classes with copies among ``parents``."""
        result: list[list[int]] = self.splits[_any(parents)[self.splits[:, 0]]].tolist()
        return result

    def _copied(self, parents: BoolArray, k: int, left: int, right: int) -> IntArray:
        """Return binary rules with a copy in these classes whose parent is among ``parents``."""
        return np.flatnonzero(parents[k, self.a] & self.makes[left, self.b] & self.makes[right, self.c])

    def _parents(self) -> Iterator[tuple[int | None, BoolArray]]:
        """Yield copies whose rules are needed, (K, S): reachable ones; then the start itself, class by class."""
        yield None, self.used
        for k in self.roots:
            root = np.zeros_like(self.used)
            root[k, self.pcfg.start] = True
            yield k, root

    def require(self, budget: int) -> None:
        """Refuse a product with too many rules, before any is created."""
        n = 0
        for _, parents in self._parents():
            n += sum(len(self._copied(parents, *split)) for split in self._splits_of(parents))
            n += int((parents[:, self.above] & self.makes[:, self.below]).sum())
            rows = np.flatnonzero(_any(parents)).tolist()
            n += sum(int((parents[k, self.tag] & self.pairs.goes(k, self.word)).sum()) for k in rows)
        if n > budget:
            raise InputError(
                f"the product of {self.pcfg.n_rules:,} rules and {self.automaton.n_states} states has {n:,} rules, more"
                f" than {budget:,}; choose a simpler reward, or a smaller grammar (truesource convert --prune)",
                code="too-many-rules",
            )

    def product(self) -> Product:
        """Return all rules: first of reachable copies, then of the start, with the reward of the last state."""
        number = np.zeros(self.used.shape, dtype=np.int64)
        number[self.used] = 1 + np.arange(int(self.used.sum()))
        tables: tuple[list[Rules], ...] = ([], [], [])
        for start, parents in self._parents():
            paid = 0.0 if start is None else self.roots[start]
            for table, rows in zip(tables, self._tables(parents, number, start is not None), strict=True):
                table += [(rules, copied, gain + paid) for rules, copied, gain in rows]
        (binary, unary, lexical) = (_joined(table, width) for table, width in zip(tables, (3, 2, 2), strict=True))
        place = np.nonzero(self.used)
        return Product(
            names=self._names(*place),
            copied=np.concatenate([[self.pcfg.start], place[1]]),
            binary=binary[0],
            unary=unary[0],
            lexical=lexical[0],
            rule=(binary[1], unary[1], lexical[1]),
            gain=(binary[2], unary[2], lexical[2]),
            copies=Copies(self.pairs.of, self.makes, number),
        )

    def _tables(self, parents: BoolArray, number: IntArray, top: bool) -> tuple[list[Rules], list[Rules], list[Rules]]:
        """Return the rules of each kind with ``parents``, as numbers of copies, with their originals and gains."""
        source = np.zeros_like(number) if top else number
        binary: list[Rules] = []
        unary: list[Rules] = []
        lexical: list[Rules] = []
        for k, left, right in self._splits_of(parents):
            rules = self._copied(parents, k, left, right)
            children = number[left, self.b[rules]], number[right, self.c[rules]]
            binary.append((np.stack([source[k, self.a[rules]], *children], axis=1), rules, np.zeros(len(rules))))
        for k in np.flatnonzero(_any(parents)).tolist():
            rules = np.flatnonzero(parents[k, self.above] & self.makes[k, self.below])
            ends = source[k, self.above[rules]], number[k, self.below[rules]]
            unary.append((np.stack(ends, axis=1), rules, np.zeros(len(rules))))
            rules = np.flatnonzero(parents[k, self.tag] & self.pairs.goes(k, self.word))
            words = self.word[rules]
            gain = self.pairs.gain[self.pairs.source[k], self.pairs.kind[words]]
            lexical.append((np.stack([source[k, self.tag[rules]], words], axis=1), rules, gain))
        return binary, unary, lexical

    def _names(self, classes: IntArray, symbols: IntArray) -> tuple[str, ...]:
        """Return a name for each symbol: its own if it has one copy, else with a pair of states of the class."""
        copies = np.bincount(symbols, minlength=len(self.pcfg.symbols))
        copies[self.pcfg.start] += 1
        taken = set(self.pcfg.symbols)
        names = [self.pcfg.symbols[self.pcfg.start]]
        for k, a in zip(classes.tolist(), symbols.tolist(), strict=True):
            name = self.pcfg.symbols[a]
            if copies[a] > 1:
                name += f"/{self.pairs.source[k]}-{self.pairs.target[k]}"
                while name in taken:
                    name += "'"
                taken.add(name)
            names.append(name)
        return tuple(names)


def by_length(rules: Product, log_mass: FloatArray, lengths: LengthRange, budget: int = BUDGET) -> Product | None:
    """Return the rules of a product for sentences of some lengths: symbols with their number of tokens.

    There is one copy of each symbol and length, without recursion except unary cycles.

    Args:
        rules: the product.
        log_mass: (N+1, S') ln of the mass of each symbol by length, -inf for none; N is ``lengths.high``.
        lengths: lengths of sentences.
        budget: most rules.

    Returns:
        The product; None if it has no sentence.

    Raises:
        InputError: it has more rules than allowed (code ``too-many-rules``).
    """
    if lengths in rules._by_length:
        return rules._by_length[lengths]
    makes = np.isfinite(log_mass)
    roots = np.zeros(makes.shape, dtype=bool)
    roots[lengths.low :, rules.start] = makes[lengths.low :, rules.start]
    if not roots.any():
        return None
    layers = _Layers(rules, makes, roots)
    size = sum(len(numbers) for kinds in layers.rules() for kind in kinds for numbers, _ in kind)
    if size > budget:
        raise InputError(
            "the sum over all lengths is infinite, or too large or small for float64, and the tilted grammar of the"
            f" lengths {lengths} alone has {size:,} rules, more than {budget:,}; choose shorter sentences, or a simpler"
            " reward",
            code="too-many-rules",
        )
    result = rules._by_length[lengths] = layers.product()
    return result


class _Layers:
    """The symbols, with lengths, that occur in sentences, and the rules over them."""

    def __init__(self, rules: Product, makes: BoolArray, roots: BoolArray) -> None:
        self._product, self._makes, self._roots = rules, makes, roots
        self._used = np.zeros(makes.shape, dtype=bool)
        (_, b, c), below = rules.binary.T, rules.unary[:, 1]
        for m in range(len(makes) - 1, 0, -1):  # from the longest down
            for parents in (roots[m], self._used[m]):
                before = -1
                while before < (before := int(self._used[m].sum())):
                    self._used[m, below[self._unary(parents, m)]] = True
            active = roots[m] | self._used[m]
            for i in range(1, m):
                matches = self._binary(active, m, i)
                self._used[i, b[matches]] = True
                self._used[m - i, c[matches]] = True

    def _unary(self, parents: BoolArray, m: int) -> IntArray:
        above, below = self._product.unary.T
        return np.flatnonzero(parents[above] & self._makes[m, below])

    def _binary(self, parents: BoolArray, m: int, i: int) -> IntArray:
        a, b, c = self._product.binary.T
        return np.flatnonzero(parents[a] & self._makes[i, b] & self._makes[m - i, c])

    def rules(self) -> Iterator[tuple[list[tuple[IntArray, Int32Array]], ...]]:
        """Yield the rules of one length and kind of parent, the start or others: numbers, and rows of copies."""
        number = np.zeros(self._used.shape, dtype=np.int32)
        number[self._used] = 1 + np.arange(int(self._used.sum()))
        (a, b, c), (above, below) = self._product.binary.T, self._product.unary.T
        tag, word = self._product.lexical.T
        for left_side, parents in ((np.zeros_like(number), self._roots), (number, self._used)):
            for m in range(1, len(number)):
                binary, unary, lexical = [], [], []
                for i in range(1, m):
                    matches = self._binary(parents[m], m, i)
                    rows = left_side[m, a[matches]], number[i, b[matches]], number[m - i, c[matches]]
                    binary.append((matches, np.stack(rows, axis=1)))
                matches = self._unary(parents[m], m)
                unary.append((matches, np.stack([left_side[m, above[matches]], number[m, below[matches]]], axis=1)))
                if m == 1:
                    matches = np.flatnonzero(parents[m, tag])
                    lexical.append((matches, np.stack([left_side[m, tag[matches]], word[matches]], axis=1)))
                yield binary, unary, lexical

    def product(self) -> Product:
        """Return all rules over the copies that occur."""
        tables: tuple[list[tuple[IntArray, Int32Array]], ...] = ([], [], [])
        for kinds in self.rules():
            for table, rows in zip(tables, kinds, strict=True):
                table.extend(rows)
        of = [np.concatenate([np.empty(0, dtype=np.int64), *(matches for matches, _ in table)]) for table in tables]
        binary, unary, lexical = (
            np.concatenate([np.empty((0, width), dtype=np.int32), *(rows for _, rows in table)]).astype(np.int32)
            for table, width in zip(tables, (3, 2, 2), strict=True)
        )
        length, symbol = np.nonzero(self._used)
        whole = self._product
        return Product(
            names=self._names(length, symbol),
            copied=whole.copied[np.concatenate([[whole.start], symbol])],
            binary=binary,
            unary=unary,
            lexical=lexical,
            rule=(whole.rule[0][of[0]], whole.rule[1][of[1]], whole.rule[2][of[2]]),
            gain=(whole.gain[0][of[0]], whole.gain[1][of[1]], whole.gain[2][of[2]]),
            layers=(length, symbol),
        )

    def _names(self, lengths: IntArray, symbols: IntArray) -> tuple[str, ...]:
        """Return a name for each symbol: its own if it has one copy, else with its length."""
        whole = self._product
        copies = np.bincount(symbols, minlength=len(whole.names))
        copies[whole.start] += 1
        taken = set(whole.names)
        names = [whole.names[whole.start]]
        for m, a in zip(lengths.tolist(), symbols.tolist(), strict=True):
            name = whole.names[a]
            if copies[a] > 1:
                name += f"/{m}"
                while name in taken:
                    name += "'"
                taken.add(name)
            names.append(name)
        return tuple(names)


def _joined(table: list[Rules], width: int) -> tuple[Int32Array, IntArray, FloatArray]:
    if not table:
        return np.empty((0, width), dtype=np.int32), np.empty(0, dtype=np.int64), np.empty(0)
    rules, copied, gain = (np.concatenate(part) for part in zip(*table, strict=True))
    return rules.astype(np.int32), copied.astype(np.int64), gain


def product(
    pcfg: GrammarRules, automaton: RewardAutomaton, ends: BoolArray | None = None, budget: int = BUDGET
) -> Product | None:
    """Return the product of a grammar and an automaton over its words; None if it has no sentence.

    Args:
        pcfg: the grammar.
        automaton: the reward.
        ends: (Q,) states in which a sentence may end; all by default.
        budget: most rules.

    Raises:
        InputError: it has more rules or the automaton more states than allowed (code ``too-many-rules``).
    """
    if automaton.n_states > MOST_STATES:
        raise InputError(
            f"the automaton has {automaton.n_states:,} states, more than {MOST_STATES}; choose a simpler reward",
            code="too-many-rules",
        )
    builder = _Copies(pcfg, automaton, np.ones(automaton.n_states, dtype=bool) if ends is None else ends)
    if not builder.roots:
        return None
    builder.require(budget)
    return builder.product()
