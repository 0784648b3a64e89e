"""A probing task, run on the vectors of one layer after another."""

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
        """Return the log probability of each label, (N, C) nats, for vectors (N, D)."""


class ProbeTrainer(Protocol):
    """A function that trains a probe."""

    def __call__(self, x: Vectors, targets: FloatArray, dev_x: Vectors, dev_targets: FloatArray) -> Probe:
        """Train on vectors (N, D) and label probabilities (N, C); dev vectors and labels select the weight decay."""


def word_correlations(label: FloatArray, truth: FloatArray, model: FloatArray, group: IntArray) -> dict[str, Interval]:
    """Compute Spearman's rho of ln(probe probability of the true label) with three values of the word.

    Args:
        label: ln of the probe probability, (N,).
        truth: (N,) ln P of the word under the grammar, nats.
        model: (N,) ln Q of the word under the model, nats.
        group: (N,) word type or sentence of each item, the independent unit.

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
    """A control task (Hewitt and Liang 2019): each word type has one label, sampled from the labels of items, (T,).

    Only a probe that memorises the type can predict it, so accuracy shows how much a probe can memorise. Types
    must recur for this: spans have the type of their first word, as pairs of end words hardly recur.
    """
    rng = np.random.default_rng([seed, 2])
    labels = {key: int(truth[rng.integers(len(truth))]) for key in dict.fromkeys(keys)}
    return np.array([labels[key] for key in keys], dtype=np.int64)


def random_labels(truth: IntArray, seed: int) -> IntArray:
    """Sample an independent label for each item from all labels, (T,), which cannot be predicted."""
    rng = np.random.default_rng([seed, 3])
    return truth[rng.integers(len(truth), size=len(truth))]


def one_hot(labels: IntArray, n_labels: int) -> FloatArray:
    """Convert hard labels to distributions, (T, C)."""
    table = np.zeros((len(labels), n_labels))
    table[np.arange(len(labels)), labels] = 1.0
    return table


def majority_guess(truth: IntArray) -> int:
    """Return the most frequent label; of several, the first."""
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
    """The code length of the labels of the train part."""

    bits: Interval  #: bits per label
    uniform: float  #: bits per label of a uniform code, log2 of the number of labels
    compression: float  #: ``uniform / bits``


def online_code(
    x: Vectors, targets: FloatArray, split: ProbingSplit, trainer: ProbeTrainer, *, seed: int
) -> CodeLength:
    """Compute the bits to transmit the labels of the train part, in blocks, to a receiver of the vectors.

    Groups (sentences) come in random order, and blocks end where groups do. The first block uses a uniform code;
    then a probe is trained on all earlier blocks, and codes the next block. Soft targets are sent as labels sampled
    from them: the length is the expectation. The dev part selects the stopping point and weight decay of each probe;
    its labels are not sent.

    Args:
        x: vectors of all items, (T, D).
        targets: probability of each label, (T, C).
        split: split of the items.
        trainer: trainer of probes.
        seed: seed of the order and of the resampling.
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
    """Order items by a random order of their groups, (N,), and return how many are sent after each block."""
    _, number, sizes = np.unique(group, return_inverse=True, return_counts=True)
    place = rng.permutation(len(sizes))
    order = np.argsort(place[number], kind="stable")
    sums = np.cumsum(sizes[np.argsort(place)])
    ends = [int(sums[np.searchsorted(sums, math.ceil(share * len(group)))]) for share in PORTIONS]
    return order, sorted(set(ends))


class WordValues(NamedTuple):
    """The log probabilities of the words of the items under grammar and model; NaN for unscored words."""

    truth: FloatArray  #: (T,) ln P, nats
    model: FloatArray  #: (T,) ln Q, nats


@dataclass(frozen=True, eq=False)
class LayerResult:
    """The measures on one layer."""

    step: int | None  #: training step; None: the finished model
    layer: int
    measures: dict[str, Interval]
    probe: Probe = field(repr=False)
    guess: IntArray = field(repr=False)  #: (N,) predicted labels of the test items
    #: weight decays of other probes, by measure: for signatures
    decays: dict[str, str] = field(repr=False)


