"""Maps from the layers of one network to the exact beliefs, what stands beside them, and changed beliefs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from truesource.evaluation.beliefs import AffineMap, BeliefParts, divergences, fit, last_words, mean_after, r2
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.measures.bootstrap import Interval, ends, resampled_ratio
from truesource.evaluators.beliefs import BeliefSettings, Target
from truesource.generator.abilities import offers, require
from truesource.generator.language_model import LanguageModel
from truesource.grammar.inference.beliefs import CAUSAL, Beliefs
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.lmtrain.patching import patched_log_probs, untrained
from truesource.lmtrain.probing import Network, hidden_layers


@dataclass(frozen=True, eq=False)
class Layer:
    """The map from one layer."""

    number: int
    value: Interval
    map: AffineMap = field(repr=False)  #: reads beliefs from vectors
    back: AffineMap = field(repr=False)  #: how vectors change with beliefs
    read: FloatArray = field(repr=False)  #: (T, d)


@dataclass(frozen=True, eq=False)
class BeliefReading:
    """One belief, read from all layers of a model and from what it is compared with."""

    target: Target
    beliefs: Beliefs
    parts: BeliefParts
    layers: Sequence[Layer]
    untrained: Mapping[int, Interval]  #: by layer; empty where it was not asked for
    after_words: Mapping[int, Interval]  #: the mean belief after the same last words, by their number
    own: Interval | None  #: the map from the model's own distribution of the next word; None: it has none

    @property
    def best(self) -> Layer:
        """The layer from which most is read."""
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
        self.notes: list[str] = []  #: what is left out, and why
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
        """The beliefs that were asked for, or those that say most of such a truth.

        Raises:
            NothingToMeasureError: one is for models of the other objective.
        """
        causal = self.model.objective == "causal"
        asked = self.settings.kinds
        if asked is None:
            if not causal:
                return ("outside", "inside-outside")
            linear = self.oracle.grammar.exact.linear
            return ("state",) if linear is not None and linear.side == "right" else ("preterminal", "open")
        wrong = [target for target in asked if (target in CAUSAL) != causal]
        if wrong:
            what = "the words before" if wrong[0] in CAUSAL else "all words"
            raise NothingToMeasureError(
                f"the belief {wrong[0]} is given {what}, and {self.model.name} is {self.model.objective}",
                "wrong-objective",
            )
        return asked

    def beliefs(self, target: Target) -> Beliefs:
        """The exact beliefs, a row a word."""
        return self.oracle.grammar.beliefs(self.seen, target, self.oracle.lengths)

    @cached_property
    def fresh(self) -> LanguageModel | None:
        """The same network with random weights; None: it was not asked for, or code of one's own sets the weights."""
        if not self.settings.untrained or not isinstance(self.model, Network):
            return None
        try:
            return untrained(self.model, self.seed)
        except InputError as error:
            self.notes.append(f"Note: nothing untrained to compare with: {error}")
            return None

    @cached_property
    def own(self) -> FloatArray | None:
        """(T, V+2) probabilities of the model after each word, or of it if masked; None: it has none."""
        if not offers(self.model, "distributions"):
            return None
        model = require(self.model, "distributions", "evaluate beliefs")
        return self._after_words(model.distributions, self.sentences, np.exp)

    @cached_property
    def true_log_probs(self) -> FloatArray:
        """(T, V+2) exact log probabilities after each word, in the columns of the model."""
        own = {word: i for i, word in enumerate(self.oracle.words)}
        place = np.array([own.get(word, -1) for word in self.model.vocabulary or ()] + [len(own), len(own) + 1])

        def arranged(table: FloatArray) -> FloatArray:
            made = table[:, place]
            made[:, place < 0] = -np.inf
            return made

        return self._after_words(self.oracle.distributions, self.sentences, arranged)

    def _after_words(
        self,
        distributions: Callable[[Sequence[Sequence[str]]], Iterator[Any]],
        sentences: Sequence[Sequence[str]],
        change: Callable[[FloatArray], FloatArray],
    ) -> FloatArray:
        """The distributions at all places of sentences but the first, as a row a word; masked ones at the word."""
        by_length: dict[int, list[int]] = defaultdict(list)
        for i, words in enumerate(sentences):
            by_length[len(words)].append(i)
        starts = np.cumsum([0, *map(len, sentences)])
        shift = int(self.model.objective == "causal")
        result: FloatArray | None = None
        for members in by_length.values():
            for at in distributions([sentences[i] for i in members]):
                if at.position >= shift:
                    rows = change(at.log_prob)
                    if result is None:
                        result = np.empty((int(starts[-1]), rows.shape[1]))
                    result[starts[members] + at.position - shift] = rows
        assert result is not None
        return result


