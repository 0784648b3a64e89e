"""Checks of custom models: a probability must depend only on earlier words, not on later words or other sentences.

A custom model is a function or a class that is not part of truesource. Its answers for some sentences of a text are
compared with answers for their prefixes, for the same prefixes with other endings, in other batches and orders, and
with its answers for the whole text. `truesource.generator.model_checks` calls this before a model is measured.
"""

from __future__ import annotations

import logging
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from truesource.generator.foreign_code import file_of, is_foreign
from truesource.generator.language_model import LanguageModel
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

#: Largest difference in nats of one probability between two calls. Float32 rounds to 6e-8: a network of 12 layers with
#: logits of up to 30 differs between batches by about 1e-5, on GPUs by up to 3e-4; half precision by more than 1e-2.
SAME = 1e-3
NOISE = 5.0  #: a difference counts if it is this many times the difference of two equal calls
LIKELY = 1e-4  #: entries of a distribution are compared if one of the two probabilities is at least this
SENTENCES = 8  #: sentences of a sample
SHARE = 125  #: one sentence in this many is in the sample of a large text
MOST = 32  #: most sentences of a sample
WORDS = 24  #: most words of a sentence that are read
ENOUGH = 24  #: positions after which a model counts as checked
REPEATS = 4  #: calls that separate chance from dependence
FIRSTS = 24  #: words whose probabilities are summed
FEW = 2  #: sentences whose distributions are compared with scores
CELLS = 2_000_000  #: approximate size of the distributions of a sample, in numbers
TREE = 256  #: sentences whose common prefixes are compared
DEPTH = 4  #: words of these prefixes

Words = Sequence[str]
Answers = list[FloatArray]  #: (n+1,) or (n+1, E) of each sentence; NaN: unknown
Ask = Callable[[list[list[str]]], Answers]
log = logging.getLogger("truesource.generator")


@dataclass
class _CheckState:
    """State of the checks of one model object."""

    positions: dict[str, int] = field(default_factory=dict)  #: number compared with prefixes, by method
    agrees: bool = False  #: its scores agree with its distributions
    settled: bool = False  #: it is random or cannot be checked, and the user was told


_states: dict[int, tuple[weakref.ref[object], _CheckState]] = {}


def is_due(model: LanguageModel, method: str) -> bool:
    """Return True if a model is custom and not checked yet; note once if it declares itself unchecked."""
    if not is_custom(model):
        return False
    state = state_of(model)
    if not state.settled and getattr(model, "unchecked", False):
        _settle(model, "it is declared unchecked")
    return not state.settled and state.positions.get(method, 0) < ENOUGH


def is_custom(model: object) -> bool:
    """Return True if a model is user code: its class is not part of truesource, or it calls a user's function."""
    return is_foreign(model) or bool(getattr(model, "of_ones_own", False))


def is_unchecked(model: object) -> bool:
    """Return True if nothing shows that the numbers of a model depend only on earlier words of their sentence."""
    return bool(getattr(model, "unchecked", False)) or (is_custom(model) and state_of(model).settled)


def state_of(model: object) -> _CheckState:
    """Return the state of a model object; objects without weak references get a new one at each call."""
    entry = _states.get(id(model))
    if entry is not None and entry[0]() is model:
        return entry[1]
    state, key = _CheckState(), id(model)
    if hasattr(type(model), "__weakref__"):
        _states[key] = weakref.ref(model, lambda _: _states.pop(key, None)), state
    return state


def _settle(model: LanguageModel, reason: str) -> None:
    """Note once that a model is not checked."""
    state = state_of(model)
    if not state.settled:
        state.settled = True
        log.warning(
            "whether %s looks ahead is not checked: %s; its numbers are valid only if each depends only on the words"
            " before it",
            model.name,
            reason,
        )


class _Pair(NamedTuple):
    """Two answers that should agree at the first positions."""

    words: list[str]  #: a sentence
    other: list[str]  #: the same sentence, or one with the same beginning
    one: FloatArray
    two: FloatArray
    common: int  #: number of common positions