class Experiment:
    """A probing task with fixed parts and controls for every layer.

    Args:
        targets: the items and their labels.
        trainer: trainer of probes.
        settings: how probes are trained and measured.
        seed: seed of parts, controls and intervals.

    Raises:
        InputError: there are too few word types, or sentences, to divide.
    """

    def __init__(
        self, targets: Targets, trainer: ProbeTrainer, settings: ProbeSettings, seed: int = DEFAULT_SEED
    ) -> None:
        self.targets, self.settings, self.seed = targets, settings, seed
        self._trainer = trainer
        self.split = self._split(settings.split_by)
        self._label_probs = targets.posterior if settings.soft else one_hot(targets.truth, len(targets.labels))

    def _split(self, by: By) -> ProbingSplit:
        targets = self.targets
        ends = targets.last_word if targets.kind == "span" else None
        return split(by, targets.first_word, targets.truth, targets.sentence, self.seed, ends=ends)

    @cached_property
    def text_split(self) -> ProbingSplit:
        """Split by position, in which word types recur as in any text."""
        return self.split if self.settings.split_by == "position" else self._split("position")

    @property
    def control_split(self) -> ProbingSplit:
        """Split for selectivity."""
        return self.split if self.settings.control == "split" else self.text_split

    @cached_property
    def unit(self) -> IntArray:
        """Number of the word type of each item, for spans of the pair, (T,)."""
        return numbered(self.targets.key)

    def words(self, starts: IntArray) -> IntArray:
        """Return the numbers of the words at the ends of items, ascending, (W,).

        Args:
            starts: number of the first word of each sentence, (S,).
        """
        at = starts[self.targets.sentence]
        return np.unique(np.concatenate([at + self.targets.first, at + self.targets.last]))

    def vectors(self, rows: Vectors, starts: IntArray) -> Vectors:
        """Return the vectors of items: of words, or the concatenated vectors of both end words of spans, (T, D).

        Args:
            rows: vectors of `words`, (W, D).
            starts: number of the first word of each sentence, (S,).
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

    def train(self, x: Vectors, label_probs: FloatArray, parts: ProbingSplit) -> Probe:
        """Train a probe on the train part, with the weight decay selected on the dev part."""
        train, dev = parts.train, parts.dev
        return self._trainer(x[train], label_probs[train], x[dev], label_probs[dev])

    def probe(
        self, x: Vectors, layer: int, step: int | None = None, *, full: bool = True, values: WordValues | None = None
    ) -> LayerResult:
        """Train on the vectors of one layer, and measure.

        Args:
            x: vectors of the items, (T, D).
            layer: number of the layer.
            step: training step of the model.
            full: also compute selectivity and, if requested, description length; False: only measures of the probe.
            values: log probabilities of the words, for correlations.
        """
        targets, test, seed = self.targets, self.split.test, self.seed
        probe = self.train(x, self._label_probs, self.split)
        log_probs = probe.log_probs(x[test])
        right, group = targets.truth[test], self.split.group[test]
        guess = log_probs.argmax(axis=1)
        measures = probe_measures(log_probs, targets.posterior[test], right, group, seed)
        unit = self.unit[test]
        whole = group if self.settings.split_by == "type" else unit  # a sentence does not contain all items of a type
        measures["group_accuracy"] = group_accuracy((guess == right).astype(np.float64), unit, whole, seed)
        decays: dict[str, str] = {}
        if full and self.settings.control != "none":
            measured, decays = self._selectivity(x, probe)
            measures |= measured
        if full and self.settings.mdl:
            code = online_code(x, self._label_probs, self.text_split, self._trainer, seed=seed)
            bits = code.bits
            # a short code has high compression, so the ends are swapped
            low, high = (code.uniform / end if end else None for end in (bits.high, bits.low))
            measures |= {"mdl": bits, "compression": Interval(code.compression, low, high)}
            decays |= dict.fromkeys(("mdl", "compression"), "by-block")
        if values is not None:
            log_prob_right = log_probs[np.arange(len(test)), right]
            finite = np.isfinite(values.truth[test]) & np.isfinite(values.model[test])
            if finite.sum() > 2:
                at = test[finite]
                measures |= word_correlations(log_prob_right[finite], values.truth[at], values.model[at], group[finite])
        return LayerResult(step, layer, measures, probe, guess, decays)

    def _selectivity(self, x: Vectors, probe: Probe) -> tuple[dict[str, Interval], dict[str, str]]:
        """Compute accuracy on the task minus accuracy on the control task, each probe selected on its dev part."""
        parts = self.control_split
        targets, n_labels = self.targets, len(self.targets.labels)
        control = control_labels(targets.first_word, targets.truth, self.seed)
        other = self.train(x, one_hot(control, n_labels), parts)
        task_probe = probe if parts is self.split else self.train(x, self._label_probs, parts)
        test = parts.test
        right = {
            "task_accuracy": (task_probe.log_probs(x[test]).argmax(axis=1) == targets.truth[test]).astype(np.float64),
            "control_accuracy": (other.log_probs(x[test]).argmax(axis=1) == control[test]).astype(np.float64),
        }
        right["selectivity"] = right["task_accuracy"] - right["control_accuracy"]
        task, held = f"{task_probe.weight_decay:g}", f"{other.weight_decay:g}"
        decays = {"task_accuracy": task, "control_accuracy": held, "selectivity": f"{task}/{held}"}
        return mean_intervals(right, parts.group[test], self.seed), decays

    def chance(self, x: Vectors) -> dict[str, Interval]:
        """Train a probe on random labels of items, and return its accuracy and the accuracy expected by chance."""
        targets, test = self.targets, self.split.test
        n_labels = len(targets.labels)
        labels = random_labels(targets.truth, self.seed)
        probe = self.train(x, one_hot(labels, n_labels), self.split)
        guess = probe.log_probs(x[test]).argmax(axis=1)
        share = np.bincount(targets.truth, minlength=n_labels) / len(targets)
        columns = {
            "random_accuracy": (guess == labels[test]).astype(np.float64),
            "random_chance": share[guess],
        }
        return mean_intervals(columns, self.split.group[test], self.seed)

    def baselines(self) -> dict[str, Interval]:
        """Compute the accuracy of guesses without vectors: the most frequent label, overall and by word type.

        The second one is also on the split by position (``position_identity_accuracy``), as new types have no label.
        Also the share of test items whose right label is not in the train part, and the posterior probability of the
        most probable label: the maximum of ``expected_accuracy``.
        """
        targets, text, (train, test) = self.targets, self.text_split, (self.split.train, self.split.test)
        right, seed = targets.truth[test], self.seed
        columns = {
            "majority_accuracy": right == majority_guess(targets.truth[train]),
            "identity_accuracy": right == identity_guesses(targets.key, targets.truth, train, test),
            "unseen_labels": ~np.isin(right, targets.truth[train]),
            "expected_accuracy_limit": targets.posterior[test].max(axis=1),
        }
        is_right = identity_guesses(targets.key, targets.truth, text.train, text.test) == targets.truth[text.test]
        intervals = mean_intervals({k: v.astype(np.float64) for k, v in columns.items()}, self.split.group[test], seed)
        position = mean_intervals({"": is_right.astype(np.float64)}, text.group[text.test], seed)
        return {**intervals, "position_identity_accuracy": position[""]}
