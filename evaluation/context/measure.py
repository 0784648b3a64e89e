"""Use of context: a model compared with the best predictors that see 0, 1, 2, ... words.

L_k, the loss of the best predictor that sees k words, is a property of the language; L_(m-1) is its m-local entropy
(Someya et al. 2025), and the sum of L_k less the entropy over all k its excess entropy (Crutchfield & Feldman 2003).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import signature
from truesource.evaluation.core.transformed import require_tokens
from truesource.evaluation.core.windows import BestWithin, PiecesWithin
from truesource.evaluation.divergence.compare import signed_parts
from truesource.evaluation.divergence.contexts import Contexts, measure_contexts
from truesource.evaluation.divergence.means import Column, mean_scores
from truesource.evaluation.divergence.of_words import in_words
from truesource.evaluation.measures.bootstrap import ci_part, resampled_sums
from truesource.generator.abilities import require
from truesource.generator.language_model import DistributionModel, LanguageModel, check_sentences
from truesource.grammar.pieces.truth import TokenisedTruth
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords, too_few

ALL = "all"  #: what the truth sees, in records
_NATS: dict[str, object] = {"unit": "nats/token"}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ContextUse(ResultRecords):
    """Result of `context_use` for one model."""

    model: str
    objective: str
    scores: dict[str, Score]  #: of the model and the truth; ``words_passed``, ``effective_context``
    lines: dict[str, dict[str, Score]]  #: by what a predictor sees, ``0`` to ``K`` and ``all``
    contexts: int  #: that were compared
    impossible: IntArray  #: sentences that the truth cannot make

    @override
    def as_scores(self) -> list[Score]:
        scores = list(self.scores.values())
        for seen, line in self.lines.items():
            scores += keyed(line.values(), by="words", group=seen)
        return keyed(scores, model=self.model, objective=self.objective)


def context_use(model: LanguageModel, setting: Setting, *, words: int = 4, placed: bool = False) -> ContextUse:
    """Compare a model with the best predictors that see 0 to ``words`` words, and with the truth, in a text.

    Each predictor P_k has these means over tokens, in nats:

    * ``loss``: -ln P_k, and ``above_truth``, its difference from the loss of the truth.
    * ``model_above``: the model's loss less ``loss``; below 0, the model has passed this line.
    * ``distance``: KL(P_k || Q), exact in every context.

    ``excess_entropy`` is the sum of ``above_truth`` over 0 to ``words`` words, a lower bound of the excess entropy of
    the language. ``words_passed`` is the greatest k whose line the model has passed, with its whole interval; absent
    without such a line. ``effective_context`` is the k whose predictor is nearest to the model by KL(P_k || Q),
    ``words`` + 1 if the truth is nearer than all of them.

    A model of pieces is compared in words: the numbers of the pieces of a word are added up. The predictors then see
    the pieces of the current word, too, which changes nothing in their losses.

    Args:
        model: a causal model with full distributions, or of pieces.
        setting: text and truth. Every position counts, whatever the frame.
        words: maximum number of words that a predictor sees, 0 or more.
        placed: the predictors know the position of the token, too.

    Raises:
        NothingToMeasureError: the model is masked.
        InputError: causal tokens have no truth, because of a transform.
    """
    check_sentences(setting.sentences)
    if model.objective != "causal":
        raise NothingToMeasureError("a masked model sees the words after a token, too; give a causal one", "masked")
    require_tokens(setting.transform, "causal", "a predictor that sees k words")
    oracle = setting.full_oracle(model)
    tokens, cut = setting.with_distributions(model)
    pieces = cut.known if isinstance(cut.known, TokenisedTruth) else None
    grammar = setting.grammar if pieces is None else require(pieces.truth, "windows", "evaluate context")
    first = BestWithin(grammar, 0, placed=placed, lengths=setting.lengths, vocabulary=model.vocabulary)
    compared = _Tokens(tokens, pieces)
    whole = compared.contexts(cut.full_oracle(tokens), cut.sentences)
    possible = [s for i, s in enumerate(cut.sentences) if i not in set(whole.excluded.tolist())]
    measured = {str(k): compared.contexts(first.with_words(k), possible) for k in range(words + 1)}
    measured[ALL] = whole
    shared = signed_parts(oracle, setting, contexts=len(whole.values), excluded=len(whole.excluded))
    lines = {
        seen: mean_scores(
            _columns(contexts, whole, "" if seen == ALL else f"{seen}{'/placed' if placed else ''}"),
            whole.sentence,
            shared,
            setting.seed,
        )
        for seen, contexts in measured.items()
    }
    gained = np.sum([whole.truth - measured[str(k)].truth for k in range(words + 1)], axis=0)
    every: dict[str, object] = {"unit": "nats/token", "seen": f"0..{words}{'/placed' if placed else ''}"}
    columns = {
        "loss": Column(-whole.model, _NATS | {"may": "infinite"}),
        "excess_entropy": Column(gained, {**every, "unit": "nats", "estimator": "paired"}),
    }
    scores = mean_scores(columns, whole.sentence, shared, setting.seed)
    scores["loss_truth"] = replace(lines[ALL].pop("loss"), name="loss_truth")
    counted = {**shared, **every, "unit": "words"}
    passed = [k for k in range(words + 1) if _is_below(lines[str(k)].get("model_above"))]
    if passed:
        scores["words_passed"] = Score("words_passed", passed[-1], signature(counted))
    scores["effective_context"] = _effective(measured, counted, setting.seed)
    return ContextUse(
        model=model.name,
        objective=model.objective,
        scores=scores,
        lines=lines,
        contexts=len(whole.values),
        impossible=whole.excluded,
    )


@dataclass(frozen=True)
class _Tokens:
    """A model in its tokens, which are words or the pieces of a language."""

    model: DistributionModel
    pieces: TokenisedTruth | None

    def contexts(self, oracle: Oracle, sentences: Sequence[Sequence[str]]) -> Contexts:
        """Return the contexts of words and sentence ends in some sentences of these tokens."""
        if self.pieces is None:
            return measure_contexts(self.model, oracle, sentences, top=1)
        within = PiecesWithin(self.pieces, oracle) if isinstance(oracle, BestWithin) else oracle
        return in_words(measure_contexts(self.model, within, sentences, top=1), self.pieces, sentences)


def _columns(predictor: Contexts, whole: Contexts, seen: str) -> dict[str, Column]:
    """Return the measures of one predictor in all contexts; for the truth, ``seen`` is empty."""
    parts = {**_NATS, **({"seen": seen} if seen else {})}
    paired = {**parts, "estimator": "paired"}
    columns = {"loss": Column(-predictor.truth, parts)}
    if seen:
        columns["above_truth"] = Column(whole.truth - predictor.truth, paired)
    columns["model_above"] = Column(predictor.truth - whole.model, {**paired, "may": "infinite"})
    exact = {**parts, "contexts-of": "truth", "estimator": "rao-blackwell", "may": "infinite"}
    columns["distance"] = Column(predictor.column("kl"), exact)
    return columns


def _is_below(score: Score | None) -> bool:
    """Return True if a number and its whole interval are below 0."""
    return score is not None and (score.value if score.high is None else score.high) < 0.0


def _effective(measured: Mapping[str, Contexts], parts: Mapping[str, object], seed: int) -> Score:
    """Return the nearest predictor, with percentiles of the nearest in resampled texts."""
    whole = measured[ALL]
    sums = np.stack([whole.per_sentence(contexts.column("kl")) for contexts in measured.values()], axis=1)
    sums = np.minimum(sums, np.finfo(np.float64).max / len(sums) ** 2)  # infinite ones stay the largest
    value = float(sums.sum(axis=0).argmin())
    low = high = None
    if not too_few(len(sums)):
        nearest: FloatArray = resampled_sums(sums, seed=seed).argmin(axis=1)
        low, high = (float(end) for end in np.percentile(nearest, [2.5, 97.5], method="inverted_cdf"))
    signed = {**parts, "contexts-of": "truth", "ci": ci_part(len(sums), seed, method="percentile")}
    return Score("effective_context", value, signature(signed), low, high)
