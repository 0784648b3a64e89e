"""Maps from the layers of one network to the exact beliefs, their baselines, and changed beliefs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from truesource.evaluation.beliefs.evaluator import BeliefSettings, Target
from truesource.evaluation.beliefs.measure import BeliefParts, divergences, fit, last_words, mean_after, neighbours, r2
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.measures.bootstrap import Interval, ends, resampled_ratio
from truesource.generator.abilities import offers, require
from truesource.generator.language_model import LanguageModel
from truesource.generator.model_checks import checked_distributions
from truesource.grammar.inference.beliefs import CAUSAL, Beliefs
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.lmtrain.hidden_states import Network, hidden_layers
from truesource.lmtrain.patching import patched_log_probs, untrained


@dataclass(frozen=True, eq=False)
class Layer:
    """Beliefs read from one layer."""

    number: int
    value: Interval
    decay: float  #: of the map
    read: FloatArray = field(repr=False)  #: (T, d)


@dataclass(frozen=True, eq=False)
class BeliefReading:
    """One belief, read from all layers of a model and from its baselines."""

    target: Target
    beliefs: Beliefs
    parts: BeliefParts
    layers: Sequence[Layer]
    untrained: Mapping[int, Interval]  #: by layer; empty if not requested
    after_words: Mapping[int, Interval]  #: the mean belief after the same last words, or between the same, by number
    next_word: Interval | None  #: the map from the model's own distribution of the next word; None without one

    @property
    def best(self) -> Layer:
        """The layer with the largest R2."""
        return max(self.layers, key=lambda layer: layer.value.value)


class BeliefText:
    """The sentences that the truth can make, as model and truth read them.

    Args:
        model: a network.
        setting: text and truth.
        settings: of the evaluator.

    Raises:
        NothingToMeasureError: the truth can make too few of the sentences.
    """

    def __init__(self, model: LanguageModel, setting: Setting, settings: BeliefSettings) -> None:
        self.model, self.seed, self.settings = model, setting.seed, settings
        self.notes: list[str] = []  #: sentences on what is excluded
        self.oracle: Oracle = setting.full_oracle(model)
        lengths = self.oracle.lengths
        read = [self.oracle.read(sentence) for sentence in setting.sentences]
        possible = np.isfinite(self.oracle.grammar.exact.string_log_probs(read, lengths))
        if excluded := int((~possible).sum()):
            self.notes.append(f"{excluded} of {len(read)} sentences are impossible and left out")
        self.sentences = [list(setting.sentences[i]) for i in np.flatnonzero(possible).tolist()]
        self.seen = [read[i] for i in np.flatnonzero(possible).tolist()]
        self.sentence: IntArray = np.repeat(np.arange(len(self.seen)), [len(words) for words in self.seen])
        self.parts = BeliefParts.of(self.sentence)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The requested beliefs, or the most informative ones of such a truth.

        Raises:
            NothingToMeasureError: a belief is for models of the other objective.
        """
        causal = self.model.objective == "causal"
        kinds = self.settings.kinds
        if kinds is None:
            if not causal:
                return ("outside", "inside-outside")
            linear = self.oracle.grammar.exact.linear
            return ("state",) if linear is not None and linear.side == "right" else ("preterminal", "open")
        wrong = [target for target in kinds if (target in CAUSAL) != causal]
        if wrong:
            what = "the words before" if wrong[0] in CAUSAL else "all words"
            raise NothingToMeasureError(
                f"the belief {wrong[0]} is given {what}, and {self.model.name} is {self.model.objective}",
                "wrong-objective",
            )
        return kinds

    def beliefs(self, target: Target) -> Beliefs:
        """Return the exact beliefs, a row a word."""
        return self.oracle.grammar.beliefs(self.seen, target, self.oracle.lengths)

    @cached_property
    def fresh(self) -> LanguageModel | None:
        """The network with random weights; None if not requested, or if custom code sets the weights."""
        if not self.settings.untrained or not isinstance(self.model, Network):
            return None
        try:
            return untrained(self.model, self.seed)
        except InputError as error:
            self.notes.append(f"Note: nothing untrained to compare with: {error}")
            return None

    @cached_property
    def model_probabilities(self) -> FloatArray | None:
        """(T, V+2) probabilities of the model after each word, or of it if masked; None without distributions."""
        if not offers(self.model, "distributions"):
            return None
        model = require(self.model, "distributions", "evaluate beliefs")
        by_length: dict[int, list[int]] = defaultdict(list)
        for i, words in enumerate(self.sentences):
            by_length[len(words)].append(i)
        starts = np.cumsum([0, *map(len, self.sentences)])
        causal = model.objective == "causal"
        result = np.empty((len(self.sentence), len(model.vocabulary or ()) + 1 + causal))
        for members in by_length.values():
            for at in checked_distributions(model, [self.sentences[i] for i in members]):
                if at.position >= causal:  # the first one of a causal model is before any word
                    result[starts[members] + at.position - causal] = np.exp(at.log_prob)
        return result

    def beginnings(self, rows: IntArray, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the words of sentences up to the words of some rows (N,), among all T."""
        first = np.searchsorted(self.sentence, self.sentence[rows])
        ends = (rows - first + 1).tolist()
        return [list(sentences[i][:end]) for i, end in zip(self.sentence[rows].tolist(), ends, strict=True)]

    def true_log_probs(self, rows: IntArray) -> FloatArray:
        """Return exact log probabilities after the words of some rows (N,), in the columns of the model, (N, V+2)."""
        beginnings = self.beginnings(rows, self.seen)
        following = self.oracle.language.next_words(beginnings, self.oracle.lengths)
        columns = self.oracle.columns(self.model.vocabulary or ())
        table = following.probability[np.arange(len(rows)), following.lengths][:, columns]
        table[:, columns < 0] = 0.0
        with np.errstate(divide="ignore"):
            return np.log(table)


def read_beliefs(text: BeliefText) -> list[BeliefReading]:
    """Fit maps from all layers and baselines to each belief; networks read the text once.

    Raises:
        NothingToMeasureError: a belief is the same after all words.
    """
    beliefs = {target: text.beliefs(target) for target in text.targets}
    layers = _from_layers(text, text.model, beliefs)
    untrained_layers = {} if text.fresh is None else _from_layers(text, text.fresh, beliefs)
    return [
        BeliefReading(
            target=target,
            beliefs=values,
            parts=text.parts,
            layers=layers[target],
            untrained={layer.number: layer.value for layer in untrained_layers.get(target, ())},
            after_words=_after_words(text, values),
            next_word=_from_model(text, values),
        )
        for target, values in beliefs.items()
    ]


def _from_model(text: BeliefText, beliefs: Beliefs) -> Interval | None:
    inputs = text.model_probabilities
    return None if inputs is None else _interval(text, beliefs, fit(inputs, beliefs.values, text.parts)(inputs))


def _interval(text: BeliefText, beliefs: Beliefs, read: FloatArray) -> Interval:
    return r2(read, beliefs.values, text.parts, text.sentence, text.seed)


def _from_layers(
    text: BeliefText, model: LanguageModel, beliefs: Mapping[Target, Beliefs]
) -> dict[Target, list[Layer]]:
    """Read each belief from the layers of a model; a belief given the other words is read with the word masked."""
    result: dict[Target, list[Layer]] = {target: [] for target in beliefs}
    layers = None if text.settings.layers is None else sorted(text.settings.layers)
    for hide in sorted({hides(model, target) for target in beliefs}):
        for number, vectors in hidden_layers(model, text.sentences, layers=layers, hide=hide):
            for target in (each for each in beliefs if hides(model, each) == hide):
                affine = fit(vectors, beliefs[target].values, text.parts)
                read = affine(vectors)
                result[target].append(Layer(number, _interval(text, beliefs[target], read), affine.decay, read))
    return result


def hides(model: LanguageModel, target: Target) -> bool:
    """Return True if a belief is read with its word masked; vectors of custom code cannot be."""
    return target == "outside" and isinstance(model, Network)


def _after_words(text: BeliefText, beliefs: Beliefs) -> dict[int, Interval]:
    """Return R2 of the mean beliefs after the same last words, or between the same words, by their number."""
    most, of = text.settings.last_words, neighbours if beliefs.kind == "outside" else last_words
    keys = [of(beliefs, k) for k in range(most, 0, -1)]
    return {
        k: _interval(text, beliefs, mean_after(keys[most - k :], beliefs.values, text.parts))
        for k in range(1, most + 1)
    }


@dataclass(frozen=True, eq=False)
class PatchedDivergence:
    """KL(P || Q) of the next word, nats: P after another prefix, Q after the model's, with several changes."""

    layer: int
    pairs: int
    before: Interval  #: nothing changed
    after: Interval  #: the belief at that prefix written into the layer
    random: Interval  #: a change of the same size in a random direction
    other: Interval  #: Q after that prefix itself


def patch(text: BeliefText, reading: BeliefReading) -> PatchedDivergence | None:
    """Write the beliefs of other prefixes into the best layer; None for masked models, and without pairs.

    Raises:
        InputError: the network has no known place to write to.
    """
    number = text.settings.pairs
    probabilities = text.model_probabilities
    if text.model.objective != "causal" or not number or probabilities is None:
        return None
    rng = np.random.default_rng([text.seed, 5])
    test, beliefs, layer = reading.parts.test, reading.beliefs, reading.best
    one, other = rng.choice(test, number), rng.choice(test, number)
    prefixes = text.beginnings(one, text.sentences)
    ((_, vectors),) = hidden_layers(text.model, text.sentences, layers=[layer.number])
    back = fit(beliefs.values, vectors, reading.parts)  # how vectors change with beliefs
    change = (beliefs.values[other] - beliefs.values[one]) @ back.weight
    direction = rng.standard_normal(change.shape)
    direction *= np.linalg.norm(change, axis=1, keepdims=True) / np.linalg.norm(direction, axis=1, keepdims=True)
    truth = text.true_log_probs(other)
    with np.errstate(divide="ignore"):
        before, after_other = np.log(probabilities[one]), np.log(probabilities[other])
    log_probs = {
        "before": before,
        "after": patched_log_probs(text.model, prefixes, layer.number, change.astype(np.float32)),
        "random": patched_log_probs(text.model, prefixes, layer.number, direction.astype(np.float32)),
        "other": after_other,
    }
    intervals = {}
    for name, logs in log_probs.items():
        kl = divergences(truth, np.asarray(logs, dtype=np.float64))
        if not np.isfinite(kl).all():
            raise InputError(f"{text.model.name} gives probability 0 to what may follow", code="no-common-sentence")
        low, high = resampled_ratio(kl, np.ones(number), seed=text.seed)
        intervals[name] = Interval(float(kl.mean()), *ends(low, high))
    return PatchedDivergence(layer.number, number, **intervals)
