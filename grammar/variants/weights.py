"""Changes of probabilities and words: choices more or less random, word frequencies more or less even, fewer words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.variants.change import Change, ChangeResult, RuleMap, locate, require_ending

SMALLEST_LOGP = -690.0  #: nats; probabilities below underflow float64, themselves or in products
UNKNOWN = "<unk>"  #: replacement of collapsed words


def log_sums(parents: Int32Array, logp: FloatArray, n_symbols: int) -> FloatArray:
    """Return ``ln sum exp(logp)`` over the rules of each symbol, (S,); -inf for a symbol without any."""
    top = np.full(n_symbols, -np.inf)
    np.maximum.at(top, parents, logp)
    sums = np.zeros(n_symbols)
    np.add.at(sums, parents, np.exp(logp - top[parents]))
    result: FloatArray = np.full(n_symbols, -np.inf)
    some = sums > 0.0
    result[some] = top[some] + np.log(sums[some])
    return result


def require_representable(logp: FloatArray, spec: str) -> None:
    """Refuse probabilities that float64 cannot hold.

    Raises:
        InputError: one is below exp(-690).
    """
    if len(logp) and float(logp.min()) < SMALLEST_LOGP:
        raise InputError(f"{spec} gives probabilities below 1e-299, too small for float64; choose a value nearer to 1")


def checked(value: float, name: str, *, zero: bool) -> float:
    """Return a finite number above zero, or also zero if ``zero``.

    Raises:
        InputError: it is not.
    """
    plain = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not plain or value < 0.0 or (value == 0.0 and not zero):
        raise InputError(f"{name} needs a number {'from 0 on' if zero else 'above 0'}, got {value!r}")
    return float(value)


def number(value: float) -> str:
    """Return a number as short text that reads back unchanged."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


class OneNumber(Change):
    """A change described by one number; a dataclass of one field."""

    title: ClassVar[str]
    zero: ClassVar[bool] = True  #: whether the number may be 0

    def __post_init__(self) -> None:
        ((name, value),) = vars(self).items()
        object.__setattr__(self, name, checked(value, self.title, zero=self.zero))

    @property
    def spec(self) -> str:
        """The change as text, such as ``temperature=0.8``."""
        (value,) = vars(self).values()
        return f"{self.title}={number(value)}"


@dataclass(frozen=True)
class Temperature(OneNumber):
    """Make every rule's probability proportional to ``p ** (1 / value)`` among the rules of its parent.

    Above 1 rules become more uniform and the entropy of every choice rises, below 1 it falls; 1 changes nothing.
    Sentences may grow or shrink with it. Rules keep their order.

    Raises:
        InputError: the value is not a number above 0.
    """

    title = "temperature"
    zero = False
    value: float

    def apply(self, pcfg: PCFG) -> ChangeResult:
        """Raise probabilities to the power and renormalise.

        Raises:
            InputError: derivations of the result may not end, or a probability becomes too small for float64.
        """
        same = RuleMap.identity(pcfg)
        if self.value == 1.0:
            return ChangeResult(pcfg, same, {})
        logp = np.concatenate([logp for _, logp in pcfg.tables()]) / self.value
        parents = np.concatenate([rules[:, 0] for rules, _ in pcfg.tables()])
        logp = np.minimum(logp - log_sums(parents, logp, len(pcfg.symbols))[parents], 0.0)
        require_representable(logp, self.spec)
        binary, unary, lexical = np.split(logp, [len(pcfg.binary), len(pcfg.binary) + len(pcfg.unary)])
        result = replace(pcfg, binary_logp=binary, unary_logp=unary, lexical_logp=lexical)
        require_ending(result, self.spec)
        return ChangeResult(result, same, {})


@dataclass(frozen=True)
class Sharpen(OneNumber):
    """Make word probabilities within each preterminal proportional to ``p ** exponent``.

    The total lexical probability of every symbol is kept, hence the distribution of trees over preterminals. If words
    follow Zipf's law with some exponent, it is multiplied by ``exponent``; 1 changes nothing, 0 makes words uniform.
    Rules keep their order, so one seed samples the same trees from both grammars.

    Raises:
        InputError: the exponent is not a number >= 0.
    """

    title = "sharpen"
    exponent: float

    def apply(self, pcfg: PCFG) -> ChangeResult:
        """Raise word probabilities to the power and renormalise.

        Raises:
            InputError: a probability becomes too small for float64.
        """
        if self.exponent == 1.0:
            return ChangeResult(pcfg, RuleMap.identity(pcfg), {})
        return _reweighted(pcfg, pcfg.lexical_logp * self.exponent, self.spec)


@dataclass(frozen=True)
class Zipf(OneNumber):
    """Make the probability of the word of rank r within each preterminal proportional to ``r ** -exponent``.

    Equally probable words are ranked by their number. Otherwise as `Sharpen`; 0 makes words uniform, and a second
    application with the same exponent changes nothing.

    Raises:
        InputError: the exponent is not a number >= 0.
    """

    title = "zipf"
    exponent: float

    def apply(self, pcfg: PCFG) -> ChangeResult:
        """Rank the words and assign new probabilities.

        Raises:
            InputError: a probability becomes too small for float64.
        """
        parents, words = pcfg.lexical[:, 0], pcfg.lexical[:, 1]
        order = np.lexsort((words, -pcfg.lexical_logp, parents))
        begin = np.searchsorted(parents[order], parents[order])  # start of the words of each parent
        rank = np.empty(len(order))
        rank[order] = np.arange(len(order)) - begin + 1
        return _reweighted(pcfg, -self.exponent * np.log(rank), self.spec)


