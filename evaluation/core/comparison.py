"""One model on sentences: against the exact truth (every measure, one record, one signature), or alone.

A model is scored alone on text with an unknown true distribution: its perplexity, with an interval and a signature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from truesource.evaluation.core.exclusion import disjoint_part
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score, keyed, no_interval_entry
from truesource.evaluation.core.setting import Setting, oracle_for
from truesource.evaluation.core.signature import dependence_part, digest_sentences, frame_parts, signature, unit_part
from truesource.evaluation.core.token_table import Column, token_columns
from truesource.evaluation.core.transformed import require_whole, transform_parts
from truesource.evaluation.core.vocabulary import CoarsenedModel, adapts, compared_part
from truesource.evaluation.measures.bootstrap import Interval, ci_part, perplexities, perplexity_interval
from truesource.evaluation.measures.correlation import CORRELATIONS, correlations
from truesource.evaluation.measures.paired import Paired, at_positions_of, pair, unknown_words
from truesource.generator.language_model import LanguageModel, ScoringFrame, TokenScores, check_sentences
from truesource.generator.model_checks import checked_scores
from truesource.grammar.diagnostics import has_endings
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords
from truesource.grammar.support.settings import DEFAULT_SEED

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class AloneScores(ResultRecords):
    """Result of `score_alone`."""

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
        """Return ``ppl``, and the counts next to it, without interval."""
        counts = {
            "tokens": len(self.scores.log_prob),
            "sentences": self.scores.n_sentences - len(self.scores.impossible),
            "excluded": len(self.scores.impossible),
            "impossible_model": len(self.scores.impossible),
        }
        scores = [
            Score("ppl", self.ppl.value, self._signature_of("ppl"), self.ppl.low, self.ppl.high),
            *(Score(name, value, self._signature_of(name)) for name, value in counts.items()),
        ]
        return keyed(scores, model=self.model, objective=self.objective)

    def _signature_of(self, measure: str) -> str:
        return signature({**self.parts, **unit_part(measure)})


def score_alone(
    model: LanguageModel,
    sentences: Sequence[Sequence[str]],
    frame: ScoringFrame | None = None,
    *,
    seed: int = DEFAULT_SEED,
    left_out: Mapping[str, int] | None = None,
) -> AloneScores:
    """Score sentences with a model, without a truth.

    Args:
        model: anything that satisfies `LanguageModel`.
        sentences: to score.
        frame: which positions count; everything by default.
        seed: of the bootstrap.
        left_out: entries of the signature on the excluded sentences of the text, and their number.

    Raises:
        InputError: a sentence is a string, or the model's scores are no `TokenScores`.
        NothingToMeasureError: the model can make no sentence.
    """
    frame = frame or ScoringFrame()
    scores = score_by_model(model, sentences, frame)
    if not len(scores.log_prob):
        raise nothing_scored(scores)
    parts = {**alone_parts(model, sentences, scores, seed), **(left_out or {})}
    return AloneScores(model.name, model.objective, perplexity_interval(scores, seed), scores, parts)


def score_by_model(model: LanguageModel, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
    """Score sentences with a model, and check the scores.

    Raises:
        InputError: a sentence is a string; or as `truesource.generator.model_checks.checked_scores`.
    """
    check_sentences(sentences)
    return checked_scores(model, sentences, frame)


def nothing_scored(scores: TokenScores) -> NothingToMeasureError:
    """Return the error that a model can make none of the sentences, or that no position counts."""
    n, lost = scores.n_sentences, len(scores.impossible)
    which = f"all {n} sentences are impossible for the model" if lost == n else f"of {n} sentences none has any"
    return NothingToMeasureError(f"no position is left to score: {which}", "no-common-sentence")


def alone_parts(
    model: LanguageModel, sentences: Sequence[Sequence[str]], scores: TokenScores, seed: int
) -> dict[str, object]:
    """Return the parts of a signature without a grammar."""
    words = None if model.vocabulary is None else sorted(set(model.vocabulary))
    return {
        "objective": model.objective,
        "given": "unknown",
        **frame_parts(scores.frame, model.objective),
        "unit": "nats/token",
        "vocab": "open" if words is None else f"{len(words)}/{digest_sentences([words])}",
        "ci": ci_part(len(np.unique(scores.sentence)), seed),
        "sentences": len(sentences) - len(scores.impossible),
        "excluded": len(scores.impossible),
        "tokens": len(scores.log_prob),
        "data": digest_sentences(sentences),
        "grammar": "none",
        **reading_part(model),
        **dependence_part(model),
    }


def reading_part(model: LanguageModel) -> dict[str, object]:
    """Return the part of a signature: how a model of pieces scores words; nothing of other models."""
    reading = getattr(model, "reading", None)
    return {} if reading is None else {"reading": reading}


@dataclass(frozen=True, repr=False)
class Comparison(ResultRecords):
    """One model compared with the truth."""

    model: str
    objective: str
    #: ppl, bound, relative_ppl, kl and, if tokens have a truth, rho, r2_pearson, r2_identity, r2_released
    measures: dict[str, Interval]
    bound_unconditioned: Interval | None  #: without the length condition; None: masked, or derivations may not end
    paired: Paired
    parts: Mapping[str, object]  #: of the signature
    sentences: Sequence[Sequence[str]] = field(repr=False)  #: that were scored
    of_sentences: bool = False  #: only whole sentences have a truth: the tokens of ``paired`` have none

    @property
    def signature(self) -> str:
        """Every choice that could change the values."""
        return signature(self.parts)

    def as_scores(self) -> list[Score]:
        """Return ``measures``, ``bound_unconditioned``, and counts without interval, as scores."""
        counted = self._counts()
        overrides = {
            "kl": {"estimator": "paired"},
            "bound_unconditioned": {"given": "none"},
            "rho": {"ci": ci_part(counted["sentences"], 0, method="jackknife")},
        }
        values = dict(self.measures)
        if self.bound_unconditioned is not None:
            values["bound_unconditioned"] = self.bound_unconditioned
        scores = [
            Score(
                name,
                interval.value,
                signature({**self.parts, **unit_part(name), **overrides.get(name, {})}),
                interval.low,
                interval.high,
            )
            for name, interval in values.items()
        ]
        counts = [Score(name, value, signature({**self.parts, **unit_part(name)})) for name, value in counted.items()]
        return keyed(scores + counts, model=self.model, objective=self.objective)

    def token_columns(self) -> dict[str, Column]:
        """Return a row for each position of both sides, see `truesource.evaluation.core.token_table.token_columns`."""
        paired = self.paired
        at = {"sentence": paired.sentence, "position": paired.position, "impossible": paired.excluded}
        scores, truth = (
            TokenScores(log_prob=side, n_sentences=paired.n_sentences, frame=ScoringFrame(), **at)
            for side in (paired.model, paired.oracle)
        )
        return token_columns(self.sentences, scores, None if self.of_sentences else truth)

    def tokens_to_pandas(self) -> pd.DataFrame:
        """Return the columns of `token_columns` as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.token_columns()).convert_dtypes()

    def _counts(self) -> dict[str, int]:
        paired = self.paired
        excluded = len(paired.excluded)
        return {
            "tokens": paired.tokens,
            "sentences": paired.n_sentences - excluded,
            "excluded": excluded,
            "impossible_model": len(paired.impossible_model),
            "impossible_oracle": len(paired.impossible_oracle),
        }

    def as_record(self) -> dict[str, str | float | None]:
        """Return the comparison as one row, for the report; interval ends are ``<name>_low`` and ``<name>_high``."""
        record: dict[str, str | float | None] = {"model": self.model, "objective": self.objective}
        values = dict(self.measures)
        if self.bound_unconditioned is not None:
            values["bound_unconditioned"] = self.bound_unconditioned
        for name, interval in values.items():
            record[name] = interval.value
            record[f"{name}_low"], record[f"{name}_high"] = interval.low, interval.high
        missing = dict.fromkeys(CORRELATIONS.keys() - self.measures.keys())
        signed = {"signature": self.signature, **no_interval_entry(self.signature)}
        return {**record, **missing, **self._counts(), **signed}


