"""The vocabulary of a comparison: predictions are coarsened, or refined, to the same words for all models.

Perplexities and divergences of models with different vocabularies do not compare: a model that reads rare words as one
token, ``<unk>``, predicts an easier text. By the data processing inequality its divergence from the truth, coarsened
likewise, is never larger than before (Cover & Thomas 2006, section 2.8).

``common``
    The words that all models and the truth distinguish. What is *predicted* is coarsened: every other word is
    ``<unk>``, with the sum of the probabilities of all such words, which is exact and takes full distributions. What is
    *read* is unchanged: each model reads its own words, and the truth reads every word, so that a model pays for words
    that it cannot read.
``full``
    The words of the truth. A model's probability of ``<unk>`` is divided among the words that ``<unk>`` represents, in
    proportion to their counts in the training text plus one, or uniformly. It is for models that spell any word, or
    have no distributions.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy  # it imports `scipy.special` when that is first used
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.generator.abilities import offers, require
from truesource.generator.dependence import is_unchecked
from truesource.generator.language_model import (
    LanguageModel,
    LogDistributions,
    ScoringFrame,
    TokenScores,
    assemble_scores,
)
from truesource.generator.model_checks import checked_distributions, checked_scores
from truesource.generator.objectives import Objective
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.grammar.support.records import STRICT, Count
from truesource.grammar.truth import Truth

Kind = Literal["common", "full", "own"]
KINDS: tuple[Kind, ...] = ("common", "full", "own")
FEWEST_KNOWN = 0.5  #: share of the words of a text below which a warning is given
CELLS = 2**22  #: most numbers in the distributions of one position (32 MiB)

log = logging.getLogger("truesource.evaluation")


@dataclass(frozen=True)
class ModelWords:
    """The part of a model that the vocabulary of a comparison depends on."""

    name: str
    objective: Objective
    vocabulary: tuple[str, ...] | None
    has_distributions: bool

    @classmethod
    def of(cls, model: LanguageModel) -> ModelWords:
        """Read it off a model."""
        return cls(model.name, model.objective, model.vocabulary, offers(model, "distributions"))


def words_of(model: LanguageModel | ModelWords, truth: Truth) -> frozenset[str]:
    """Return the words of a truth that a model distinguishes: all of them if it spells any word."""
    words = frozenset(truth.vocabulary) - {UNKNOWN}
    return words if model.vocabulary is None else words & frozenset(model.vocabulary)


def require_shared(model: LanguageModel | ModelWords, truth: Truth) -> None:
    """Refuse a model that knows no word of the truth: only the length of sentences would be scored.

    Raises:
        InputError: it knows none (code ``no-shared-word``).
    """
    if model.vocabulary and not words_of(model, truth) and len(truth.vocabulary):
        words, expected = (_some(words) for words in (model.vocabulary, truth.vocabulary))
        raise InputError(
            f"{model.name} knows none of the {len(truth.vocabulary):,} words of the truth: it has words such as"
            f" {words}, the truth {expected}; take a model of this language, or spell words as the truth does",
            code="no-shared-word",
        )


def _some(words: Collection[str]) -> str:
    return ", ".join(map(repr, list(words)[:3])) or "none at all"


def warn_of_unknown(model: LanguageModel, truth: Truth, sentences: Sequence[Sequence[str]]) -> None:
    """Warn of a vocabulary that lacks more than half of the words of a text."""
    if model.vocabulary is None:
        return
    words = words_of(model, truth)
    inside = sum(word in words for sentence in sentences for word in sentence)
    total = sum(map(len, sentences))
    if inside < FEWEST_KNOWN * total:
        who = "all models know" if isinstance(model, CoarsenedModel) else f"{model.name} knows"
        log.warning(
            "%s %s of the %s words of the truth, %.0f%% of the words of this text; all others are one word, <unk>",
            who,
            f"{len(words):,}",
            f"{len(truth.vocabulary):,}",
            100.0 * inside / total,
        )


@with_config(STRICT)
class VocabularyRecord(TypedDict):
    """Record of `ComparisonVocabulary.as_record`."""

    kind: Literal["common", "full"]
    words: list[str]
    counts: dict[str, Count] | None


@dataclass(frozen=True, eq=False)
class ComparisonVocabulary:
    """The words that a comparison distinguishes, the same for all of its models and for the truth."""

    kind: Literal["common", "full"]
    truth: Truth
    words: tuple[str, ...]  #: sorted; in ``full`` all words of the truth
    counts: Mapping[str, int] | None = None  #: of words in the training text, for ``full``; None: unknown

    def as_record(self) -> VocabularyRecord:
        """Return plain values for JSON."""
        return {
            "kind": self.kind,
            "words": list(self.words),
            "counts": None if self.counts is None else {**self.counts},
        }

    @classmethod
    def of_record(cls, record: VocabularyRecord, truth: Truth) -> ComparisonVocabulary:
        """Return the vocabulary that `as_record` wrote, about the same truth."""
        return cls(record["kind"], truth, tuple(record["words"]), record["counts"])

    def adapt(self, model: LanguageModel) -> CoarsenedModel | SpelledModel:
        """Return the model with predictions over these words, and unchanged input.

        Raises:
            InputError: ``common``, and the model has no full distributions (code ``missing-ability``) or lacks one of
                the words.
        """
        return CoarsenedModel(model, self) if self.kind == "common" else SpelledModel(model, self)


def comparison_vocabulary(
    models: Sequence[LanguageModel | ModelWords],
    truth: Truth,
    kind: Kind | None = None,
    *,
    tokens: bool = True,
    counts: Callable[[], Mapping[str, int] | None] = lambda: None,
) -> ComparisonVocabulary | None:
    """Return the vocabulary that models are compared in.

    If the models distinguish different words, the default is ``common`` if all of them have full distributions, since
    it is exact and assumes nothing, and else ``full``.

    Args:
        models: of one objective.
        truth: that they are compared with.
        kind: of the vocabulary; None: the default; no vocabulary if all models distinguish the same words.
        tokens: whether each token has a truth; False: sentences alone have one, which allows ``full`` only.
        counts: gives counts of words in the training text, by which ``full`` divides ``<unk>``, or None: uniformly;
            called for ``full`` alone.

    Returns:
        None: each model is scored in its own vocabulary (``own``, or the default if they are the same).

    Raises:
        InputError: a model knows no word of the truth, or no word is common to all models (code ``no-shared-word``); or
            ``common`` is requested, and a model has no full distributions (``missing-ability``).
    """
    for model in models:
        require_shared(model, truth)
    vocabularies = [words_of(model, truth) for model in models]
    if kind == "own" or (kind is None and len(set(vocabularies)) <= 1):
        return None
    if kind == "common" or (kind is None and tokens and all(offers(model, "distributions") for model in models)):
        common = frozenset.intersection(*vocabularies)
        if not common:
            raise InputError(
                "the models share no word of the truth, so there is no common vocabulary; take the vocabulary full",
                code="no-shared-word",
            )
        for model in models:
            require(model, "distributions", "a common vocabulary")
        return ComparisonVocabulary("common", truth, tuple(sorted(common)))
    return ComparisonVocabulary("full", truth, tuple(sorted(frozenset(truth.vocabulary) - {UNKNOWN})), counts())


def in_vocabulary(model: LanguageModel, vocabulary: ComparisonVocabulary | None) -> LanguageModel:
    """Return a model with predictions over the words of a comparison; None: over its own.

    Raises:
        InputError: as `ComparisonVocabulary.adapt`.
    """
    return model if vocabulary is None else vocabulary.adapt(model)


class _AdaptedModel:
    """A model that predicts the words of a comparison, with unchanged input.

    Args:
        model: that is compared; its distributions are over its vocabulary, or, if it has none, over the truth's words.
        vocabulary: of the comparison.
    """

    compared: str  #: of signatures: the vocabulary, and how ``<unk>`` is shared out

    def __init__(self, model: LanguageModel, vocabulary: ComparisonVocabulary) -> None:
        self.model = model
        self.name = model.name
        self.objective: Objective = model.objective
        terminals = (word for word in vocabulary.truth.vocabulary if word != UNKNOWN)
        self._own = tuple(terminals if model.vocabulary is None else model.vocabulary)
        self._place = {word: column for column, word in enumerate(self._own)}
        self._ends = int(model.objective == "causal")  #: positions beyond the words

    @property
    def reading(self) -> str | None:
        """Way in which a model of pieces scores words; None for other models."""
        return getattr(self.model, "reading", None)

    @property
    def unchecked(self) -> bool:
        """True if nothing shows that the model does not look ahead."""
        return is_unchecked(self.model)


class CoarsenedModel(_AdaptedModel):
    """A model of whole words in a ``common`` vocabulary; implements `DistributionModel`."""

    compared = "common"

    def __init__(self, model: LanguageModel, vocabulary: ComparisonVocabulary) -> None:
        super().__init__(model, vocabulary)
        self._distributed = require(model, "distributions", "a common vocabulary")
        self.vocabulary = vocabulary.words
        if missing := [word for word in vocabulary.words if word not in self._place]:
            raise InputError(
                f"{model.name} does not know the word {missing[0]!r} of the common vocabulary; compare it among the"
                " models that the vocabulary was made for",
                code="no-shared-word",
            )
        self._known = frozenset(vocabulary.words)
        self._kept: IntArray = np.array([self._place[word] for word in vocabulary.words], dtype=np.int64)
        others = [column for word, column in self._place.items() if word not in self._known]
        self._others: IntArray = np.array([*others, len(self._own)], dtype=np.int64)

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Return log probabilities of the positions that ``frame`` counts; words outside the comparison are ``<unk>``.

        Raises:
            InputError: as the model's ``score``.
        """
        unknown = [np.array([word not in self._known for word in sentence], dtype=bool) for sentence in sentences]
        if len(self._others) == 1:  # nothing but the model's own <unk> is summed
            scores = checked_scores(self.model, sentences, replace(frame, unk="token"))
            return _without_unknown(scores, unknown, frame)
        summed = [i for i, flags in enumerate(unknown) if flags.any()]
        whole = [i for i, flags in enumerate(unknown) if not flags.any()]
        rows: list[FloatArray] = [np.empty(0)] * len(sentences)
        scores = checked_scores(self.model, [sentences[i] for i in whole], ScoringFrame())
        for i, row in zip(whole, self._by_sentence(scores, [sentences[i] for i in whole]), strict=True):
            rows[i] = row
        for i, row in zip(summed, self._read_off([sentences[i] for i in summed]), strict=True):
            rows[i] = row
        return assemble_scores(rows, unknown, frame)

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield distributions over the words of the comparison, ``<unk>`` and the end, see `DistributionModel`.

        Raises:
            InputError: as the model's own.
        """
        for block in self._blocks(sentences):
            table = block.log_prob
            parts = [table[:, self._kept], self._unknown(table)[:, None], table[:, len(self._own) + 1 :]]
            yield LogDistributions(block.position, np.concatenate(parts, axis=1))

    def _blocks(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        return checked_distributions(self._distributed, sentences, len(self._own) + 1 + self._ends)

    def _unknown(self, table: FloatArray) -> FloatArray:
        """Return the log probability of ``<unk>`` of the comparison, (W,), from the model's own columns (W, E)."""
        return np.asarray(scipy.special.logsumexp(table[:, self._others], axis=1))

    def _by_sentence(self, scores: TokenScores, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return scores of every position, (n,) or (n+1,) a sentence; -inf throughout if it is impossible."""
        counts = np.bincount(scores.sentence, minlength=len(sentences))
        split = np.split(scores.log_prob, np.cumsum(counts)[:-1]) if len(sentences) else []
        impossible = frozenset(scores.impossible.tolist())
        return [
            np.full(len(sentence) + self._ends, -np.inf) if i in impossible else row
            for i, (row, sentence) in enumerate(zip(split, sentences, strict=True))
        ]

    def _read_off(self, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return the log probability of every position from full distributions, (n,) or (n+1,) a sentence."""
        rows: list[FloatArray] = [np.empty(0)] * len(sentences)
        most = max(1, CELLS // (len(self._own) + 2))
        lengths = np.array([len(sentence) for sentence in sentences])
        with meter("the model's probabilities of words outside the common vocabulary", len(sentences)) as progress:
            for length in np.unique(lengths).tolist():
                same = np.flatnonzero(lengths == length).tolist()
                for some in (same[at : at + most] for at in range(0, len(same), most)):
                    for i, row in zip(some, self._gathered([sentences[i] for i in some]), strict=True):
                        rows[i] = row
                    progress.advance(len(some))
        return rows

    def _gathered(self, sentences: Sequence[Sequence[str]]) -> FloatArray:
        """Return log probabilities (W, n) or (W, n+1) of sentences of one length."""
        words = [[self._place[word] if word in self._known else -1 for word in sentence] for sentence in sentences]
        target = np.array([[*row, *[len(self._own) + 1] * self._ends] for row in words], dtype=np.int64)
        values = np.empty(target.shape)
        for block in self._blocks(sentences):
            columns = target[:, block.position]
            values[:, block.position] = block.log_prob[np.arange(len(columns)), np.maximum(columns, 0)]
            unknown = columns < 0
            values[unknown, block.position] = self._unknown(block.log_prob[unknown])
        return values


class SpelledModel(_AdaptedModel):
    """A model in the ``full`` vocabulary: its ``<unk>`` is divided among the words that it represents.

    Implements `LanguageModel`, and `DistributionModel` if the model does.
    """

    def __init__(self, model: LanguageModel, vocabulary: ComparisonVocabulary) -> None:
        super().__init__(model, vocabulary)
        self.vocabulary = None if model.vocabulary is None else vocabulary.words
        counts = vocabulary.counts
        hidden = [word for word in vocabulary.truth.vocabulary if word not in self._place]
        if model.vocabulary is None:
            hidden = []
        weight = {word: 1 if counts is None else counts.get(word, 0) + 1 for word in hidden}
        total = math.log(sum(weight.values())) if weight else 0.0
        self._log_share = {word: math.log(n) - total for word, n in weight.items()}
        shared = "uniform" if counts is None else "training+1"
        self.compared = f"full/{shared}" if hidden else "full"

    @property
    def has_distributions(self) -> bool:
        """True if the model has; see `truesource.generator.abilities`."""
        return offers(self.model, "distributions")

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Return log probabilities of the positions that ``frame`` counts, in which no word of the truth is unknown.

        Raises:
            InputError: as the model's own.
        """
        if self.vocabulary is None:
            return checked_scores(self.model, sentences, frame)
        scores = checked_scores(self.model, sentences, replace(frame, unk="token"))
        shares = [self._shares(sentence) for sentence in sentences]
        added = np.array([shares[i][at] for i, at in zip(scores.sentence, scores.position, strict=True)])
        foreign = [i for i, share in enumerate(shares) if np.isinf(share).any()]
        possible = ~np.isin(scores.sentence, foreign)
        return TokenScores(
            (scores.log_prob + added.reshape(scores.log_prob.shape))[possible],
            scores.sentence[possible],
            scores.position[possible],
            np.union1d(scores.impossible, foreign).astype(np.int32),
            scores.n_sentences,
            frame,
        )

    def _shares(self, sentence: Sequence[str]) -> FloatArray:
        """Return ln of each word's share of ``<unk>``, 0 for words that the model knows and for the end, (n+1,)."""
        shares = [0.0 if word in self._place else self._log_share.get(word, -math.inf) for word in sentence]
        return np.array([*shares, 0.0])

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield expectations over the words of the truth, ``<unk>`` and the end; see `DistributionModel.distributions`.

        Raises:
            InputError: the model has none, or as its ``distributions``.
        """
        distributed = require(self.model, "distributions", "a comparison of full distributions")
        if self.vocabulary is None:
            yield from checked_distributions(distributed, sentences, len(self._own) + 1 + self._ends)
            return
        words = (*self.vocabulary, UNKNOWN)
        source = np.array([self._place.get(word, len(self._own)) for word in words], dtype=np.int64)
        share = np.array([0.0 if word in self._place else self._log_share.get(word, -math.inf) for word in words])
        for block in checked_distributions(distributed, sentences, len(self._own) + 1 + self._ends):
            spelled = block.log_prob[:, source] + share
            yield LogDistributions(
                block.position, np.concatenate([spelled, block.log_prob[:, len(self._own) + 1 :]], axis=1)
            )


def _without_unknown(scores: TokenScores, unknown: Sequence[BoolArray], frame: ScoringFrame) -> TokenScores:
    """Return scores in a frame from those in which unknown words count."""
    if frame.unk == "token":
        return scores
    counted = np.array(
        [at == len(unknown[i]) or not unknown[i][at] for i, at in zip(scores.sentence, scores.position, strict=True)],
        dtype=bool,
    )
    return replace(
        scores,
        log_prob=scores.log_prob[counted],
        sentence=scores.sentence[counted],
        position=scores.position[counted],
        frame=frame,
    )


def adapts(model: LanguageModel, oracle: Oracle) -> bool:
    """Return True if a model is the truth itself in the vocabulary of a comparison, whose oracle is given."""
    truth = model.model if isinstance(model, CoarsenedModel | SpelledModel) else None
    settings = ("truth", "objective", "lengths", "transform")
    whole = type(truth) is Oracle and truth.vocabulary is None and truth.excluded is None
    return whole and all(getattr(truth, name) == getattr(oracle, name) for name in settings)


def compared_part(model: LanguageModel) -> dict[str, object]:
    """Return the part of signatures: the vocabulary of a comparison; nothing of a model in its own."""
    compared = getattr(model, "compared", None)
    return {} if compared is None else {"compared": compared}
