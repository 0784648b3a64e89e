"""One task for probes, run on the vectors of one layer after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from truesource.evaluation.measures.bootstrap import Interval
from truesource.evaluation.probing.coding import online_code
from truesource.evaluation.probing.controls import (
    control_labels,
    identity_guesses,
    majority_guess,
    one_hot,
    random_labels,
)
from truesource.evaluation.probing.correlations import word_correlations
from truesource.evaluation.probing.measures import group_accuracy, mean_intervals, probe_measures
from truesource.evaluation.probing.settings import By, ProbeSettings
from truesource.evaluation.probing.splits import ProbingSplit, numbered, split
from truesource.evaluation.probing.targets import Targets
from truesource.evaluation.probing.trainer import Probe, ProbeTrainer, Vectors
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.support.arrays import FloatArray, IntArray


class WordValues(NamedTuple):
    """What the words of the items are worth to grammar and model; NaN where one of them does not score a word."""

    truth: FloatArray  #: (T,) ln P, nats
    model: FloatArray  #: (T,) ln Q, nats


@dataclass(frozen=True, eq=False)
class LayerResult:
    """What was measured on one layer."""

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
        """By position, where word types recur as they do in any text."""
        return self.split if self.settings.split_by == "position" else self._split("position")

    @property
    def control_split(self) -> ProbingSplit:
        """That selectivity is measured on."""
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
        found = np.empty((len(first), 2 * width), dtype=rows.dtype)
        found[:, :width] = rows[first]
        found[:, width:] = rows[last]
        return found

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
        found = probe_measures(log_probs, targets.posterior[test], right, group, seed)
        unit = self.unit[test]
        whole = group if self.settings.split_by == "type" else unit  # a sentence does not hold all items of a type
        found["group_accuracy"] = group_accuracy((guess == right).astype(np.float64), unit, whole, seed)
        decays: dict[str, str] = {}
        if full and self.settings.control != "none":
            measured, decays = self._selectivity(x, probe)
            found |= measured
        if full and self.settings.mdl:
            code = online_code(x, self._wanted, self.text_split, self._trainer, seed=seed)
            bits = code.bits
            # a short code compresses much: the ends of the interval change places
            low, high = (code.uniform / end if end else None for end in (bits.high, bits.low))
            found |= {"mdl": bits, "compression": Interval(code.compression, low, high)}
            decays |= dict.fromkeys(("mdl", "compression"), "by-block")
        if values is not None:
            own = log_probs[np.arange(len(test)), right]
            kept = np.isfinite(values.truth[test]) & np.isfinite(values.model[test])
            if kept.sum() > 2:
                at = test[kept]
                found |= word_correlations(own[kept], values.truth[at], values.model[at], group[kept])
        return LayerResult(step, layer, found, probe, guess, decays)

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
        found = mean_intervals({k: v.astype(np.float64) for k, v in columns.items()}, self.split.group[test], seed)
        position = mean_intervals({"": known.astype(np.float64)}, text.group[text.test], seed)
        return {**found, "position_identity_accuracy": position[""]}
