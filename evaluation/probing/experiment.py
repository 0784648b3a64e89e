"""One task for probes, run on the vectors of one layer after another."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.measures.bootstrap import Interval, ends
from truesource.evaluation.measures.correlation import spearman, spearman_ends
from truesource.evaluation.probing import By, ProbeSettings
from truesource.evaluation.probing.measures import cross_entropies, group_accuracy, mean_intervals, probe_measures
from truesource.evaluation.probing.splits import ProbingSplit, numbered, split
from truesource.evaluation.probing.targets import Targets
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.settings import DEFAULT_SEED

Vectors = NDArray[np.floating]
#: shares of the train part after which a new probe is trained
PORTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)


class Probe(Protocol):
    """A trained probe."""

    @property
    def weight_decay(self) -> float:
        """Weight decay that the probe was trained with."""

    @property
    def dev_loss(self) -> float:
        """Cross-entropy on the dev part, nats."""

    def log_probs(self, x: Vectors) -> FloatArray:
        """Log probability of each label, (N, C) nats, for vectors (N, D)."""


class ProbeTrainer(Protocol):
    """A function that trains a probe."""

    def __call__(self, x: Vectors, targets: FloatArray, dev_x: Vectors, dev_targets: FloatArray) -> Probe:
        """Train on vectors (N, D) and label probabilities (N, C); those of a dev part choose the decay."""


def word_correlations(label: FloatArray, truth: FloatArray, model: FloatArray, group: IntArray) -> dict[str, Interval]:
    """Spearman's rho of ln(probe probability of the true label) with three values of the word.

    Args:
        label: (N,) ln of the probe probability.
        truth: (N,) ln P of the word under the grammar, nats.
        model: (N,) ln Q of the word under the model, nats.
        group: (N,) word type or sentence, which are independent.

    Returns:
        ``rho_truth``, ``rho_model`` and ``rho_difference``, the last with abs(ln P - ln Q), with 95% intervals.
    """
    order = np.argsort(group, kind="stable")
    values = {"rho_truth": truth, "rho_model": model, "rho_difference": np.abs(truth - model)}
    correlations = {}
    for name, value in values.items():
        x, y = label[order], value[order]
        correlations[name] = Interval(spearman(x, y), *ends(*spearman_ends(x, y, group[order])))
    return correlations


def control_labels(keys: Sequence[str], truth: IntArray, seed: int) -> IntArray:
    """A control task (Hewitt and Liang 2019): each word type has one label, drawn from those of the items, (T,).

    Only a probe that knows the type by heart can tell it, so accuracy on it says how much a probe can memorise. Types
    must recur for that: of spans they are those of the first word, for pairs of end words hardly do.
    """
    rng = np.random.default_rng([seed, 2])
    drawn = {key: int(truth[rng.integers(len(truth))]) for key in dict.fromkeys(keys)}
    return np.array([drawn[key] for key in keys], dtype=np.int64)


def random_labels(truth: IntArray, seed: int) -> IntArray:
    """Draw a label for each item anew from those of the items, (T,): nothing can tell it."""
    rng = np.random.default_rng([seed, 3])
    return truth[rng.integers(len(truth), size=len(truth))]


def one_hot(labels: IntArray, n_labels: int) -> FloatArray:
    """Hard labels as distributions, (T, C)."""
    table = np.zeros((len(labels), n_labels))
    table[np.arange(len(labels)), labels] = 1.0
    return table


def majority_guess(truth: IntArray) -> int:
    """The most frequent label; of several, the first."""
    return int(np.bincount(truth).argmax())


def identity_guesses(keys: Sequence[str], truth: IntArray, train: IntArray, test: IntArray) -> IntArray:
    """Predict the most frequent label of the word type in the train part, or of the whole part if unseen, (N,)."""
    common = majority_guess(truth[train])
    counts: dict[str, Counter[int]] = {}
    for i in train.tolist():
        counts.setdefault(keys[i], Counter())[int(truth[i])] += 1
    best = {key: min(seen, key=lambda label: (-seen[label], label)) for key, seen in counts.items()}
    return np.array([best.get(keys[i], common) for i in test.tolist()], dtype=np.int64)


class CodeLength(NamedTuple):
    """Length of the code of the labels of the train part."""

    bits: Interval  #: bits a label
    uniform: float  #: bits a label of a code that gives all labels the same length, log2 of their number
    compression: float  #: ``uniform / bits``


def online_code(
    x: Vectors, targets: FloatArray, split: ProbingSplit, trainer: ProbeTrainer, *, seed: int
) -> CodeLength:
    """Bits to send the labels of the train part, in blocks, to someone who has the vectors.

    Groups (sentences) come in random order, and blocks end where groups do. The first block is sent by a uniform code;
    then a probe is trained on all that was sent, and codes the next block. Soft targets are sent as labels drawn from
    them: the length is the expected one. On the dev part each probe is stopped and its weight decay chosen; its labels
    are not sent.

    Args:
        x: (T, D) vectors of all items.
        targets: (T, C) probability of each label.
        split: of the items.
        trainer: of probes.
        seed: of the order, and of the interval's resampling.
    """
    order, ends = blocks(split.group[split.train], np.random.default_rng([seed, 4]))
    items = split.train[order]
    uniform = math.log2(targets.shape[1])
    bits = np.full(len(items), uniform)
    dev = split.dev
    for start, end in itertools.pairwise(ends):
        sent, block = items[:start], items[start:end]
        probe = trainer(x[sent], targets[sent], x[dev], targets[dev])
        bits[start:end] = cross_entropies(probe.log_probs(x[block]), targets[block]) / math.log(2.0)
    interval = mean_intervals({"bits": bits}, split.group[items], seed)["bits"]
    return CodeLength(interval, uniform, uniform / interval.value)


def blocks(group: IntArray, rng: np.random.Generator) -> tuple[IntArray, list[int]]:
    """Items ordered by a random order of their groups, (N,), and how many are sent after each block."""
    _, number, sizes = np.unique(group, return_inverse=True, return_counts=True)
    place = rng.permutation(len(sizes))
    order = np.argsort(place[number], kind="stable")
    sums = np.cumsum(sizes[np.argsort(place)])
    ends = [int(sums[np.searchsorted(sums, math.ceil(share * len(group)))]) for share in PORTIONS]
    return order, sorted(set(ends))


class WordValues(NamedTuple):
    """Log probabilities of the words of the items by grammar and model; NaN where one does not score a word."""

    truth: FloatArray  #: (T,) ln P, nats
    model: FloatArray  #: (T,) ln Q, nats


@dataclass(frozen=True, eq=False)
class LayerResult:
    """Measures on one layer."""

    step: int | None  #: of the training; None: the finished model
    layer: int
    measures: dict[str, Interval]
    probe: Probe = field(repr=False)
    guess: IntArray = field(repr=False)  #: (N,) labels of the test items
    #: of measures of other probes than this, how much those were held back: for signatures
    decays: dict[str, str] = field(repr=False)


class Experiment:
    """A task, divided into parts; every layer is probed with the same parts and controls.

    Args:
        targets: the items and their labels.
        trainer: of probes.
        settings: how probes are trained and measured.
        seed: of parts, controls and intervals.

    Raises:
        InputError: there are too few word types, or sentences, to divide.
    """

    def __init__(
        self, targets: Targets, trainer: ProbeTrainer, settings: ProbeSettings, seed: int = DEFAULT_SEED
    ) -> None:
        self.targets, self.settings, self.seed = targets, settings, seed
        self._trainer = trainer
        self.split = self._split(settings.split_by)
        self._wanted = targets.posterior if settings.soft else one_hot(targets.truth, len(targets.labels))

    def _split(self, by: By) -> ProbingSplit:
        targets = self.targets
        ends = targets.last_word if targets.kind == "span" else None
        return split(by, targets.first_word, targets.truth, targets.sentence, self.seed, ends=ends)

    @cached_property
    def text_split(self) -> ProbingSplit:
        """Split by position, where word types recur as they do in any text."""
        return self.split if self.settings.split_by == "position" else self._split("position")

    @property
    def control_split(self) -> ProbingSplit:
        """Split that selectivity is measured on."""
        return self.split if self.settings.control == "split" else self.text_split

    @cached_property
    def unit(self) -> IntArray:
        """Number of the word type of each item, of spans of the pair, (T,)."""
        return numbered(self.targets.key)

    def words(self, starts: IntArray) -> IntArray:
        """Numbers of the words that items begin or end with, rising, (W,).

        Args:
            starts: (S,) number of the first word of each sentence given.
        """
        at = starts[self.targets.sentence]
        return np.unique(np.concatenate([at + self.targets.first, at + self.targets.last]))

    def vectors(self, rows: Vectors, starts: IntArray) -> Vectors:
        """The vectors of the items: of words their own, of spans those of both end words, one after the other, (T, D).

        Args:
            rows: (W, D) of `words`.
            starts: (S,) number of the first word of each sentence given.
        """
        if self.targets.kind != "span":
            return rows  # each word is an item, in the same order
        words, at = self.words(starts), starts[self.targets.sentence]
        first, last = (np.searchsorted(words, at + place) for place in (self.targets.first, self.targets.last))
        width = rows.shape[1]
        vectors = np.empty((len(first), 2 * width), dtype=rows.dtype)
        vectors[:, :width] = rows[first]
        vectors[:, width:] = rows[last]
        return vectors

    def train(self, x: Vectors, wanted: FloatArray, parts: ProbingSplit) -> Probe:
        """A probe trained on the train part, its weight decay chosen on the dev part."""
        train, dev = parts.train, parts.dev
        return self._trainer(x[train], wanted[train], x[dev], wanted[dev])

    def probe(
        self, x: Vectors, layer: int, step: int | None = None, *, full: bool = True, values: WordValues | None = None
    ) -> LayerResult:
        """Train on the vectors of one layer, and measure.

        Args:
            x: (T, D) vectors of the items.
            layer: its number.
            step: of the model.
            full: also selectivity and, if asked for, description length; False: the probe's own measures only.
            values: of the words, for correlations.
        """
        targets, test, seed = self.targets, self.split.test, self.seed
        probe = self.train(x, self._wanted, self.split)
        log_probs = probe.log_probs(x[test])
        right, group = targets.truth[test], self.split.group[test]
        guess = log_probs.argmax(axis=1)
        measures = probe_measures(log_probs, targets.posterior[test], right, group, seed)
        unit = self.unit[test]
        whole = group if self.settings.split_by == "type" else unit  # a sentence does not hold all items of a type
        measures["group_accuracy"] = group_accuracy((guess == right).astype(np.float64), unit, whole, seed)
        decays: dict[str, str] = {}
        if full and self.settings.control != "none":
            measured, decays = self._selectivity(x, probe)
            measures |= measured
        if full and self.settings.mdl:
            code = online_code(x, self._wanted, self.text_split, self._trainer, seed=seed)
            bits = code.bits
            # a short code compresses much: the ends of the interval change places
            low, high = (code.uniform / end if end else None for end in (bits.high, bits.low))
            measures |= {"mdl": bits, "compression": Interval(code.compression, low, high)}
            decays |= dict.fromkeys(("mdl", "compression"), "by-block")
        if values is not None:
            own = log_probs[np.arange(len(test)), right]
            kept = np.isfinite(values.truth[test]) & np.isfinite(values.model[test])
            if kept.sum() > 2:
                at = test[kept]
                measures |= word_correlations(own[kept], values.truth[at], values.model[at], group[kept])
        return LayerResult(step, layer, measures, probe, guess, decays)

    def _selectivity(self, x: Vectors, probe: Probe) -> tuple[dict[str, Interval], dict[str, str]]:
        """Accuracy on the task less that on the control task, either probe at its best on its dev part."""
        parts = self.control_split
        targets, n_labels = self.targets, len(self.targets.labels)
        control = control_labels(targets.first_word, targets.truth, self.seed)
        other = self.train(x, one_hot(control, n_labels), parts)
        own = probe if parts is self.split else self.train(x, self._wanted, parts)
        test = parts.test
        right = {
            "task_accuracy": (own.log_probs(x[test]).argmax(axis=1) == targets.truth[test]).astype(np.float64),
            "control_accuracy": (other.log_probs(x[test]).argmax(axis=1) == control[test]).astype(np.float64),
        }
        right["selectivity"] = right["task_accuracy"] - right["control_accuracy"]
        task, held = f"{own.weight_decay:g}", f"{other.weight_decay:g}"
        decays = {"task_accuracy": task, "control_accuracy": held, "selectivity": f"{task}/{held}"}
        return mean_intervals(right, parts.group[test], self.seed), decays

    def chance(self, x: Vectors) -> dict[str, Interval]:
        """A probe of labels drawn at random for each item: its accuracy, and what its guesses must expect, chance."""
        targets, test = self.targets, self.split.test
        n_labels = len(targets.labels)
        drawn = random_labels(targets.truth, self.seed)
        probe = self.train(x, one_hot(drawn, n_labels), self.split)
        guess = probe.log_probs(x[test]).argmax(axis=1)
        share = np.bincount(targets.truth, minlength=n_labels) / len(targets)
        columns = {
            "random_accuracy": (guess == drawn[test]).astype(np.float64),
            "random_chance": share[guess],
        }
        return mean_intervals(columns, self.split.group[test], self.seed)

    def baselines(self) -> dict[str, Interval]:
        """Accuracy of guesses that look at no vector: the most frequent label, and that of the word type.

        The second one also on the split by position (``position_identity_accuracy``), as new types have no label. Then
        the share of test items whose right label the train part does not have, and the posterior probability of the
        most probable label: the most that ``expected_accuracy`` can be.
        """
        targets, text, (train, test) = self.targets, self.text_split, (self.split.train, self.split.test)
        right, seed = targets.truth[test], self.seed
        columns = {
            "majority_accuracy": right == majority_guess(targets.truth[train]),
            "identity_accuracy": right == identity_guesses(targets.key, targets.truth, train, test),
            "unseen_labels": ~np.isin(right, targets.truth[train]),
            "expected_accuracy_limit": targets.posterior[test].max(axis=1),
        }
        known = identity_guesses(targets.key, targets.truth, text.train, text.test) == targets.truth[text.test]
        intervals = mean_intervals({k: v.astype(np.float64) for k, v in columns.items()}, self.split.group[test], seed)
        position = mean_intervals({"": known.astype(np.float64)}, text.group[text.test], seed)
        return {**intervals, "position_identity_accuracy": position[""]}
