"""A model on text whose true distribution nobody knows: its perplexity alone, with an interval and a signature."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, frame_parts, signature
from truesource.evaluation.measures.bootstrap import Interval, ci_part
from truesource.evaluation.measures.perplexity import perplexity_interval
from truesource.generator.abilities import checked_scores, is_foreign
from truesource.generator.language_model import LanguageModel, ScoringFrame, TokenScores, check_sentences
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords

SAME_AGAIN = 1e-3  #: nats of a token between two calls, which other batches may cause
log = logging.getLogger("truesource.evaluation")


@dataclass(frozen=True, repr=False)
class ScoredAlone(ResultRecords):
    """What `score_alone` found."""

    model: str
    objective: str
    ppl: Interval  #: pseudo-perplexity of a masked model
    scores: TokenScores
    parts: Mapping[str, object]  #: of the signature

    @property
    def signature(self) -> str:
        """Every choice that could change the value."""
        return signature(self.parts)

    def as_scores(self) -> list[Score]:
        """``ppl``, and the counts that stand beside it, without interval."""
        counts = {
            "tokens": len(self.scores.log_prob),
            "sentences": self.scores.n_sentences - len(self.scores.impossible),
            "excluded": len(self.scores.impossible),
            "impossible_model": len(self.scores.impossible),
        }
        return [
            Score("ppl", self.ppl.value, self.signature, self.ppl.low, self.ppl.high),
            *(Score(name, value, self.signature) for name, value in counts.items()),
        ]

    def records(self) -> list[dict[str, Any]]:
        """One record a measure, for JSON."""
        return [{"model": self.model, "objective": self.objective, **score.as_record()} for score in self.as_scores()]


def score_alone(
    model: LanguageModel,
    sentences: Sequence[Sequence[str]],
    frame: ScoringFrame | None = None,
    *,
    seed: int = DEFAULT_SEED,
    left_out: Mapping[str, int] | None = None,
) -> ScoredAlone:
    """Score sentences with a model, and compare with nothing.

    Args:
        model: anything that satisfies `LanguageModel`.
        sentences: to score.
        frame: which positions count; everything by default.
        seed: of the bootstrap.
        left_out: entries of the signature that say which sentences of the text are not given, and how many.

    Raises:
        InputError: a sentence is a string, or the model's scores are no `TokenScores`.
        NothingToMeasureError: the model can make no sentence.
    """
    frame = frame or ScoringFrame()
    scores = score_by_model(model, sentences, frame)
    if not len(scores.log_prob):
        raise nothing_scored(scores)
    parts = {**alone_parts(model, sentences, scores, seed), **(left_out or {})}
    return ScoredAlone(model.name, model.objective, perplexity_interval(scores, seed), scores, parts)


def score_by_model(model: LanguageModel, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
    """What a model scores, checked.

    Raises:
        InputError: a sentence is a string; or as `truesource.generator.abilities.checked_scores`.
    """
    check_sentences(sentences)
    scores = checked_scores(model, sentences, frame)
    if len(scores.log_prob) and (is_foreign(model) or getattr(model, "of_ones_own", False)):
        _warn_of_chance(model, sentences, scores)
    return scores


def _warn_of_chance(model: LanguageModel, sentences: Sequence[Sequence[str]], scores: TokenScores) -> None:
    """Say where code of one's own gives other probabilities to the same sentence at each call."""
    first = int(scores.sentence[0])
    before = scores.log_prob[scores.sentence == first]
    try:
        again = checked_scores(model, [sentences[first]], scores.frame).log_prob
    except InputError:  # it knows the whole text only, such as one that reads scores from a file
        return
    apart = float(np.abs(again - before).max()) if len(again) == len(before) else np.inf
    if apart > SAME_AGAIN:
        log.warning(
            "%s gives the same sentence other probabilities at each call (apart by up to %.3g nats a token), so its"
            " numbers are those of one draw; switch off what is random in it, such as dropout, or fix its seed",
            model.name,
            apart,
        )


def nothing_scored(scores: TokenScores) -> NothingToMeasureError:
    """That a model can make none of the sentences, or that no position counts."""
    n, lost = scores.n_sentences, len(scores.impossible)
    which = f"all {n} sentences are impossible for the model" if lost == n else f"of {n} sentences none has any"
    return NothingToMeasureError(f"no position is left to score: {which}", "no-common-sentence")


def alone_parts(
    model: LanguageModel, sentences: Sequence[Sequence[str]], scores: TokenScores, seed: int
) -> dict[str, object]:
    """Parts of a signature where there is no grammar."""
    known = None if model.vocabulary is None else sorted(set(model.vocabulary))
    return {
        "objective": model.objective,
        "given": "unknown",
        **frame_parts(scores.frame, model.objective),
        "unit": "nats/token",
        "vocab": "open" if known is None else f"{len(known)}/{digest_sentences([known])}",
        "ci": ci_part(len(np.unique(scores.sentence)), seed),
        "sentences": len(sentences) - len(scores.impossible),
        "excluded": len(scores.impossible),
        "tokens": len(scores.log_prob),
        "data": digest_sentences(sentences),
        "grammar": "none",
        **reading_part(model),
    }


def reading_part(model: LanguageModel) -> dict[str, object]:
    """Part of a signature: how a model of pieces scores words; nothing of other models."""
    reading = getattr(model, "reading", None)
    return {} if reading is None else {"reading": reading}
