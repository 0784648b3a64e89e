"""Comparison of a model with the exact truth by full distributions: divergences, tables and signatures.

Its contexts are of input sentences; `truesource.evaluation.divergence.reverse` has contexts sampled from the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.comparison import vocabulary_part
from truesource.evaluation.core.exclusion import disjoint_part
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.setting import Setting, adds_up_to_words, has_divergence
from truesource.evaluation.core.signature import dependence_part, digest_sentences, frame_parts, signature
from truesource.evaluation.core.transformed import require_tokens, transform_parts
from truesource.evaluation.core.vocabulary import compared_part
from truesource.evaluation.divergence import BY, IN_WORDS, OF_EVENTS, By
from truesource.evaluation.divergence.blocks import PENN, TagClasses, events_of, paired_blocks
from truesource.evaluation.divergence.contexts import MEASURED, CachedTruth, Contexts, Reliability, measure_contexts
from truesource.evaluation.divergence.groups import (
    NEAR,
    WORDS,
    by_ambiguity,
    by_distance,
    divided_by_phrase,
    require_groups,
)
from truesource.evaluation.divergence.means import Column, mean_scores, variance_ratio
from truesource.evaluation.divergence.of_words import NOT_ADDED, in_words
from truesource.evaluation.divergence.segmentation_losses import SegmentationLosses, scores_of_words
from truesource.evaluation.divergence.tables import BreakdownRow, by_context, by_group
from truesource.evaluation.measures.bootstrap import ci_part
from truesource.evaluation.tokenisation.sums import Gains
from truesource.generator.abilities import offers
from truesource.generator.language_model import LanguageModel, ScoringFrame, check_sentences
from truesource.grammar.pieces.truth import TokenisedTruth
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords

_PLAIN = ("js", "tv", "entropy_truth", "entropy_model", "agreement", "special_mass", "impossible_mass")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ModelDivergence(ResultRecords):
    """The result of `compare_distributions` for one model."""

    model: str
    objective: str
    scores: dict[str, Score]
    tables: dict[str, list[BreakdownRow]]  #: tables by name
    reliability: Reliability
    contexts: int  #: number of compared contexts
    impossible: IntArray  #: sentences with probability 0 under the truth

    @property
    def excluded(self) -> int:
        """Number of excluded sentences."""
        return len(self.impossible)

    @override
    def as_scores(self) -> list[Score]:
        scores = list(self.scores.values())
        for by, rows in self.tables.items():
            for row in rows:
                scores += keyed(row.scores.values(), by=by, group=row.group, tokens=row.tokens)
        return keyed(scores, model=self.model, objective=self.objective)


def compare_distributions(
    model: LanguageModel,
    setting: Setting,
    *,
    top: int = 10,
    by: Sequence[By] = (),
    classes: TagClasses = PENN,
    truth: CachedTruth | None = None,
    signed: Mapping[str, object] | None = None,
    gains: Gains | None = None,
) -> ModelDivergence:
    """Compare the distributions of a model and of the truth in every context of sentences.

    ``kl`` is the mean over contexts of the exact KL(P || Q), which is what the mean of ln P - ln Q over tokens
    (``kl_paired``) estimates too: conditional expectation of the token given its context takes its variance away
    (Rao-Blackwell). ``variance_ratio`` says by how much. Every position counts, unknown words as the token ``<unk>``.

    A causal model of pieces is compared in words: the divergences of the pieces of a word are added up, and measures
    that do not add up, such as ``js``, are missing. The same model in its own tokens
    (`truesource.evaluation.core.setting.Setting.with_distributions`) has them all, per piece, and ``kl_per_word``, with
    its parts, see `truesource.evaluation.divergence.segmentation_losses`. Divergences of masked pieces do not add up
    to divergences of words, so a masked model of pieces is compared in its own tokens alone.

    Args:
        model: with full distributions, such as the oracle itself, or a causal model of pieces.
        setting: text and truth. Every position counts, whatever the frame. Full distributions always come from the
            grammar, even if the text excludes sentences, and every signature says ``disjoint:uncorrected``. Of
            transformed text only masked models have them.
        top: k of ``top_k_overlap``.
        by: tables to make: ``position``, ``length`` of the sentence, ``class`` of the next word, its ``frequency``;
            ``phrase``, ``ambiguity`` of the sentence and ``distance`` of relevant words, see
            `truesource.evaluation.divergence.groups`; true ``probability`` of the next word, see
            `truesource.evaluation.divergence.blocks.divide_by_probability`.
        classes: classes of the table by ``class``.
        truth: cached truth for such a model, with its states for the table by ``class``, on the same sentences
            (``truth.inputs``); None: computed here.
        signed: additional parts of every signature.
        gains: what sums over segmentations add to the log probability of sentences, for ``kl_summed``.

    Raises:
        InputError: sentences are strings, an unknown ``by``, a ``truth`` about other sentences, a table needs the rules
            of a grammar and the truth is a process (``missing-ability``), or see
            `truesource.evaluation.divergence.contexts.measure_contexts`.
        NothingToMeasureError: by ``distance`` of a masked model; or a masked model of pieces is not in its own tokens,
            or is to be divided by groups of words (``masked``).
    """
    check_sentences(setting.sentences)
    _require_tables(by, top, setting, model)
    both = _measured(model, setting, truth, top=top, by=by, classes=classes)
    oracle, measured = both.oracle, both.contexts
    shared = {
        **signed_parts(oracle, setting, contexts=len(measured.values), excluded=len(measured.excluded)),
        **both.parts,
        **compared_part(model),
        **dependence_part(model),
        **(signed or {}),
    }
    scores = _scores(measured, shared, top, setting.seed)
    if both.words is not measured:
        scores |= scores_of_words(both.words, both.losses, gains, shared, setting.seed)
    return ModelDivergence(
        model=model.name,
        objective=model.objective,
        scores=scores,
        tables=_tables(both, by, classes, shared, setting.seed),
        reliability=measured.reliability,
        contexts=len(measured.values),
        impossible=measured.excluded,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Measured:
    """The contexts of a model in the tokens that it is compared in, and in words."""

    oracle: Oracle  #: of these tokens
    contexts: Contexts
    text: Setting  #: in words
    words: Contexts  #: the same object if the tokens are words
    of_words: Oracle
    losses: Mapping[str, FloatArray]  #: parts of the divergence of each word of a model of pieces
    parts: Mapping[str, object]  #: of signatures


def _measured(
    model: LanguageModel,
    setting: Setting,
    truth: CachedTruth | None,
    *,
    top: int,
    by: Sequence[By],
    classes: TagClasses,
) -> _Measured:
    """Measure all contexts; see `compare_distributions`."""
    tokens, cut = setting.with_distributions(model)
    if truth is not None and tuple(map(tuple, cut.sentences)) != truth.inputs:
        raise InputError("the truth was cached for other sentences; compare on the same sentences")
    oracle = cut.full_oracle(tokens) if truth is None else truth.oracle
    measure = partial(measure_contexts, tokens, oracle, cut.sentences, top=top, by=by, classes=classes)
    blocks = None if truth is None else truth.blocks(tokens)
    text = setting.words or setting
    if not isinstance(oracle.truth, TokenisedTruth):
        contexts = measure(blocks=blocks)
        return _Measured(
            oracle=oracle, contexts=contexts, text=text, words=contexts, of_words=oracle, losses={}, parts={}
        )
    parts = {"pieces": oracle.truth.segmentation.digest[:8]}
    if oracle.objective == "masked":
        contexts = measure(blocks=blocks)
        return _Measured(
            oracle=oracle, contexts=contexts, text=text, words=contexts, of_words=oracle, losses={}, parts=parts
        )
    of_words = Oracle(text.known, model.objective, lengths=text.lengths)
    if cut is not setting:  # the model is compared in words
        words = in_words(measure(blocks=blocks), oracle.truth, cut.sentences)
        words = replace(words, reliability=Reliability())
        return _Measured(
            oracle=of_words, contexts=words, text=text, words=words, of_words=of_words, losses={}, parts=parts
        )
    spelling, losses = getattr(model, "spelling", None), dict[str, FloatArray]()
    if spelling is None:
        contexts = measure(blocks=blocks)
    else:
        segmentations = SegmentationLosses(oracle.truth, tokens.vocabulary, spelling)
        if blocks is None:
            blocks = paired_blocks(tokens, oracle, cut.sentences, events_of(tokens, oracle), MEASURED)
        contexts = measure(blocks=segmentations.watch(blocks, cut.sentences))
        losses = segmentations.of_words(contexts, cut.sentences)
    words = in_words(contexts, oracle.truth, cut.sentences)
    return _Measured(
        oracle=oracle, contexts=contexts, text=text, words=words, of_words=of_words, losses=losses, parts=parts
    )


def _tables(
    both: _Measured, by: Sequence[By], classes: TagClasses, shared: Mapping[str, object], seed: int
) -> dict[str, list[BreakdownRow]]:
    """Return the tables that a call asks for; some are of words whatever the tokens."""
    words, of_words, sentences = both.words, both.of_words, both.text.sentences
    tables: dict[str, list[BreakdownRow]] = {}
    for name in by:
        signed = {**shared, "by": name}
        if name == "phrase":
            tables[name] = by_group(divided_by_phrase(words, of_words, sentences), signed, seed)
        elif name in OF_EVENTS:
            more = {"classes": classes.origin} if name == "class" else {}
            tables[name] = by_group(both.contexts.divided[name], {**signed, **more}, seed)
        elif name == "ambiguity":
            groups = by_ambiguity(words, of_words, sentences)
            tables[name] = by_context(words, groups.group, signed, seed, groups.names)
        elif name == "distance":
            groups, seen = by_distance(words, of_words, sentences), {"seen": f"0..{WORDS}", "below": NEAR}
            tables[name] = by_context(words, groups.group, {**signed, **seen}, seed, groups.names)
        else:
            key = both.contexts.position + 1 if name == "position" else both.contexts.length
            tables[name] = by_context(both.contexts, key, signed, seed)
    return tables


def _require_tables(by: Sequence[By], top: int, setting: Setting, model: LanguageModel) -> None:
    """Refuse tables that there are not."""
    unknown = [name for name in by if name not in BY]
    if unknown or top < 1:
        raise InputError(f"tables are by {', '.join(BY)}, and top must be at least 1; got {', '.join(unknown) or top}")
    require_tokens(setting.transform, model.objective, "a divergence from the truth")
    require_groups(by, setting.words or setting, model)
    if has_divergence(model) and not adds_up_to_words(model):
        raise NothingToMeasureError(f"{model.name} has no exact divergence per word: {NOT_ADDED}", "masked")
    of_words = [name for name in by if name in IN_WORDS]
    if of_words and setting.words is not None and model.objective == "masked":
        raise NothingToMeasureError(
            f"the divergence by {of_words[0]} is of words, but {NOT_ADDED}, or leave {of_words[0]} out", "masked"
        )
    if "class" in by and setting.words is not None:
        raise NothingToMeasureError(
            f"the divergence by class is of whole words, but the tokens of {model.name} are pieces; leave class out",
            "missing-ability",
        )
    divided = [name for name in by if name in OF_EVENTS]
    if divided and not offers(model, "distributions") and has_divergence(model):
        raise InputError(
            f"the divergence by {divided[0]} divides the probabilities of whole words, which {model.name}"
            " does not have",
            code="missing-ability",
        )


def signed_parts(oracle: Oracle, setting: Setting, *, contexts: int, excluded: int) -> dict[str, object]:
    """Build parts of signatures for measures in the given number of contexts of all possible sentences."""
    sentences = len(setting.sentences) - excluded
    return {
        "objective": oracle.objective,
        "given": oracle.condition,
        **transform_parts(oracle.truth, oracle.transform, oracle.objective),
        **disjoint_part(setting.excluded, corrected=False),
        **frame_parts(ScoringFrame(), oracle.objective),
        "vocab": vocabulary_part(oracle),
        "ci": ci_part(sentences, setting.seed),
        "sentences": sentences,
        "excluded": excluded,
        "contexts": contexts,
        "data": digest_sentences(setting.sentences),
        "grammar": oracle.truth.identity,
    }


def _scores(measured: Contexts, shared: Mapping[str, object], top: int, seed: int) -> dict[str, Score]:
    """Compute all scores over the whole corpus."""
    nats, share = {"unit": "nats/token"}, {"unit": "share"}
    exact = {**nats, "contexts-of": "truth", "estimator": "rao-blackwell", "may": "infinite"}
    within = {**exact, "q": "renormalised"}
    columns = {
        "kl": Column(measured.column("kl"), exact),
        "kl_paired": Column(measured.truth - measured.model, {**exact, "estimator": "paired"}),
        "reverse_kl": Column(measured.column("reverse_kl"), within),
        "reverse_kl_possible": Column(measured.column("reverse_kl_possible"), {**within, "q": "given-possible"}),
    }
    for name in _PLAIN:
        unit = nats if name in ("js", "entropy_truth", "entropy_model") else share
        columns[name] = Column(measured.column(name), {**unit, "contexts-of": "truth", "estimator": "rao-blackwell"})
    columns["top_k_overlap"] = Column(measured.column("top_k_overlap"), {**share, "contexts-of": "truth", "k": top})
    scores = mean_scores(columns, measured.sentence, shared, seed)
    plain, exactly = measured.truth - measured.model, measured.column("kl")
    if np.isfinite(plain).all() and np.isfinite(exactly).all():
        counts = measured.per_sentence(np.ones(len(measured.values)))
        ratio = variance_ratio(measured.per_sentence(plain), measured.per_sentence(exactly), counts)
        if ratio is not None:
            scores["variance_ratio"] = Score(
                "variance_ratio", ratio, signature({**shared, "ratio": "kl_paired/kl", "unit": "ratio"})
            )
    if measured.reliability.contexts == 0.0:
        return scores
    errors = {
        "calibration_error": (measured.reliability.error, f"lnq/{len(measured.reliability.bins)}"),
        "calibration_error_top": (measured.reliability.top_error, f"confidence/{len(measured.reliability.top)}"),
    }
    for name, (value, bins) in errors.items():
        parts = {**shared, **share, "contexts-of": "truth", "bins": bins, "outcomes": "exact"}
        scores[name] = Score(name, value, signature(parts))
    return scores