def read_beliefs(text: BeliefText, target: Target) -> BeliefReading:
    """Fit maps from all layers, and what they are compared with.

    Raises:
        NothingToMeasureError: the belief is the same after all words.
    """
    beliefs, parts, settings = text.beliefs(target), text.parts, text.settings
    values, seed = beliefs.values, text.seed

    def interval(read: FloatArray) -> Interval:
        return r2(read, values, parts, text.sentence, seed)

    def from_layers(model: LanguageModel) -> Iterator[Layer]:
        layers = None if settings.layers is None else sorted(settings.layers)
        for number, vectors in hidden_layers(model, text.sentences, layers=layers):
            made = fit(vectors, values, parts)
            read = made(vectors)
            yield Layer(number, interval(read), made, fit(values, vectors, parts), read)

    keys = [last_words(beliefs, k) for k in range(settings.last_words, 0, -1)]
    after = {
        k: interval(mean_after(keys[settings.last_words - k :], values, parts))
        for k in range(1, settings.last_words + 1)
    }
    own = text.own
    return BeliefReading(
        target=target,
        beliefs=beliefs,
        parts=parts,
        layers=list(from_layers(text.model)),
        untrained={} if text.fresh is None else {layer.number: layer.value for layer in from_layers(text.fresh)},
        after_words=after,
        own=None if own is None else interval(fit(own, values, parts)(own)),
    )


@dataclass(frozen=True, eq=False)
class Patched:
    """KL(P || Q) of the next word after another prefix, nats: P after that prefix, Q after the own one, and changed."""

    layer: int
    pairs: int
    before: Interval  #: nothing changed
    after: Interval  #: the belief at that prefix written into the layer
    random: Interval  #: a change of the same size in a random direction
    own: Interval  #: Q after that prefix itself


def patch(text: BeliefText, reading: BeliefReading) -> Patched | None:
    """Write the beliefs of other prefixes into the best layer; None of masked models, and of no pairs.

    Raises:
        InputError: no place in the network is known where to write.
    """
    number = text.settings.pairs
    if text.model.objective != "causal" or not number or text.own is None:
        return None
    rng = np.random.default_rng([text.seed, 5])
    test, beliefs, layer = reading.parts.test, reading.beliefs, reading.best
    one, other = rng.choice(test, number), rng.choice(test, number)
    prefixes = [text.sentences[text.sentence[i]][: beliefs.position[i] + 1] for i in one.tolist()]
    change = (beliefs.values[other] - beliefs.values[one]) @ layer.back.weight
    direction = rng.standard_normal(change.shape)
    direction *= np.linalg.norm(change, axis=1, keepdims=True) / np.linalg.norm(direction, axis=1, keepdims=True)
    truth = text.true_log_probs[other]
    with np.errstate(divide="ignore"):
        log_own = np.log(text.own)
    found = {
        "before": log_own[one],
        "after": patched_log_probs(text.model, prefixes, layer.number, change.astype(np.float32)),
        "random": patched_log_probs(text.model, prefixes, layer.number, direction.astype(np.float32)),
        "own": log_own[other],
    }
    intervals = {}
    for name, logs in found.items():
        kl = divergences(truth, np.asarray(logs, dtype=np.float64))
        if not np.isfinite(kl).all():
            raise InputError(f"{text.model.name} gives probability 0 to what may follow", code="no-common-sentence")
        low, high = resampled_ratio(kl, np.ones(number), seed=text.seed)
        intervals[name] = Interval(float(kl.mean()), *ends(low, high))
    return Patched(layer.number, number, **intervals)
