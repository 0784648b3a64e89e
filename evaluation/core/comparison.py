"""One model against the exact truth: every measure, one record, one signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.evaluation.core.alone import reading_part, score_by_model
from truesource.evaluation.core.exclusion import Exclusion, disjoint_part
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score, no_interval_entry
from truesource.evaluation.core.signature import digest_sentences, frame_parts, signature
from truesource.evaluation.core.token_table import token_columns
from truesource.evaluation.core.transformed import require_whole, transform_parts
from truesource.evaluation.measures.bootstrap import Interval, ci_part
from truesource.evaluation.measures.correlation import CORRELATIONS, correlations
from truesource.evaluation.measures.paired import Paired, at_positions_of, pair, unknown_words
from truesource.evaluation.measures.perplexity import perplexities
from truesource.generator.language_model import LanguageModel, ScoringFrame, TokenScores
from truesource.generator.plan import Transform
from truesource.grammar.conditioning import DEFAULT_SEED, LengthRange
from truesource.grammar.diagnostics import has_endings
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.printable import ResultRecords

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Comparison(ResultRecords):
    """What `compare` found for one model."""

    model: str
    objective: str
    #: ppl, bound, relative_ppl, kl and, where tokens have a truth, rho, r2_pearson, r2_identity, r2_released
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
        """Every measure as a `Score`: those of ``measures``, ``bound_unconditioned``, and counts without interval."""
        counted = self._counts()
        own = {
            "kl": {"estimator": "paired"},
            "bound_unconditioned": {"given": "none"},
            "rho": {"ci": ci_part(counted["sentences"], 0, method="jackknife")},
        }
        values = dict(self.measures)
        if self.bound_unconditioned is not None:
            values["bound_unconditioned"] = self.bound_unconditioned
        scores = [
            Score(name, found.value, signature({**self.parts, **own.get(name, {})}), found.low, found.high)
            for name, found in values.items()
        ]
        return scores + [Score(name, value, self.signature) for name, value in counted.items()]

    def records(self) -> list[dict[str, Any]]:
        """One record a measure, for JSON: model, objective, name, value, low, high, signature."""
        return [{"model": self.model, "objective": self.objective, **score.as_record()} for score in self.as_scores()]

    def token_columns(self) -> dict[str, Any]:
        """A row for each position that both sides score, see `truesource.evaluation.core.token_table.token_columns`."""
        paired = self.paired
        at = {"sentence": paired.sentence, "position": paired.position, "impossible": paired.excluded}
        scores, truth = (
            TokenScores(log_prob=side, n_sentences=paired.n_sentences, frame=ScoringFrame(), **at)
            for side in (paired.model, paired.oracle)
        )
        return token_columns(self.sentences, scores, None if self.of_sentences else truth)

    def tokens_to_pandas(self) -> pd.DataFrame:
        """The columns of `token_columns` as a data frame."""
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

    def as_record(self) -> dict[str, Any]:
        """All of it as one row, for the report's table; interval ends are ``<name>_low`` and ``<name>_high``."""
        record: dict[str, Any] = {"model": self.model, "objective": self.objective}
        values = dict(self.measures)
        if self.bound_unconditioned is not None:
            values["bound_unconditioned"] = self.bound_unconditioned
        for name, interval in values.items():
            record[name] = interval.value
            record[f"{name}_low"], record[f"{name}_high"] = interval.low, interval.high
        missing = dict.fromkeys(CORRELATIONS.keys() - self.measures.keys())
        signed = {"signature": self.signature, **no_interval_entry(self.signature)}
        return {**record, **missing, **self._counts(), **signed}


def oracle_for(
    model: LanguageModel,
    pcfg: PCFG,
    lengths: LengthRange | None,
    frame: ScoringFrame | None = None,
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
) -> Oracle:
    """The oracle that sees what the model sees: its objective and its vocabulary, the corpus's length condition.

    A frame that skips unknown words is the published one, whose oracle keeps them in its contexts.
    """
    collapse = frame is None or frame.unk == "token"
    return Oracle(
        pcfg,
        model.objective,
        lengths=lengths,
        vocabulary=model.vocabulary,
        collapse=collapse,
        excluded=excluded,
        transform=transform,
    )


