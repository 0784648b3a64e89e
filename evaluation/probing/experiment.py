"""One task for probes, run on the vectors of one layer after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.measures.bootstrap import Interval
from evaluation.probing.coding import online_code
from evaluation.probing.controls import control_labels, identity_guesses, majority_guess, one_hot, random_labels
from evaluation.probing.correlations import word_correlations
from evaluation.probing.measures import mean_intervals, probe_measures
from evaluation.probing.splits import By, Split, split
from evaluation.probing.targets import Targets
from evaluation.probing.trainer import Probe, Trainer, Vectors

Control = Literal["tokens", "split", "none"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Options:
    """How probes are trained and measured."""

    soft: bool = True  #: to the exact posterior; False: to the right label alone
    split_by: By = "type"
    #: split on which selectivity is measured: of positions (``tokens``), or the one of the task (``split``)
    control: Control = "tokens"
    mdl: bool = True  #: also the description length of the labels of the text, which takes a dozen more probes
    seed: int = 1


class WordValues(NamedTuple):
    """What the words of the items are worth to grammar and model; NaN where one of them does not score a word."""

    truth: Floats  #: (T,) ln P, nats
    model: Floats  #: (T,) ln Q, nats


@dataclass(frozen=True, eq=False)
class LayerResult:
    """What was measured on one layer."""

    step: int | None  #: of the training; None: the finished model
    layer: int
    measures: dict[str, Interval]
    probe: Probe = field(repr=False)
    guess: Ints = field(repr=False)  #: (N,) labels of the test items


class Experiment:
    """A task, divided into parts; every layer is probed with the same parts and controls.

    Args:
        targets: the items and their labels.
        trainer: of probes.
        options: how.

    Raises:
        InputError: there are too few word types, or sentences, to divide.
    """

    def __init__(self, targets: Targets, trainer: Trainer, options: Options) -> None:
        self.targets, self.options = targets, options
        self._trainer = trainer
        self.split = split(options.split_by, targets.key, targets.truth, targets.sentence, options.seed)
        self._wanted = targets.posterior if options.soft else one_hot(targets.truth, len(targets.labels))

    @cached_property
    def _text_split(self) -> Split:
        """By position, where word types recur as they do in any text."""
        if self.options.split_by == "position":
            return self.split
        targets = self.targets
        return split("position", targets.key, targets.truth, targets.sentence, self.options.seed)

    def vectors(self, words: Vectors, starts: Ints) -> Vectors:
        """The vectors of the items: of words their own, of spans those of both end words, one after the other, (T, D).

        Args:
            words: (W, D) of all words of all sentences given.
            starts: (S,) the first word of each sentence.
        """
        at = starts[self.targets.sentence]
        first = words[at + self.targets.first]
        return np.concatenate([first, words[at + self.targets.last]], axis=1) if self.targets.kind == "span" else first

    def train(self, x: Vectors, wanted: Floats, parts: Split, **options: tuple[float, ...]) -> Probe:
        """A probe trained on the train part, chosen on the dev part."""
        train, dev = parts.train, parts.dev
        return self._trainer(x[train], wanted[train], x[dev], wanted[dev], **options)

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
        targets, test, seed = self.targets, self.split.test, self.options.seed
        probe = self.train(x, self._wanted, self.split)
        log_probs = probe.log_probs(x[test])
        right, group = targets.truth[test], self.split.group[test]
        found = probe_measures(log_probs, targets.posterior[test], right, group, seed)
        if full and self.options.control != "none":
            found |= self._selectivity(x, probe)
        if full and self.options.mdl:
            decay = probe.weight_decay
            code = online_code(x, self._wanted, self._text_split, self._trainer, weight_decay=decay, seed=seed)
            found["mdl"] = code.bits
            # a short code compresses much: the ends change places
            found["compression"] = Interval(code.compression, *(code.uniform / x for x in code.bits[:0:-1]))
        if values is not None:
            own = log_probs[np.arange(len(test)), right]
            kept = np.isfinite(values.truth[test]) & np.isfinite(values.model[test])
            if kept.sum() > 2:
                at = test[kept]
                found |= word_correlations(own[kept], values.truth[at], values.model[at], group[kept], seed)
        return LayerResult(step, layer, found, probe, log_probs.argmax(axis=1))

    def _selectivity(self, x: Vectors, probe: Probe) -> dict[str, Interval]:
        """Accuracy on the task less that on the control task, probes being as free to fit both."""
        parts = self.split if self.options.control == "split" else self._text_split
        targets, n_labels = self.targets, len(self.targets.labels)
        decay = (probe.weight_decay,)
        control = control_labels(targets.key, targets.truth, self.options.seed)
        other = self.train(x, one_hot(control, n_labels), parts, weight_decays=decay)
        own = probe if parts is self.split else self.train(x, self._wanted, parts, weight_decays=decay)
        test = parts.test
        right = {
            "task_accuracy": (own.log_probs(x[test]).argmax(axis=1) == targets.truth[test]).astype(np.float64),
            "control_accuracy": (other.log_probs(x[test]).argmax(axis=1) == control[test]).astype(np.float64),
        }
        right["selectivity"] = right["task_accuracy"] - right["control_accuracy"]
        return mean_intervals(right, parts.group[test], self.options.seed)

    def chance(self, x: Vectors) -> dict[str, Interval]:
        """A probe of labels drawn at random for each item: its accuracy, and what its guesses must expect, chance."""
        targets, test = self.targets, self.split.test
        n_labels = len(targets.labels)
        drawn = random_labels(targets.truth, self.options.seed)
        probe = self.train(x, one_hot(drawn, n_labels), self.split)
        guess = probe.log_probs(x[test]).argmax(axis=1)
        share = np.bincount(targets.truth, minlength=n_labels) / len(targets)
        columns = {
            "random_accuracy": (guess == drawn[test]).astype(np.float64),
            "random_chance": share[guess],
        }
        return mean_intervals(columns, self.split.group[test], self.options.seed)

    def baselines(self) -> dict[str, Interval]:
        """Accuracy of guesses that look at no vector: the most frequent label, and that of the word type.

        The second one also on the split by position (``position_identity_accuracy``), as new types have no label. Then
        the share of test items whose right label the train part does not have, and the accuracy that the most probable
        label would expect, the most that any probe can.
        """
        targets, text, (train, test) = self.targets, self._text_split, (self.split.train, self.split.test)
        right, seed = targets.truth[test], self.options.seed
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
