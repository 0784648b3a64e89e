"""Scores of several models and the grammar on the same positions: a bound, or, on real text, a reference.

The distribution of real text is not known. The grammar only gives its own perplexity, and a model can be better
(Jumelet & Zuidema 2023, Table 1, compare models trained on the treebank with models trained on sampled text).
Perplexities compare only over the same vocabulary, so all models share one, and the grammar reads words outside of it
as ``<unk>`` too, exactly. Real sentences may have probability 0 in the grammar: numbers on the ``common`` sentences,
which are possible under the grammar and every model, are next to numbers on ``all`` sentences possible under a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from truesource.evaluation.core.comparison import alone_parts, nothing_scored, score_by_model, vocabulary_part
from truesource.evaluation.core.exclusion import disjoint_part
from truesource.evaluation.core.score import Key, Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import signature, unit_part
from truesource.evaluation.measures.bootstrap import Interval, ci_part, ends, perplexity_interval, resampled_ratio
from truesource.evaluation.measures.paired import at_positions_of
from truesource.generator.language_model import LanguageModel, TokenScores
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth

GRAMMAR = "grammar"  #: used as the name of a model
REFERENCE, BOUND = "reference_ppl", "bound"  #: perplexity of the grammar on real and on sampled text
OF_REFERENCE, RELATIVE = "ratio_to_reference", "relative_ppl"  #: perplexity of a model over these
Kind = Literal["real", "sampled"]
Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True)
class TextScores:
    """The result of `score_on_text`."""

    kind: Kind
    objective: str
    records: list[dict[str, Key]]  #: one per number: model, text, choice of sentences and words, and its `Score`
    sentences: int  #: number of input sentences
    impossible: Mapping[str, int]  #: number of sentences with probability 0 under each model and the grammar
    common: int  #: number of sentences possible under the grammar and all models
    lacking: int  #: number of sentences that the grammar can only make with missing words as ``<unk>``
    sides: Mapping[str, TokenScores] = field(repr=False)  #: scores of each model, and of the grammar

    def counts(self) -> dict[str, int | dict[str, int]]:
        """Return numbers of sentences: input, impossible for each side, common, and possible only by ``<unk>``."""
        counts: dict[str, int | dict[str, int]] = {"given": self.sentences, "impossible": dict(self.impossible)}
        return {**counts, "common": self.common, "lacking": self.lacking}


@dataclass(frozen=True)
class _CountedPositions:
    """The choice of the positions that count."""

    sentences: Literal["all", "common"]
    words: Literal["all", "known"]


def require_comparable(models: Mapping[str, LanguageModel]) -> None:
    """Refuse models whose perplexities do not compare.

    Raises:
        InputError: there is no model, one has the name of the grammar, or they differ in objective or vocabulary.
    """
    if not models:
        raise InputError("there is no model to score; name at least one")
    if GRAMMAR in models:
        raise InputError(f"{GRAMMAR!r} is the name of the grammar's row; rename the model")
    first, *others = models
    for name in others:
        if models[name].objective != models[first].objective:
            raise InputError(
                f"{first} is {models[first].objective}, but {name} is {models[name].objective}: their perplexities do"
                " not compare; score them in two calls"
            )
        if _words(models[name]) != _words(models[first]):
            raise InputError(
                f"{first} and {name} have different vocabularies, so their perplexities do not compare; train one with"
                " the tokeniser of the other (truesource train --tokenizer)"
            )


def score_on_text(
    models: Mapping[str, LanguageModel],
    setting: Setting,
    *,
    kind: Kind,
) -> TextScores:
    """Score models of one objective and one vocabulary, and the grammar, on the same positions of a text.

    Args:
        models: models by the name of their training text.
        setting: text, length condition, and the grammar, or none to score only models.
        kind: kind of sentences: real, or sampled from the grammar.

    Returns:
        ``ppl`` of each model on all its possible sentences and on the common ones; over all words and over words in
        the vocabulary; ``ratio``, the perplexity over the perplexity of the first model, on the common ones. Of the
        grammar ``bound`` (sampled text) or ``reference_ppl`` (real text) on all its possible sentences and on the
        common ones, and of each model its perplexity divided by this: ``relative_ppl`` or ``ratio_to_reference``.

    Raises:
        InputError: see `require_comparable`, or a sentence is a string.
        NothingToMeasureError: every model gives all sentences probability 0.
    """
    require_comparable(models)
    truth, sentences, seed = setting.language, setting.sentences, setting.seed
    frame = setting.frame_of(next(iter(models.values())).objective)
    scored = {name: score_by_model(model, sentences, frame) for name, model in models.items()}
    some = next(iter(models.values()))
    if not any(len(scores.log_prob) for scores in scored.values()):
        raise nothing_scored(next(iter(scored.values())))
    parts = {**alone_parts(some, sentences, next(iter(scored.values())), seed), **setting.left_out}
    sides = dict(scored)
    if truth is not None:
        oracle = setting.oracle(some)
        exact = oracle.score(sentences, frame)
        open_skips = some.vocabulary is None and frame.unk == "skip"  # only the model knows its unknown words
        sides[GRAMMAR] = at_positions_of(exact, next(iter(scored.values()))) if open_skips else exact
        parts |= {"given": oracle.condition, "vocab": vocabulary_part(oracle), **disjoint_part(setting.excluded)}
    text_sides = _SidesOnText(kind, some, sentences, sides, parts, seed, "none" if truth is None else truth.identity)
    impossible = {name: len(side.impossible) for name, side in sides.items()}
    lacking = 0 if truth is None else _lacking(truth, sentences, sides[GRAMMAR])
    return TextScores(
        kind,
        some.objective,
        [score.as_record() for score in text_sides.as_scores()],
        len(sentences),
        impossible,
        len(text_sides.common),
        lacking,
        sides,
    )


def _lacking(truth: Truth, sentences: Sentences, scores: TokenScores) -> int:
    """Count sentences that are possible in the grammar although it lacks one of their words."""
    word_ids, lost = truth.word_ids, set(scores.impossible.tolist())
    return sum(i not in lost and any(word not in word_ids for word in s) for i, s in enumerate(sentences))


@dataclass(frozen=True)
class _SidesOnText:
    """The scores of all sides."""

    kind: Kind
    model: LanguageModel
    sentences: Sentences
    sides: Mapping[str, TokenScores]
    parts: Mapping[str, object]
    seed: int
    grammar: str

    @cached_property
    def common(self) -> Int32Array:
        """Numbers of the sentences that are possible and have a position for every side."""
        excluded = (side.impossible.tolist() for side in self.sides.values())
        numbers = set(range(len(self.sentences))).difference(*excluded)
        return np.array(sorted(numbers), dtype=np.int32)

    def as_scores(self) -> list[Score]:
        """Return the scores of every side, every choice of sentences and of words."""
        every = []
        words = ("all", "known") if self._has_unknown() else ("all",)
        choices = [_CountedPositions(sentences, word) for word in words for sentences in ("common", "all")]  # type: ignore[arg-type]
        for count in choices:
            first: TokenScores | None = None
            for name, side in self.sides.items():
                scores = self._counted(side, count)
                if not len(scores.log_prob):
                    continue
                every.append(self._ppl(name, scores, count))
                if count.sentences == "common" and name != GRAMMAR:
                    if first is not None:
                        every.append(self._ratio(name, scores, first, count))
                    first = scores if first is None else first
                if count.sentences == "common" and name != GRAMMAR and GRAMMAR in self.sides:
                    truth = self._counted(self.sides[GRAMMAR], count)
                    every.append(self._ratio(name, scores, truth, count, against=GRAMMAR))
        return every

    def _ppl(self, name: str, scores: TokenScores, count: _CountedPositions) -> Score:
        of_grammar = BOUND if self.kind == "sampled" else REFERENCE
        measure = of_grammar if name == GRAMMAR else "ppl"
        return self._score(name, measure, perplexity_interval(scores, self.seed), scores, count)

    def _ratio(
        self, name: str, scores: TokenScores, other: TokenScores, count: _CountedPositions, against: str | None = None
    ) -> Score:
        """Return the perplexity ratio to another side on the same positions, with paired resamples of sentences."""
        against = against or next(iter(self.sides))
        difference = other.log_prob - scores.log_prob
        _, row = np.unique(scores.sentence, return_inverse=True)
        total, counts = (np.bincount(row, weights).astype(np.float64) for weights in (difference, None))
        low, high = resampled_ratio(total, counts, seed=self.seed).tolist()
        value = Interval(float(np.exp(difference.mean())), *ends(*_exp(low, high)))
        of_grammar = RELATIVE if self.kind == "sampled" else OF_REFERENCE
        measure = of_grammar if against == GRAMMAR else "ratio"
        return self._score(name, measure, value, scores, count, {"against": against}).with_more(against=against)

    def _score(
        self,
        name: str,
        measure: str,
        value: Interval,
        scores: TokenScores,
        count: _CountedPositions,
        more: Mapping[str, object] | None = None,
    ) -> Score:
        sentences = len(np.unique(scores.sentence))
        parts = {
            "model": name,
            **self.parts,
            **unit_part(measure),
            **(more or {}),
            **({"unk": "skip"} if count.words == "known" else {}),
            "ci": ci_part(sentences, self.seed),
            "sentences": sentences,
            "excluded": len(self.sentences) - sentences,
            "tokens": len(scores.log_prob),
            "grammar": self.grammar,
        }
        keys: dict[str, Key] = {"model": name, "objective": self.model.objective, "text": self.kind}
        keys |= {"sentences": count.sentences, "words": count.words}
        return Score(measure, value.value, signature(parts), value.low, value.high, keys)

    def _counted(self, scores: TokenScores, count: _CountedPositions) -> TokenScores:
        mask = np.ones(len(scores.log_prob), dtype=bool)
        if count.sentences == "common":
            mask &= np.isin(scores.sentence, self.common)
        if count.words == "known":
            mask &= self._known(scores)
        return replace(
            scores, log_prob=scores.log_prob[mask], sentence=scores.sentence[mask], position=scores.position[mask]
        )

    def _known(self, scores: TokenScores) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return True (T,) for positions with a word of the vocabulary, or an end."""
        vocabulary = frozenset(self.model.vocabulary or ())
        is_known = [[*(word in vocabulary for word in sentence), True] for sentence in self.sentences]
        return np.array(
            [is_known[i][place] for i, place in zip(scores.sentence.tolist(), scores.position.tolist(), strict=True)],
            dtype=bool,
        )

    def _has_unknown(self) -> bool:
        """Return True if words outside the vocabulary count, so that numbers without them differ."""
        skipped = next(iter(self.sides.values())).frame.unk == "skip"
        if self.model.vocabulary is None or skipped:
            return False
        vocabulary = frozenset(self.model.vocabulary)
        return any(word not in vocabulary for sentence in self.sentences for word in sentence)


def _words(model: LanguageModel) -> frozenset[str] | None:
    return None if model.vocabulary is None else frozenset(model.vocabulary)


def _exp(low: float, high: float) -> tuple[float, float]:
    with np.errstate(over="ignore"):
        ended: FloatArray = np.exp(np.array([low, high]))
    return float(ended[0]), float(ended[1])