def _reweighted(pcfg: PCFG, weight: FloatArray, spec: str) -> ChangeResult:
    """Return lexical rules proportional to ``exp(weight)``; the lexical probability of each symbol is kept."""
    parents = pcfg.lexical[:, 0]
    n = len(pcfg.symbols)
    total = log_sums(parents, pcfg.lexical_logp, n)
    logp = weight + (total[parents] - log_sums(parents, weight, n)[parents])
    require_representable(logp, spec)
    return ChangeResult(replace(pcfg, lexical_logp=np.minimum(logp, 0.0)), RuleMap.identity(pcfg), {})


@dataclass(frozen=True)
class Vocabulary(OneNumber):
    """Keep the ``size`` words with the largest expected count; the others give them their probability.

    Counts are exact, not conditioned on length, and words of equal count are taken by their number. Within each
    preterminal, the probability of the dropped words is divided among its remaining ones in proportion, so its total
    lexical probability is unchanged, and with it the distribution of trees over preterminals. A preterminal that would
    lose all its words keeps its most probable one, which replaces the least frequent other words: the size is exact,
    and only lexical rules are dropped.

    Raises:
        InputError: the size is not an integer >= 1.
    """

    title = "vocabulary"
    size: int

    def __post_init__(self) -> None:
        _check_size(self.size, self.title)

    def apply(self, pcfg: PCFG) -> ChangeResult:
        """Drop the other words.

        Raises:
            InputError: there are fewer words than preterminals need, or the spectral radius is 1 or more.
        """
        if self.size >= len(pcfg.vocabulary):
            return ChangeResult(pcfg, RuleMap.identity(pcfg), {})
        keep, rescued = self._chosen(pcfg)
        rules = keep[pcfg.lexical[:, 1]]
        parents, logp = pcfg.lexical[rules, 0], pcfg.lexical_logp[rules]
        n = len(pcfg.symbols)
        total = log_sums(pcfg.lexical[:, 0], pcfg.lexical_logp, n)
        logp = np.minimum(logp + (total[parents] - log_sums(parents, logp, n)[parents]), 0.0)
        number = np.cumsum(keep) - 1
        result = replace(
            pcfg,
            vocabulary=tuple(word for word, ok in zip(pcfg.vocabulary, keep, strict=True) if ok),
            lexical=np.column_stack([parents, number[pcfg.lexical[rules, 1]]]).astype(np.int32),
            lexical_logp=logp,
        )
        details = {**_details(pcfg, keep), "kept_for_a_preterminal": rescued}
        return ChangeResult(result, RuleMap.by_name(pcfg, result), details)

    def _chosen(self, pcfg: PCFG) -> tuple[BoolArray, int]:
        """Return which words to keep, (V,), and how many of them for a preterminal's sake."""
        parents, words = pcfg.lexical[:, 0], pcfg.lexical[:, 1]
        order = np.lexsort((words, -pcfg.lexical_logp, parents))
        preterminals, first = np.unique(parents[order], return_index=True)
        best = words[order][first]
        ranked = np.argsort(-pcfg.exact.expected_words, kind="stable")
        rescued = np.zeros(len(pcfg.vocabulary), dtype=bool)
        while True:
            keep = rescued.copy()
            others = ranked[~rescued[ranked]]
            keep[others[: self.size - int(rescued.sum())]] = True
            served = np.zeros(len(pcfg.symbols), dtype=bool)
            served[parents[keep[words]]] = True
            bare = ~served[preterminals]
            if not bare.any():
                return keep, int(rescued.sum())
            rescued[best[bare]] = True
            if rescued.sum() > self.size:
                name = pcfg.symbols[int(preterminals[np.flatnonzero(bare)[0]])]
                raise InputError(
                    f"with {self.size:,} words some of the {len(preterminals):,} preterminals, such as"
                    f" {name!r}, would have none; choose at least {int(rescued.sum()):,}, or collapse={self.size}"
                )


@dataclass(frozen=True)
class Collapse(OneNumber):
    """Keep the ``size`` words with the largest expected count; all others become ``<unk>`` (`PCFG.collapse`).

    Sentences are the original ones under a mapping of words, so every derivation has an image.

    Raises:
        InputError: the size is not an integer >= 1.
    """

    title = "collapse"
    size: int

    def __post_init__(self) -> None:
        _check_size(self.size, self.title)

    def apply(self, pcfg: PCFG) -> ChangeResult:
        """Merge the other words.

        Raises:
            InputError: the spectral radius is 1 or more.
        """
        keep = np.zeros(len(pcfg.vocabulary), dtype=bool)
        if self.size >= len(keep):
            return ChangeResult(pcfg, RuleMap.identity(pcfg), {})
        keep[np.argsort(-pcfg.exact.expected_words, kind="stable")[: self.size]] = True
        result = pcfg.collapse(word for word, ok in zip(pcfg.vocabulary, keep, strict=True) if ok)
        image = np.array([result.word_ids.get(word, result.word_ids[UNKNOWN]) for word in pcfg.vocabulary])
        lexical = np.column_stack([pcfg.lexical[:, 0], image[pcfg.lexical[:, 1]]])
        target = locate(result, pcfg.binary.astype(np.int64), pcfg.unary.astype(np.int64), lexical)
        rule_map = RuleMap(target, np.zeros(len(pcfg.binary), dtype=bool), result.n_rules)
        return ChangeResult(result, rule_map, _details(pcfg, keep))


def _details(pcfg: PCFG, keep: BoolArray) -> dict[str, float | int]:
    counts = pcfg.exact.expected_words
    return {"words_kept": int(keep.sum()), "tokens_kept": min(float(counts[keep].sum() / counts.sum()), 1.0)}


def _check_size(size: int, name: str) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InputError(f"{name} needs an integer number of words >= 1, got {size!r}")