class DependenceCheck:
    """The check of one model on one text: `before` it is read, and `after`, when all its answers are known."""

    def __init__(self, model: LanguageModel, method: str, sentences: Sequence[Words], ask: Ask) -> None:
        """Select a sample of the text.

        Args:
            model: a custom model.
            method: ``score`` or ``distributions``, which begins the messages.
            sentences: the text; for distributions, all of one length.
            ask: answers of the method for sentences in one call, nats: (n+1,) log probabilities of each sentence, or
                (n+1, E); masked models have no end. NaN: unknown.
        """
        self._model, self._method, self._sentences, self._ask = model, method, sentences, ask
        self._state = state_of(model)
        self._causal, self._rows = model.objective == "causal", method == "distributions"
        size = min(MOST, max(SENTENCES, len(sentences) // SHARE))
        if not self._causal:
            size = min(size, max(2, 4 * len(sentences) // SHARE))
        if self._rows:
            events = max((len(s) + 1 for s in sentences[:1]), default=1) * (len(model.vocabulary or ()) + 2)
            size = min(size, max(2, CELLS // events))
        self.sample = _spread(sentences, size)
        self.texts = [list(sentences[i])[: WORDS if self._causal else None] for i in self.sample]
        self._missing = ""  #: reason why the model has no answers
        self.answers: Answers = []  #: for the sample, in a separate call

    def before(self, needed: bool = True) -> None:
        """Compare a sample with its prefixes, with other endings, and with one sentence alone.

        Args:
            needed: whether this method is measured; otherwise a model without an answer is not noted.

        Raises:
            InputError: see `_judge`.
        """
        if not self.texts or self._state.settled:
            return
        probes = list(self._probes(Random(len(self._sentences)))) if self._causal else []
        texts = [*self.texts, *(probe for _, probe, _ in probes)]
        firsts = [[word] for word in self._first_words()]
        outer = 0, len(texts) - 1
        single = min(range(len(self.texts)), key=lambda i: (i in outer, len(self.texts[i])))
        try:
            answers, alone = self._ask(texts), self._ask([self.texts[single]])[0]
            first_words = self._ask(firsts) if firsts else []
        except InputError as error:  # such as of a model that reads the scores of one text from a file
            if needed:  # noted after the text is scored, which may fail itself
                self._missing = f"it has no answer for sentences outside the text ({error.reason})"
            return
        self.answers = answers[: len(self.texts)]
        pairs = [_Pair(self.texts[single], self.texts[single], alone, answers[single], len(alone))]
        for (i, probe, common), answer in zip(probes, answers[len(self.texts) :], strict=True):
            pairs.append(_Pair(self.texts[i], probe, answers[i], answer, common + self._rows))
        self._judge(pairs)
        if not self._state.settled and firsts:
            total = sum(float(np.exp(answer[0])) for answer in first_words if answer[0] == answer[0])
            _require_sum(self._model, total, f"{len(firsts)} words at the beginning of a sentence")
        compared = sum(common for _, _, common in probes) if self._causal else ENOUGH
        self._state.positions[self._method] = self._state.positions.get(self._method, 0) + compared

    def after(self, answers: Answers) -> None:
        """Compare the sample with the answers in the whole text, and sentences of the text with common prefixes.

        Args:
            answers: scores of all sentences, or distributions of the sample.

        Raises:
            InputError: see `_judge`; or the words after a prefix have total probability above 1.
        """
        if self._missing:
            _settle(self._model, self._missing)
        if self._state.settled or not self.answers:
            return
        pairs = []
        for i, words, answer, one in zip(
            self.sample,
            self.texts,
            answers if self._rows else [answers[i] for i in self.sample],
            self.answers,
            strict=True,
        ):
            whole = list(self._sentences[i])
            common = len(words) + (self._rows or len(words) == len(whole))
            pairs.append(_Pair(whole, words, answer, one, common))
            if self._rows and self._causal:  # the first row depends on nothing
                pairs.append(_Pair(words, self.texts[0], one, self.answers[0], 1))
        if self._rows or not self._causal:
            self._judge(pairs)
            return
        tree = _Tree(self._model)
        for text, answer in zip(self._sentences[:TREE], answers[:TREE], strict=True):
            tree.add(text, answer)
        self._judge([*pairs, *tree.pairs])
        if not self._state.settled and getattr(self._model, "reading", None) is None:
            tree.require_probabilities()

    def compare_scores(self, ask: Ask) -> None:
        """Compare a few distributions of the sample with the scores of the same model, once.

        Args:
            ask: function that scores sentences.

        Raises:
            InputError: they differ by more than `SAME` (code ``scores-disagree``).
        """
        if self._state.settled or self._state.agrees or not self.answers:
            return
        texts = self.texts[:FEW]
        columns = {word: i for i, word in enumerate(self._model.vocabulary or ())}
        try:
            scores = ask(texts)
        except InputError as error:  # the distributions are measured
            log.info("the scores of %s were not compared with its distributions: %s", self._model.name, error.reason)
            return
        for i, (words, score, table) in enumerate(zip(texts, scores, self.answers, strict=False)):
            at = [columns.get(word, len(columns)) for word in words] + [len(columns) + 1]
            expected = table[np.arange(len(table)), at[: len(table)]]
            gaps = _gaps(score, expected)
            if gaps.size and gaps.max() > SAME:
                if gaps.max() <= NOISE * _largest(score, ask(texts)[i], len(score)):
                    return  # it is random
                position = int(gaps.argmax())
                raise InputError(
                    f"{self._model.name}.score and {self._model.name}.distributions disagree: {_token(words, position)}"
                    f" of the sentence {_quoted(words)} has the log probability {score[position]:.6g} in the one and"
                    f" {expected[position]:.6g} in the other; they must be equal",
                    source_of(self._model),
                    code="scores-disagree",
                )
        self._state.agrees = True

    def _first_words(self) -> list[str]:
        """Return the words whose sentence-initial probabilities are summed: the sample's most frequent ones."""
        if not self._causal or self._rows or getattr(self._model, "reading", None) is not None:
            return []
        counts = Counter(word for words in self.texts for word in words)
        vocabulary = self._model.vocabulary
        if vocabulary is not None:
            counts = Counter({word: counts[word] for word in vocabulary})
        return [word for word, _ in counts.most_common(FIRSTS)]

    def _probes(self, random: Random) -> Iterator[tuple[int, list[str], int]]:
        """Yield prefixes of the sample and other sentences with common prefixes.

        Each has the number of its sentence in the sample, and the length of the common prefix. Distributions are of
        sentences of one length in a call, so all of them are cut at one position.
        """
        longest = max(map(len, self.texts))
        cut = random.randint(1, max(1, longest - 1))
        total = random.randint(min(cut + 1, longest), longest)
        for i, words in enumerate(self.texts):
            n = len(words)
            at = cut if self._rows else random.randint(1, n if n < longest else max(1, n - 1))
            if at < n:
                yield i, words[:at], at
            totals = [total] if self._rows else [k for k in range(at + 1, longest + 1) if k != n] or [longest]
            size = random.choice(totals) - at
            if size > 0:
                donor = self.texts[i - 1]
                begin = next((k for k, word in enumerate(donor) if word != ([*words, ""])[at]), 0)
                yield i, words[:at] + [donor[(begin + k) % len(donor)] for k in range(size)], at

    def _judge(self, pairs: Sequence[_Pair]) -> None:
        """Decide why answers differ that should agree.

        Raises:
            InputError: they depend on later words (code ``looks-ahead``) or on other sentences (``mixes-rows``).
        """
        if self._state.settled:
            return
        gaps = [_gaps(pair.one[: pair.common], pair.two[: pair.common]) for pair in pairs]
        sizes = [float(gap.max()) if gap.size else 0.0 for gap in gaps]
        worst = int(np.argmax(sizes))
        if sizes[worst] <= SAME:
            return
        words, other, position = pairs[worst].words, pairs[worst].other, int(gaps[worst].argmax())
        try:
            alone, apart = ([self._ask([text])[0] for _ in range(REPEATS)] for text in (words, other))
        except InputError as error:
            _settle(self._model, f"it has no answer for single sentences ({error.reason})")
            return
        noise = max(_largest(some[0], again, len(again)) for some in (alone, apart) for again in some[1:])
        ahead = _largest(alone[0], apart[0], position + 1)
        limit = max(SAME, NOISE * noise)
        name = f"{self._model.name}.{self._method}"
        if words != other and ahead > limit:
            raise InputError(
                f"{name} looks ahead: {self._place(words, position)} changes by {ahead:.3g} nats if the sentence is"
                f" {_quoted(other)} instead; use only the words before a position, or set unchecked=True if the numbers"
                " of the model are not meant to be causal",
                source_of(self._model),
                code="looks-ahead",
            )
        if sizes[worst] > limit:
            raise InputError(
                f"{name} mixes sentences: {self._place(words, position)} changes by {sizes[worst]:.3g} nats with the"
                " other sentences scored with it or before it; score each by itself, mask padding, and compute"
                " in float32",
                source_of(self._model),
                code="mixes-rows",
            )
        self._state.settled = True
        log.warning(
            "%s is not deterministic (scores of one sentence differ by up to %.3g nats per token); disable dropout or"
            " fix the seed",
            self._model.name,
            max(noise, sizes[worst]),
        )

    def _place(self, words: list[str], position: int) -> str:
        """Return the name of a position of a sentence, for messages."""
        number = next((i for i, text in enumerate(self._sentences) if list(text) == words), None)
        which = "the sentence" if number is None or self._rows else f"sentence {number + 1}"
        what = "the distribution at" if self._rows else "the log probability of"
        return f"{what} {_token(words, position)} of {which} {_quoted(words)}"


class _Tree:
    """Sentences of a text by their prefixes."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._vocabulary = None if model.vocabulary is None else frozenset(model.vocabulary)
        self._children: dict[tuple[int, str | None], int] = {}
        self._first: list[tuple[list[str], FloatArray, int]] = [([], np.empty(0), 0)]  #: example of each node
        self._sums: dict[int, float] = {}
        self._unknown: set[int] = set()
        self.pairs: list[_Pair] = []

    def add(self, words: Words, answer: FloatArray) -> None:
        """Add a sentence and its (n+1,) log probabilities."""
        node, shared, like = 0, 0, None
        text = list(words)
        values = answer[:DEPTH].tolist()
        for position, word in enumerate([*text[:DEPTH], None][: len(values)]):
            child = self._children.get((node, word))
            if child is None:
                child = len(self._first)
                self._children[node, word] = child
                self._first.append((text, answer, position))
                self._count(node, word, values[position])
            else:
                shared, like = position + 1, child
            node = child
        if like is not None:
            other, first, _ = self._first[like]
            self.pairs.append(_Pair(text, other, answer, first, shared))

    def _count(self, node: int, word: str | None, value: float) -> None:
        """Add a probability to the sum of its context; all unknown words together have one."""
        if self._vocabulary is not None and word is not None and word not in self._vocabulary:
            if node in self._unknown:
                return
            self._unknown.add(node)
        if value == value:  # known
            self._sums[node] = self._sums.get(node, 0.0) + float(np.exp(value))

    def require_probabilities(self) -> None:
        """Refuse a text in which the words after one prefix have total probability above 1.

        Raises:
            InputError: they do (code ``not-log-probabilities``).
        """
        node = max(self._sums, key=lambda n: self._sums[n], default=0)
        text, _, position = self._first[node]
        after = "at the beginning" if node == 0 else f"after {_quoted(text[: position + 1])}"
        _require_sum(self._model, self._sums.get(node, 0.0), f"the words in the text {after}")


def _require_sum(model: LanguageModel, total: float, words: str) -> None:
    if total > 1.0 + SAME:
        raise InputError(
            f"{model.name}.score: the probabilities of {words} sum to {total:.4g}, more than 1; subtract the logsumexp"
            " over all words, and do not use the predicted word",
            source_of(model),
            code="not-log-probabilities",
        )


def same_length(sentences: Sequence[Words], most: int) -> list[Words]:
    """Return some of the sentences with the median length."""
    length = len(sentences[len(sentences) // 2]) if sentences else 0
    return [words for words in sentences if len(words) == length][:most]


def source_of(model: LanguageModel) -> Path | None:
    """Return the file of user code: of the function that a model calls, or of its class; None: unknown."""
    return file_of(getattr(model, "function", model))


def _spread(sentences: Sequence[Words], size: int) -> list[int]:
    """Return the numbers of some sentences of all lengths."""
    order = sorted((i for i, words in enumerate(sentences) if len(words)), key=lambda i: len(sentences[i]))
    places = {int((i + 0.5) * len(order) / size) for i in range(size)} if order else set()
    return [order[place] for place in sorted(places)]


def _gaps(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the differences of two answers, nats, (n,); for distributions, of their likely entries."""
    size = min(len(one), len(other))
    one, other = one[:size], other[:size]
    with np.errstate(invalid="ignore"):
        result = np.abs(one - other)
        result[(one == other) | np.isnan(result)] = 0.0
        if result.ndim == 2:
            result = np.where(np.maximum(one, other) >= np.log(LIKELY), result, 0.0).max(axis=1)
    return np.asarray(result)


def _largest(one: FloatArray, other: FloatArray, common: int) -> float:
    gaps = _gaps(one[:common], other[:common])
    return float(gaps.max()) if gaps.size else 0.0


def _token(words: Words, position: int) -> str:
    return "the end" if position >= len(words) else f"token {position + 1} ({words[position]!r})"


def _quoted(words: Words) -> str:
    text = " ".join(words)
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