def compare(
    model: LanguageModel,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    frame: ScoringFrame | None = None,
    seed: int = DEFAULT_SEED,
    excluded: Exclusion | None = None,
    left_out: Mapping[str, int] | None = None,
    transform: Transform | None = None,
) -> Comparison:
    """Score a model and the truth on the same positions and compare them.

    Args:
        model: anything that satisfies `LanguageModel`, the oracle included.
        pcfg: the grammar that the corpus was drawn from.
        sentences: evaluation sentences, in the grammar's words.
        lengths: the length condition that the corpus was drawn under.
        frame: which positions count; everything by default.
        seed: of the bootstrap.
        excluded: what the sentences leave out, where their corpus has disjoint splits, see
            `truesource.evaluation.core.exclusion.Exclusion.of`: the truth then leaves it out too.
        left_out: entries of the signature that say which sentences of the text are not given, and how many.
        transform: of the text, see `truesource.evaluation.core.oracle.Oracle`. Causal measures are then those that are
            means over whole sentences; there are no correlations of tokens.

    Raises:
        InputError: a sentence is a string, the model's scores are no `TokenScores`, or the truth is of sentences and
            the frame leaves out positions.
        NothingToCompareError: no sentence is possible for both sides.
    """
    both = score_both(
        model,
        pcfg,
        sentences,
        lengths=lengths,
        frame=frame,
        seed=seed,
        excluded=excluded,
        left_out=left_out,
        transform=transform,
    )
    paired = both.paired
    unconditioned = None
    if model.objective == "causal" and (lengths is None or has_endings(pcfg)):
        unconditioned = perplexities(paired if lengths is None else both.without_condition(model), seed)["bound"]
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
class BothScored:
    """A model and the truth on the same positions."""

    oracle: Oracle
    paired: Paired
    sentences: Sequence[Sequence[str]]
    scores: TokenScores  #: of the model, impossible sentences included
    open_skips: bool  #: the model skips words that the oracle cannot tell to be unknown
    parts: Mapping[str, object]  #: of signatures

    def without_condition(self, model: LanguageModel) -> Paired:
        """The oracle of the grammar without the length condition on the same positions, as both sides."""
        frame = self.scores.frame
        oracle = oracle_for(model, self.oracle.pcfg, None, frame, transform=self.oracle.transform)
        free = oracle.score(self.sentences, frame)
        return _within(at_positions_of(free, self.scores) if self.open_skips else free, self.paired)


def score_both(
    model: LanguageModel,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    frame: ScoringFrame | None = None,
    seed: int = DEFAULT_SEED,
    excluded: Exclusion | None = None,
    truth: TokenScores | None = None,
    left_out: Mapping[str, int] | None = None,
    transform: Transform | None = None,
) -> BothScored:
    """Score a model and the truth on the same positions; the arguments are those of `compare`.

    ``truth`` is what `oracle_for` such a model scores, where it is known already: models of one objective and one
    vocabulary share it.

    Raises:
        InputError: as `compare`.
        NothingToCompareError: no sentence is possible for both sides.
    """
    frame = frame or ScoringFrame()
    require_whole(transform, model.objective, frame)
    oracle = oracle_for(model, pcfg, lengths, frame, excluded, transform)
    scores = score_by_model(model, sentences, frame)
    if truth is None:
        is_truth = isinstance(model, Oracle) and vars(model) == vars(oracle)  # which is not computed twice
        truth = scores if is_truth else oracle.score(sentences, frame)
    open_skips = model.vocabulary is None and frame.unk == "skip"  # words that only the model knows it cannot read
    if open_skips:
        truth = at_positions_of(truth, scores)
    paired = pair(scores, truth, unknown_words(pcfg, (sentences[i] for i in truth.impossible)))
    parts = {
        "objective": model.objective,
        "given": oracle.condition,
        **transform_parts(pcfg, transform, model.objective),
        **disjoint_part(excluded),
        **frame_parts(frame, model.objective),
        "unit": "nats/token",
        "vocab": vocabulary_part(oracle),
        "ci": ci_part(paired.n_sentences - len(paired.excluded), seed),
        "sentences": paired.n_sentences - len(paired.excluded),
        "excluded": len(paired.excluded),
        "tokens": paired.tokens,
        **(left_out or {}),
        "data": digest_sentences(sentences),
        "grammar": pcfg.identity,
        **reading_part(model),
    }
    return BothScored(oracle, paired, sentences, scores, open_skips, parts)


def vocabulary_part(oracle: Oracle) -> str:
    """Part of a signature: how many words are told apart, and which: all of the grammar's, or a digest."""
    if oracle.vocabulary is None:
        return f"{len(oracle.pcfg.terminals)}/all"
    contexts = "" if oracle.collapsed else "/full-contexts"
    return f"{len(oracle.vocabulary)}/{digest_sentences([oracle.vocabulary])}{contexts}"


def _within(scores: TokenScores, paired: Paired) -> Paired:
    """Other scores of the oracle on the sentences that ``paired`` kept."""
    kept = ~np.isin(scores.sentence, paired.excluded)
    values = scores.log_prob[kept]
    return replace(paired, model=values, oracle=values)