def compare_in(model: LanguageModel, setting: Setting) -> Comparison:
    """Score a model and the truth of a setting on the same positions, and compare them.

    Of transformed text, causal measures are those that are means over whole sentences; there are no correlations of
    tokens.

    Raises:
        InputError: the model's scores are no `TokenScores`, or the truth is of sentences and the frame excludes
            positions.
        NothingToCompareError: no sentence is possible for both sides.
    """
    both, seed = score_both(model, setting), setting.seed
    paired = both.paired
    unconditioned = None
    if model.objective == "causal" and (setting.lengths is None or has_endings(setting.known)):
        free = paired if setting.lengths is None else both.without_condition(model)
        unconditioned = perplexities(free, seed)["bound"]
    return Comparison(
        model.name,
        model.objective,
        {**perplexities(paired, seed), **({} if both.oracle.of_sentences else correlations(paired, seed))},
        unconditioned,
        paired,
        both.parts,
        both.sentences,
        both.oracle.of_sentences,
    )


@dataclass(frozen=True)
class ScorePair:
    """A model and the truth on the same positions."""

    oracle: Oracle
    paired: Paired
    sentences: Sequence[Sequence[str]]
    scores: TokenScores  #: of the model, impossible sentences included
    open_skips: bool  #: the model skips words that the oracle does not know to be unknown
    parts: Mapping[str, object]  #: of signatures

    def without_condition(self, model: LanguageModel) -> Paired:
        """Return the oracle of the grammar without the length condition on the same positions, as both sides."""
        frame = self.scores.frame
        oracle = oracle_for(model, self.oracle.truth, None, frame, transform=self.oracle.transform)
        free = oracle.score(self.sentences, frame)
        return _within(at_positions_of(free, self.scores) if self.open_skips else free, self.paired)


