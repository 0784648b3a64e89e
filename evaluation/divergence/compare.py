"""One model against the exact truth by full distributions: every divergence, with tables and signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truesource.evaluation.core.comparison import oracle_for, vocabulary_part
from truesource.evaluation.core.exclusion import Exclusion, disjoint_part
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, frame_parts, signature
from truesource.evaluation.core.tag_classes import PENN, TagClasses
from truesource.evaluation.core.transformed import require_tokens, transform_parts
from truesource.evaluation.divergence.breakdown import BreakdownRow, by_context, by_group
from truesource.evaluation.divergence.cached import CachedTruth
from truesource.evaluation.divergence.calibration import Reliability
from truesource.evaluation.divergence.contexts import Contexts, measure_contexts
from truesource.evaluation.divergence.estimate import Column, mean_scores, variance_ratio
from truesource.evaluation.divergence.settings import BY, By
from truesource.evaluation.measures.bootstrap import ci_part
from truesource.generator.language_model import DistributionModel, ScoringFrame, check_sentences
from truesource.generator.plan import Transform
from truesource.grammar.conditioning import DEFAULT_SEED, LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords

_PLAIN = ("js", "tv", "entropy_truth", "entropy_model", "agreement", "special_mass", "impossible_mass")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ModelDivergence(ResultRecords):
    """What `compare_distributions` found for one model."""

    model: str
    objective: str
    scores: dict[str, Score]
    tables: dict[str, list[BreakdownRow]]  #: by what was asked for
    reliability: Reliability
    contexts: int  #: that were compared
    impossible: IntArray  #: sentences that the truth cannot make

    @property
    def excluded(self) -> int:
        """Sentences that are left out."""
        return len(self.impossible)

    def records(self) -> list[dict[str, Any]]:
        """One record a measure, for JSON; those of tables have ``by``, ``group`` and ``tokens`` as well."""
        head = {"model": self.model, "objective": self.objective}
        found = [{**head, **score.as_record()} for score in self.scores.values()]
        for by, rows in self.tables.items():
            for row in rows:
                place = {"by": by, "group": row.group, "tokens": row.tokens}
                found += [{**head, **place, **score.as_record()} for score in row.scores.values()]
        return found


def compare_distributions(
    model: DistributionModel,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    top: int = 10,
    by: Sequence[By] = (),
    classes: TagClasses = PENN,
    seed: int = DEFAULT_SEED,
    truth: CachedTruth | None = None,
    signed: Mapping[str, object] | None = None,
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
) -> ModelDivergence:
    """Compare what a model expects with what the truth expects, in every context of some sentences.

    ``kl`` is the mean over contexts of the exact KL(P || Q), which is what the mean of ln P - ln Q over tokens
    (``kl_paired``) estimates too: conditional expectation of the token given its context takes its variance away
    (Rao-Blackwell). ``variance_ratio`` says how much. Every position counts, unknown words as the token ``<unk>``.

    Args:
        model: a model of whole words with full distributions; the oracle itself is one.
        pcfg: the grammar that the corpus was drawn from.
        sentences: drawn from the grammar, in its words.
        lengths: the length condition that they were drawn under.
        top: k of ``top_k_overlap``.
        by: tables to make: ``position``, ``length`` of the sentence, ``class`` of the next word, its ``frequency``.
        classes: of the table by ``class``.
        seed: of the bootstrap.
        truth: kept for such a model, with its states for the table by ``class``, about these very sentences
            (``truth.inputs``); None: computed here.
        signed: further parts of every signature.
        excluded: what the sentences leave out, where their corpus has disjoint splits. Full distributions stay those
            of the grammar, and every signature says ``disjoint:uncorrected``.
        transform: of the text, see `truesource.evaluation.core.oracle.Oracle`; for masked models.

    Raises:
        InputError: sentences are strings, an unknown ``by``, a ``truth`` about other sentences, or as
            `truesource.evaluation.divergence.contexts.measure_contexts`.
    """
    check_sentences(sentences)
    unknown = [name for name in by if name not in BY]
    if unknown or top < 1:
        raise InputError(f"tables are by {', '.join(BY)}, and top is at least 1; got {', '.join(unknown) or top}")
    if truth is not None and tuple(map(tuple, sentences)) != truth.inputs:
        raise InputError("the truth was kept about other sentences; compare on those")
    require_tokens(transform, model.objective, "a divergence from the truth")
    oracle = oracle_for(model, pcfg, lengths, transform=transform) if truth is None else truth.oracle
    blocks = None if truth is None else truth.blocks(model)
    measured = measure_contexts(model, oracle, sentences, top=top, by=by, classes=classes, blocks=blocks)
    shared = {**_signed_parts(measured, oracle, sentences, excluded, seed), **(signed or {})}
    return ModelDivergence(
        model=model.name,
        objective=model.objective,
        scores=_scores(measured, shared, top, seed),
        tables={name: _table(measured, name, classes, shared, seed) for name in by},
        reliability=measured.reliability,
        contexts=len(measured.values),
        impossible=measured.excluded,
    )


def _signed_parts(
    measured: Contexts, oracle: Oracle, sentences: Sequence[Sequence[str]], excluded: Exclusion | None, seed: int
) -> dict[str, object]:
    return {
        "objective": oracle.objective,
        "given": oracle.condition,
        **transform_parts(oracle.pcfg, oracle.transform, oracle.objective),
        **disjoint_part(excluded, corrected=False),
        **frame_parts(ScoringFrame(), oracle.objective),
        "vocab": vocabulary_part(oracle),
        "ci": ci_part(measured.n_sentences - len(measured.excluded), seed),
        "sentences": measured.n_sentences - len(measured.excluded),
        "excluded": len(measured.excluded),
        "contexts": len(measured.values),
        "data": digest_sentences(sentences),
        "grammar": oracle.pcfg.identity,
    }


def _table(
    measured: Contexts, by: By, classes: TagClasses, shared: Mapping[str, object], seed: int
) -> list[BreakdownRow]:
    if by in measured.divided:
        parts = {"classes": classes.origin} if by == "class" else {}
        return by_group(measured.divided[by], {**shared, "by": by, **parts}, seed)
    key = measured.position + 1 if by == "position" else measured.length
    return by_context(measured, key, {**shared, "by": by}, seed)


def _scores(measured: Contexts, shared: Mapping[str, object], top: int, seed: int) -> dict[str, Score]:
    """All that is measured over the whole corpus."""
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
    errors = {
        "calibration_error": (measured.reliability.error, f"lnq/{len(measured.reliability.bins)}"),
        "calibration_error_top": (measured.reliability.top_error, f"confidence/{len(measured.reliability.top)}"),
    }
    for name, (value, bins) in errors.items():
        parts = {**shared, **share, "contexts-of": "truth", "bins": bins, "outcomes": "exact"}
        scores[name] = Score(name, value, signature(parts))
    return scores
