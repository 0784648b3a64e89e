"""Measures of every context of sentences, and a cache of the truth about a fixed set of sentences.

All estimates and tables come from `Contexts`; `CachedTruth` allows repeated comparisons during training.
`Reliability` compares a model's probabilities with the exact true ones, not with outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.blocks import (
    PENN,
    PROBABILITIES,
    Events,
    TagClasses,
    TruthBlock,
    batches_of,
    divide_by_probability,
    events_of,
    frequency_bands,
    matched,
    paired_blocks,
    truth_blocks,
    word_classes,
)
from truesource.generator.language_model import DistributionModel
from truesource.generator.model_checks import checked_distributions
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import meter

LOW = -24.0  #: ln Q below which all events share the first bin
BINS = 96  #: number of bins, a quarter of a nat each
TOP_BINS = 15  #: number of bins of equal width, as in Guo et al. (2017)
#: Columns of `DivergenceRows.values`; P is the truth, Q the model. The mass of tokens that no sentence has
#: (``special_mass``) counts against the model in ``kl``, and is another event in ``js`` and ``tv``, where the truth has
#: probability 0. ``reverse_kl`` and ``entropy_model`` are of Q over the events only, normalised to sum to one, as
#: in sampling.
NAMES = (
    "kl",  # KL(P || Q), nats; inf if Q is 0 and P is not
    "reverse_kl",  # KL(Q || P), nats; inf if P is 0 and Q is not
    "reverse_kl_possible",  # KL(Q given that the truth allows the event || P), nats
    "js",  # Jensen-Shannon divergence, nats, 0 to ln 2
    "tv",  # total variation, 0 to 1
    "entropy_truth",  # nats
    "entropy_model",  # nats; NaN if Q gives all events probability 0
    # share of the most probable events of Q, one unless some are tied, that are most probable under P: 1 if Q picks
    # any of the events that P ties, 1/2 if Q ties two of which P prefers one. Ties are within 1e-9 nats
    "agreement",
    # share of the k most probable events of Q (no more than P allows) that are among the k best of P; if P ties for the
    # last places, any of the tied events counts
    "top_k_overlap",
    "special_mass",  # mass of Q outside the events
    "impossible_mass",  # Q of events with P = 0
    "confidence",  # Q of its most probable event
    "confidence_truth",  # P of that event
)
CONTEXTS = 2000  #: default number of contexts
MEASURED = "divergence from the truth, by sentence"  #: what is measured, for progress
_KEPT = ("kl", "js", "tv")


@dataclass(frozen=True, eq=False)
class Reliability:
    """Streaming histograms of events, of constant size."""

    low: float = LOW  #: ln Q at the lower end of the first bin, nats
    step: float = -LOW / BINS  #: width of a bin, nats
    bins: FloatArray = field(default_factory=lambda: np.zeros((BINS, 3)))  #: (B, 3) events, sum of Q, sum of P
    top: FloatArray = field(default_factory=lambda: np.zeros((TOP_BINS, 3)))  #: (T, 3) contexts by the largest Q

    def add_top(self, confidence: FloatArray, truth: FloatArray, weight: FloatArray) -> None:
        """Add contexts by Q of the model's most probable event, with its true probability."""
        at = np.minimum((confidence * len(self.top)).astype(np.int64), len(self.top) - 1)
        for column, values in enumerate((weight, weight * confidence, weight * truth)):
            np.add.at(self.top[:, column], at, values)

    @property
    def contexts(self) -> float:
        """Number of added contexts."""
        return float(self.top[:, 0].sum())

    def curve(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return mean Q, mean P and number of events of each non-empty bin, (B',) each."""
        nonempty = self.bins[self.bins[:, 0] > 0.0]
        return nonempty[:, 1] / nonempty[:, 0], nonempty[:, 2] / nonempty[:, 0], nonempty[:, 0]

    @property
    def error(self) -> float:
        """Compute the expected calibration error over all events: half the summed ``|mass of Q - mass of P|``, 0 to 1.

        It is per context, so at most the mean total variation: its part that is visible in bins of equal Q.
        """
        return float(0.5 * np.abs(self.bins[:, 1] - self.bins[:, 2]).sum() / self.contexts)

    @property
    def top_error(self) -> float:
        """Compute the expected calibration error of the most probable event, 0 to 1.

        Guo et al. (2017), equation 3, with true probabilities instead of outcomes.
        """
        return float(np.abs(self.top[:, 1] - self.top[:, 2]).sum() / self.contexts)


class DivergenceRows(NamedTuple):
    """The measures in W contexts."""

    values: FloatArray  #: (W, 13) columns are `NAMES`
    share: FloatArray  #: (W, G) P of each group of events
    grouped: FloatArray  #: (W, G) sum of P (ln P - ln Q) over each group; rows sum to ``kl``


def measure_rows(
    truth: FloatArray,
    model: FloatArray,
    *,
    top: int = 10,
    groups: IntArray | None = None,
    weight: FloatArray | None = None,
    reliability: Reliability | None = None,
) -> DivergenceRows:
    """Compare two blocks of distributions row by row.

    Args:
        truth: (W, E) ln P, nats; -inf where impossible.
        model: (W, E) ln Q, nats; rows may sum to less than one.
        top: size of the sets of most probable events, at least 1; ties of the model go to the first.
        groups: (E,) group of each event, 0 and up; None: all are one group.
        weight: weight of each row in ``reliability``, (W,).
        reliability: histogram to add the events to.
    """
    from truesource.evaluation.divergence._kernels import measure

    if truth.shape != model.shape or truth.ndim != 2 or truth.shape[1] == 0 or top < 1:
        raise ValueError(f"expecting two (W, E) arrays and top >= 1, got {truth.shape}, {model.shape} and {top}")
    if groups is None:
        groups = np.zeros(truth.shape[1], dtype=np.int64)
    weight = np.ones(len(truth)) if weight is None else weight
    reliability = Reliability() if reliability is None else reliability
    values, share, grouped = measure(
        np.ascontiguousarray(truth, dtype=np.float64),
        np.ascontiguousarray(model, dtype=np.float64),
        top,
        groups,
        int(groups.max()) + 1,
        weight,
        reliability.low,
        reliability.step,
        reliability.bins,
    )
    confidence = NAMES.index("confidence")
    reliability.add_top(values[:, confidence], values[:, confidence + 1], weight)
    return DivergenceRows(values, share, grouped)


@dataclass(frozen=True, eq=False, kw_only=True)
class Contexts:
    """The measures of the T contexts of N sentences, in order of sentence, then position."""

    values: FloatArray  #: (T, M) columns are `truesource.evaluation.divergence.contexts.NAMES`
    truth: FloatArray  #: (T,) ln P of the observed event, nats
    model: FloatArray  #: (T,) ln Q of the observed event, nats; -inf if the model gives it probability 0
    sentence: IntArray  #: (T,) number of the sentence in the input; sentences in `excluded` do not occur
    position: IntArray  #: (T,) 0 to n; n is the end of the sentence
    length: IntArray  #: (T,) words of the sentence
    excluded: IntArray  #: sentences with probability 0 under the truth
    n_sentences: int  #: number of input sentences, including excluded ones
    reliability: Reliability
    divided: dict[str, DividedDivergence]  #: by ``class``, ``frequency`` and ``probability``, if requested

    def column(self, name: str) -> FloatArray:
        """Return one measure, (T,)."""
        return self.values[:, NAMES.index(name)]

    @property
    def starts(self) -> IntArray:
        """Index of the first context of each possible sentence, (K,)."""
        return np.flatnonzero(np.diff(self.sentence, prepend=-1))

    def per_sentence(self, values: FloatArray) -> FloatArray:
        """Sum over the contexts of each possible sentence, (K, ...)."""
        return np.add.reduceat(values, self.starts, axis=0)


@dataclass(frozen=True, eq=False)
class DividedDivergence:
    """KL(P || Q) divided among groups of the next event, summed over the contexts of each possible sentence."""

    names: tuple[str, ...]  #: (G,)
    share: FloatArray  #: (K, G) expected number of tokens of the group
    part: FloatArray  #: (K, G) sum of P (ln P - ln Q) over the group, nats, if finite
    infinite: IntArray  #: (G,) contexts with an infinite part; they do not count in share and part
    tokens: FloatArray  #: (G,) expected number of tokens of the group in all contexts
    masses: GroupMasses | None = None  #: if the mass of groups on both sides was requested
    of_contexts: bool = False  #: parts are shares of divergences of whole contexts, which are never negative


@dataclass(frozen=True, eq=False)
class GroupMasses:
    """The probabilities of groups of the next event, summed over the contexts of each possible sentence."""

    truth: FloatArray  #: (K, G) sums of P
    model: FloatArray  #: (K, G) sums of Q
    contexts: FloatArray  #: (K,) number of contexts


def measure_contexts(
    model: DistributionModel,
    oracle: Oracle,
    sentences: Sequence[Sequence[str]],
    *,
    top: int = 10,
    by: Sequence[str] = (),
    classes: TagClasses = PENN,
    blocks: Iterable[tuple[TruthBlock, FloatArray]] | None = None,
) -> Contexts:
    """Compare the full distributions of model and truth in every context of sentences.

    Charts and networks run once for each distinct sentence. Memory holds a few blocks of one position, and some 120
    bytes per context.

    Args:
        model: model whose distributions have the vocabulary of the oracle.
        oracle: result of `truesource.evaluation.core.setting.oracle_for`.
        sentences: sentences of at least one token.
        top: size of the sets of most probable events.
        by: ``class``, ``frequency`` and ``probability`` divide the divergence among groups of words.
        classes: classes for ``class``.
        blocks: both sides at every position of these sentences, if already computed; None: computed here.

    Raises:
        InputError: a sentence is empty or too long for the model, all have true probability 0, or the two sides
            have different vocabularies.
    """
    events = events_of(model, oracle)
    table = _ContextTable(np.array([len(s) + events.causal for s in sentences], dtype=np.int64))
    reliability = Reliability()
    bands, names = frequency_bands(oracle, events) if "frequency" in by else (None, ())
    divider = word_classes(oracle, classes) if "class" in by else None
    collect = {"frequency": _Collect(names, len(sentences))} if "frequency" in by else {}
    if divider is not None:
        collect["class"] = _Collect(divider.names, len(sentences))
    if "probability" in by:
        collect["probability"] = _Collect(PROBABILITIES, len(sentences))
    if blocks is None:
        blocks = paired_blocks(model, oracle, sentences, events, MEASURED)
    for block, q in blocks:
        whole = np.flatnonzero(block.whole)
        if len(whole) == 0:
            continue
        members = [block.members[row] for row in whole]
        repeats = np.array([len(m) for m in members])
        which = np.concatenate([np.asarray(m, dtype=np.int64) for m in members])
        rows = np.repeat(np.arange(len(whole)), repeats)
        p, q, observed = np.asarray(block.log_prob[whole], dtype=np.float64), q[whole], block.observed[whole]
        measured = measure_rows(p, q, top=top, groups=bands, weight=repeats.astype(np.float64), reliability=reliability)
        truth, modelled = (side[np.arange(len(whole)), observed][rows] for side in (p, q))
        table.add(which, block.position, measured.values[rows], truth, modelled)
        if "frequency" in by:
            collect["frequency"].add(which, measured.share[rows], measured.grouped[rows])
        if divider is not None:
            share, part = divider.divide(oracle, events, block.rows(whole), q)
            collect["class"].add(which, share[rows], part[rows])
        if "probability" in by:
            share, part, mass = divide_by_probability(p, q)
            collect["probability"].add(which, share[rows], part[rows], mass[rows])
    return table.contexts(events.causal, reliability, collect)


class _ContextTable:
    """The measures of every context, sentence after sentence, filled block by block.

    Args:
        sizes: number of contexts of each sentence, (S,).
    """

    def __init__(self, sizes: IntArray) -> None:
        self._sizes, self._first = sizes, np.cumsum(sizes) - sizes
        total = int(sizes.sum())
        self._values, self._log_prob = np.zeros((total, len(NAMES))), np.zeros((2, total))
        self._possible = np.zeros(len(sizes), dtype=bool)

    def add(self, sentence: IntArray, position: int, values: FloatArray, truth: FloatArray, model: FloatArray) -> None:
        """Add one position of sentences."""
        at = self._first[sentence] + position
        self._values[at] = values
        self._log_prob[0, at], self._log_prob[1, at] = truth, model
        self._possible[sentence] = True

    def contexts(self, ends: int, reliability: Reliability, collect: Mapping[str, _Collect]) -> Contexts:
        """Return contexts of all possible sentences; ``ends``: contexts of a sentence beyond its words."""
        n = len(self._sizes)
        if not self._possible.any():
            raise NothingToMeasureError(
                f"the grammar can make none of the {n} sentences, so there is nothing to compare",
                "no-possible-sentence",
            )
        sentence = np.repeat(np.arange(n), self._sizes)
        is_possible = self._possible[sentence]
        return Contexts(
            values=self._values[is_possible],
            truth=self._log_prob[0, is_possible],
            model=self._log_prob[1, is_possible],
            sentence=sentence[is_possible],
            position=(np.arange(len(sentence)) - self._first[sentence])[is_possible],
            length=(self._sizes - ends)[sentence][is_possible],
            excluded=np.flatnonzero(~self._possible),
            n_sentences=n,
            reliability=reliability,
            divided={name: collected.of(self._possible) for name, collected in collect.items()},
        )


class _Collect:
    """The sums of groups by sentence."""

    def __init__(self, names: Sequence[str], n_sentences: int) -> None:
        self._names = tuple(names)
        self._share, self._part = np.zeros((2, n_sentences, len(self._names)))
        self._tokens = np.zeros(len(self._names))
        self._infinite = np.zeros(len(self._names), dtype=np.int64)
        self._masses: FloatArray | None = None
        self._contexts = np.zeros(n_sentences)

    def add(self, sentence: IntArray, share: FloatArray, part: FloatArray, mass: FloatArray | None = None) -> None:
        finite = np.isfinite(part)
        self._tokens += share.sum(axis=0)
        self._infinite += (~finite).sum(axis=0)
        np.add.at(self._share, sentence, np.where(finite, share, 0.0))
        np.add.at(self._part, sentence, np.where(finite, part, 0.0))
        if mass is not None:
            if self._masses is None:
                self._masses = np.zeros((2, *self._share.shape))
            for sums, values in zip(self._masses, (share, mass), strict=True):
                np.add.at(sums, sentence, values)
            np.add.at(self._contexts, sentence, 1.0)

    def of(self, possible: BoolArray) -> DividedDivergence:
        masses = None
        if self._masses is not None:
            truth, model = self._masses[:, possible]
            masses = GroupMasses(truth, model, self._contexts[possible])
        share, part = self._share[possible], self._part[possible]
        return DividedDivergence(self._names, share, part, self._infinite, self._tokens, masses)


@dataclass(frozen=True, eq=False, kw_only=True)
class CachedTruth:
    """The exact distributions of sentences in the columns of one model, from `cache_truth`."""

    objective: str
    words: tuple[str, ...] | None  #: vocabulary of the model; None: every word of the grammar
    sentences: int  #: number of cached sentences
    contexts: int  #: number of their positions
    groups: tuple[tuple[tuple[tuple[str, ...], ...], tuple[TruthBlock, ...]], ...]  #: sentences (W,), their blocks
    events: Events
    oracle: Oracle
    inputs: tuple[tuple[str, ...], ...]  #: all input sentences, including impossible ones

    @property
    def memory(self) -> int:
        """Number of bytes of the cached probabilities."""
        return sum(block.log_prob.nbytes + block.states.nbytes for _, blocks in self.groups for block in blocks)

    def blocks(self, model: DistributionModel) -> Iterator[tuple[TruthBlock, FloatArray]]:
        """Yield truth and model, (W, E) ln Q, at every cached position.

        Raises:
            InputError: the model has another objective or vocabulary than the model of the cache.
        """
        if model.objective != self.objective or model.vocabulary != self.words:
            raise InputError("the truth was cached for another objective or vocabulary; cache it for this model")
        for rows, blocks in self.groups:
            yield from matched(iter(blocks), checked_distributions(model, rows, len(self.events)), len(self.events))

    def compare(self, model: DistributionModel) -> dict[str, float]:
        """Measure the distance of a model.

        Returns:
            ``relative_ppl``, exp of the mean of ln P - ln Q over tokens; ``kl``, the mean over contexts of the exact
            KL(P || Q); ``js`` and ``tv`` likewise; nats. Infinite values are excluded, and ``infinite`` is then the
            number of contexts with infinite KL.

        Raises:
            InputError: the model has another objective or vocabulary than the model of the cache.
        """
        totals, gap, infinite = np.zeros(len(_KEPT)), 0.0, 0
        columns = [NAMES.index(name) for name in _KEPT]
        for block, q in self.blocks(model):
            p = np.asarray(block.log_prob, dtype=np.float64)
            weight = np.array([len(members) for members in block.members], dtype=np.float64)
            values = measure_rows(p, q, top=1).values
            at = np.arange(len(p)), block.observed
            totals += weight @ values[:, columns]
            gap += float(weight @ (p[at] - q[at]))
            infinite += int(weight @ np.isinf(values[:, 0]))
        means = {name: float(total) / self.contexts for name, total in zip(_KEPT, totals, strict=True)}
        mean = gap / self.contexts
        means["relative_ppl"] = math.exp(mean) if mean < math.log(np.finfo(np.float64).max) else math.inf
        if infinite:
            means["infinite"] = float(infinite)
        return {name: value for name, value in means.items() if math.isfinite(value)}


def cache_truth(
    model: DistributionModel,
    setting: Setting,
    *,
    contexts: int = CONTEXTS,
    dtype: DTypeLike = np.float32,
    states: bool = False,
) -> CachedTruth:
    """Compute and cache the exact distributions of the first sentences.

    It takes contexts times words times 4 bytes (float32, which changes a divergence by under 1e-5 nats per token) or
    8 (float64): 190 MB for 2,000 contexts of 24,000 words.

    Args:
        model: a model with the objective and the vocabulary of later models.
        setting: truth and text, of which the first sentences are cached that have up to ``contexts`` positions
            together, and at least one.
        contexts: maximum number of positions, unless the first sentence is longer.
        dtype: float32 or float64.
        states: also cache the weights of nonterminals of the next word, which classes of words need.

    Raises:
        InputError: one of these sentences is empty.
        NothingToMeasureError: all have true probability 0.
    """
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InputError(f"the truth is cached in float32 or float64, not {np.dtype(dtype)}")
    oracle = setting.full_oracle(model)
    events = events_of(model, oracle)
    ends = np.cumsum([len(sentence) + events.causal for sentence in setting.sentences])
    some = list(setting.sentences[: max(1, int(np.searchsorted(ends, contexts, side="right")))])
    groups = []
    n_cached = positions = 0
    with meter("exact distributions of sentences, to compare with", len(some)) as progress:
        for batch in batches_of(oracle, some, len(events)):
            blocks = []
            for block in truth_blocks(oracle, batch, events):
                part = block.rows(np.flatnonzero(block.whole))
                kept_states = part.states if states else np.empty((len(part.members), 0))
                blocks.append(replace(part, log_prob=part.log_prob.astype(dtype), states=kept_states))
            progress.advance(sum(len(members) for members in batch.members))
            members = blocks[0].members
            if members:
                groups.append((tuple(tuple(some[m[0]]) for m in members), tuple(blocks)))
                n_cached += sum(map(len, members))
                positions += sum(map(len, members)) * len(blocks)
    if not groups:
        raise NothingToMeasureError(
            f"the grammar can make none of the {len(some)} sentences, so there is nothing to compare with",
            "no-possible-sentence",
        )
    return CachedTruth(
        objective=oracle.objective,
        words=model.vocabulary,
        sentences=n_cached,
        contexts=positions,
        groups=tuple(groups),
        events=events,
        oracle=oracle,
        inputs=tuple(tuple(sentence) for sentence in some),
    )