def score_both(model: LanguageModel, setting: Setting) -> ScorePair:
    """Score a model and the truth on the same positions.

    Raises:
        InputError: as `compare_in`.
        NothingToCompareError: no sentence is possible for both sides.
    """
    language, sentences, frame = setting.known, setting.sentences, setting.frame_of(model.objective)
    require_whole(setting.transform, model.objective, frame)
    oracle = setting.oracle(model)
    scores = setting.truth(model) if adapts(model, oracle) else score_by_model(model, sentences, frame)
    is_truth = isinstance(model, Oracle) and vars(model) == vars(oracle)  # which is not computed twice
    truth = scores if is_truth else setting.truth(model)
    open_skips = model.vocabulary is None and frame.unk == "skip"  # words that only the model knows to be unknown
    if open_skips:
        truth = at_positions_of(truth, scores)
    paired = pair(scores, truth, unknown_words(language, (sentences[i] for i in truth.impossible)))
    parts = {
        "objective": model.objective,
        "given": oracle.condition,
        **transform_parts(language, setting.transform, model.objective),
        **disjoint_part(setting.excluded, corrected=not isinstance(model, CoarsenedModel)),
        **frame_parts(frame, model.objective),
        "unit": "nats/token",
        "vocab": vocabulary_part(oracle),
        **compared_part(model),
        "ci": ci_part(paired.n_sentences - len(paired.excluded), setting.seed),
        "sentences": paired.n_sentences - len(paired.excluded),
        "excluded": len(paired.excluded),
        "tokens": paired.tokens,
        **setting.left_out,
        "data": digest_sentences(sentences),
        "grammar": language.identity,
        **reading_part(model),
        **dependence_part(model),
    }
    return ScorePair(oracle, paired, sentences, scores, open_skips, parts)


def vocabulary_part(oracle: Oracle) -> str:
    """Return the part of a signature: number of words in the vocabulary, and all (of the grammar) or a digest."""
    size = len(oracle.truth.vocabulary)
    if oracle.vocabulary is None or len(oracle.vocabulary) == size:
        return f"{size}/all"
    contexts = "" if oracle.collapsed else "/full-contexts"
    return f"{len(oracle.vocabulary)}/{digest_sentences([oracle.vocabulary])}{contexts}"


def _within(scores: TokenScores, paired: Paired) -> Paired:
    """Return other scores of the oracle on the sentences that ``paired`` kept."""
    values = scores.log_prob[~np.isin(scores.sentence, paired.excluded)]
    return replace(paired, model=values, oracle=values)
