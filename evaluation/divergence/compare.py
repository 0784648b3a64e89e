"""Comparison of a model with the exact truth by full distributions: divergences, tables and signatures.

`compare_distributions` uses the contexts of input sentences, `reverse_divergence` contexts sampled from the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from truesource.evaluation.core.comparison import vocabulary_part
from truesource.evaluation.core.exclusion import disjoint_part
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.setting import Setting, oracle_for
from truesource.evaluation.core.signature import dependence_part, digest_sentences, frame_parts, signature
from truesource.evaluation.core.transformed import require_tokens, transform_parts
from truesource.evaluation.core.vocabulary import compared_part
from truesource.evaluation.divergence import BY, OF_EVENTS, By
from truesource.evaluation.divergence.blocks import PENN, TagClasses
from truesource.evaluation.divergence.contexts import CachedTruth, Contexts, Reliability, measure_contexts
from truesource.evaluation.divergence.groups import (
    NEAR,
    WORDS,
    ContextGroups,
    by_ambiguity,
    by_distance,
    divided_by_phrase,
    require_groups,
)
from truesource.evaluation.divergence.of_words import in_words
from truesource.evaluation.divergence.tables import BreakdownRow, by_context, by_group, few
from truesource.evaluation.measures.bootstrap import (
    ci_part,
    ends,
    proportion,
    resampled_measures,
    resampled_ratio,
    resampled_ratios,
)
from truesource.generator.language_model import DistributionModel, LanguageModel, ScoringFrame, check_sentences
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pieces.truth import TokenisedTruth
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords, too_few
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth

_PLAIN = ("js", "tv", "entropy_truth", "entropy_model", "agreement", "special_mass", "impossible_mass")


@dataclass(frozen=True, eq=False)
class Column:
    """One measure of the T contexts, with parts of its signature."""

    values: FloatArray  #: (T,) may hold inf, or NaN where undefined, not both
    parts: Mapping[str, object]  #: parts of the signature in addition to the common ones


def mean_scores(
    columns: Mapping[str, Column], sentence: IntArray, shared: Mapping[str, object], seed: int
) -> dict[str, Score]:
    """Compute the mean over contexts of each measure, with its interval.

    A measure that is infinite in some contexts has no mean. Then ``<name>_where_finite`` is the mean over the others,
    whose number is in its signature, if there are any; ``<name>_infinite`` is the share of infinite contexts, and
    is 0 for a measure that could have been infinite. Contexts with an undefined measure (NaN) do not count;
    the signature has the number of the others.

    Args:
        columns: the measures.
        sentence: (T,) sentence of each context, ascending.
        shared: parts of every signature.
        seed: seed of the bootstrap.
    """
    starts = np.flatnonzero(np.diff(sentence, prepend=-1))
    names: list[str] = []
    totals: list[FloatArray] = []
    counts: list[FloatArray] = []
    signed: list[Mapping[str, object]] = []

    def add(name: str, values: FloatArray, counted: FloatArray, parts: Mapping[str, object]) -> None:
        names.append(name)
        totals.append(np.add.reduceat(values, starts))
        counts.append(np.add.reduceat(counted, starts))
        signed.append(parts)

    for name, column in columns.items():
        undefined = np.isnan(column.values)
        if undefined.all():
            continue
        if undefined.any():
            parts = {**column.parts, "contexts": f"{int((~undefined).sum())}/{len(undefined)}"}
            add(name, np.where(undefined, 0.0, column.values), (~undefined).astype(np.float64), parts)
            continue
        finite = np.isfinite(column.values)
        finite_values = np.where(finite, column.values, 0.0)
        if finite.all():
            add(name, finite_values, np.ones(len(finite_values)), column.parts)
        elif finite.any():
            parts = {**column.parts, "contexts": f"{int(finite.sum())}/{len(finite)}"}
            add(f"{name}_where_finite", finite_values, finite.astype(np.float64), parts)
        if column.parts.get("may") == "infinite":
            add(f"{name}_infinite", (~finite).astype(np.float64), np.ones(len(finite_values)), {"unit": "share"})
    total, count = np.stack(totals, axis=1), np.stack(counts, axis=1)
    intervals = resampled_ratios(total, count, seed=seed)
    intervals = np.clip(intervals, *np.array([bounds(column_parts) for column_parts in signed]).T)
    value = total.sum(axis=0) / count.sum(axis=0)
    return {
        name: Score(
            name,
            float(value[i]),
            signature({**shared, **{key: part for key, part in signed[i].items() if key != "may"}, **few(count[:, i])}),
            *ends(*intervals[:, i]),
        )
        for i, name in enumerate(names)
    }


def rows_kl(log_p: FloatArray, log_q: FloatArray) -> FloatArray:
    """Compute KL(P || Q) of each row of two tables (T, E) of logarithms, (T,) nats; inf if Q lacks an event of P."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(log_p > -np.inf, np.exp(log_p) * (log_p - log_q), 0.0).sum(axis=1))


def share_of(name: str, there: BoolArray, parts: Mapping[str, object]) -> Score:
    """Compute the share of True in independent samples, with the interval of Wilson (1927)."""
    share = proportion(there.astype(np.float64), np.ones(len(there)))
    assert share is not None
    how = {"unit": "share", "samples": len(there), "ci": ci_part(len(there), 0, method="wilson")}
    return Score(name, share.value, signature({**parts, **how}), share.low, share.high)


def bounds(parts: Mapping[str, object]) -> tuple[float, float]:
    """Return the range of a measure: of shares, and of divergences and entropies in every context."""
    low = -math.inf if parts.get("estimator") == "paired" or parts.get("may") == "negative" else 0.0
    return low, 1.0 if parts.get("unit") == "share" else math.inf


def variance_ratio(plain: FloatArray, exact: FloatArray, counts: FloatArray) -> float | None:
    """Compute the variance ratio of the means of two estimators, from totals (N,) and contexts (N,) per sentence.

    It uses the linearised variance of a ratio. None if the second does not vary.
    """
    spread = [
        float(np.square(total - total.sum() / counts.sum() * counts).sum() / counts.sum() ** 2)
        for total in (plain, exact)
    ]
    return spread[0] / spread[1] if spread[1] > 1e-24 else None


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
) -> ModelDivergence:
    """Compare the distributions of a model and of the truth in every context of sentences.

    ``kl`` is the mean over contexts of the exact KL(P || Q), which is what the mean of ln P - ln Q over tokens
    (``kl_paired``) estimates too: conditional expectation of the token given its context takes its variance away
    (Rao-Blackwell). ``variance_ratio`` says by how much. Every position counts, unknown words as the token ``<unk>``.

    A causal model of pieces is compared in words: the divergences of the pieces of a word are added up, and measures
    that do not add up, such as ``js``, are missing. The same model in its own tokens
    (`truesource.evaluation.core.setting.Setting.with_distributions`) has them all, per piece, and ``kl_per_word``.

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

    Raises:
        InputError: sentences are strings, an unknown ``by``, a ``truth`` about other sentences, a table needs the rules
            of a grammar and the truth is a process (``missing-ability``), or see
            `truesource.evaluation.divergence.contexts.measure_contexts`.
        NothingToMeasureError: by ``distance`` of a masked model (``masked``).
    """
    check_sentences(setting.sentences)
    tokens, cut = setting.with_distributions(model)
    text = setting.words or setting  # in words
    _require_tables(by, top, text, model, of_words=cut is not setting)
    if truth is not None and tuple(map(tuple, cut.sentences)) != truth.inputs:
        raise InputError("the truth was cached for other sentences; compare on the same sentences")
    require_tokens(setting.transform, model.objective, "a divergence from the truth")
    oracle = of_words = cut.full_oracle(tokens) if truth is None else truth.oracle
    blocks = None if truth is None else truth.blocks(tokens)
    measured = words = measure_contexts(tokens, oracle, cut.sentences, top=top, by=by, classes=classes, blocks=blocks)
    parts: dict[str, object] = {}
    if isinstance(oracle.truth, TokenisedTruth):
        parts = {"pieces": oracle.truth.segmentation.digest[:8]}
        words = in_words(measured, oracle.truth, cut.sentences)
        of_words = Oracle(text.known, model.objective, lengths=text.lengths)
    divided = dict(measured.divided)
    if "phrase" in by:
        divided["phrase"] = divided_by_phrase(words, of_words, text.sentences)
    groups: dict[By, ContextGroups] = {}
    if "ambiguity" in by:
        groups["ambiguity"] = by_ambiguity(words, of_words, text.sentences)
    if "distance" in by:
        groups["distance"] = by_distance(words, of_words, text.sentences)
    if cut is not setting:  # the model is compared in words
        oracle, measured = of_words, replace(words, reliability=Reliability())
    shared = {
        **signed_parts(oracle, setting, contexts=len(measured.values), excluded=len(measured.excluded)),
        **parts,
        **compared_part(model),
        **dependence_part(model),
        **(signed or {}),
    }
    scores = _scores(measured, shared, top, setting.seed)
    if words is not measured:
        scores |= _scores_of_words(words, shared, setting.seed)
    return ModelDivergence(
        model=model.name,
        objective=model.objective,
        scores=scores,
        tables={
            name: by_group(divided[name], {**shared, "by": name, **_classes(name, classes)}, setting.seed)
            if name in divided
            else _table(words if name in groups else measured, name, groups.get(name), shared, setting.seed)
            for name in by
        },
        reliability=measured.reliability,
        contexts=len(measured.values),
        impossible=measured.excluded,
    )


def _require_tables(by: Sequence[By], top: int, text: Setting, model: LanguageModel, *, of_words: bool) -> None:
    """Refuse tables that there are not; ``of_words``: a model of pieces is compared in words."""
    unknown = [name for name in by if name not in BY]
    if unknown or top < 1:
        raise InputError(f"tables are by {', '.join(BY)}, and top must be at least 1; got {', '.join(unknown) or top}")
    require_groups(by, text, model)
    divided = [name for name in by if name in OF_EVENTS]
    if of_words and divided:
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


def _classes(by: By, classes: TagClasses) -> dict[str, object]:
    return {"classes": classes.origin} if by == "class" else {}


def _table(
    measured: Contexts, by: By, groups: ContextGroups | None, shared: Mapping[str, object], seed: int
) -> list[BreakdownRow]:
    if groups is not None:
        seen = {"seen": f"0..{WORDS}", "below": NEAR} if by == "distance" else {}
        return by_context(measured, groups.group, {**shared, "by": by, **seen}, seed, groups.names)
    key = measured.position + 1 if by == "position" else measured.length
    return by_context(measured, key, {**shared, "by": by}, seed)


def _scores_of_words(words: Contexts, shared: Mapping[str, object], seed: int) -> dict[str, Score]:
    """Compute the divergence of a model of pieces per word."""
    how = {"unit": "nats/word", "contexts-of": "truth", "estimator": "rao-blackwell", "may": "infinite"}
    parts = {**shared, "contexts": len(words.values)}
    return mean_scores({"kl_per_word": Column(words.column("kl"), how)}, words.sentence, parts, seed)


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


def reverse_divergence(
    model: DistributionModel,
    truth: Truth,
    samples: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    seed: int = DEFAULT_SEED,
) -> dict[str, Score]:
    """Compare model and truth in contexts sampled from the model.

    Q is over the events of sentences, normalised to sum to one. A sentence of true probability 0 has an
    infinite ln Q - ln P, and KL(Q || P) with it. Such samples are counted (``samples_impossible``), and all other
    values are of the possible ones, whose number is in their signatures:

    * ``samples_reverse_kl_paired``: mean of ln Q - ln P over tokens; only if every sample is possible.
    * ``samples_reverse_kl_of_possible``: KL(Q given that the sentence is possible || P) per token, the mean of
      ln Q - ln P less ln of the share of possible samples once a sentence; the same if every sample is possible.
    * ``samples_reverse_kl``: the mean over contexts of the exact KL(Q || P), which has the expectation of the first
      and less variance. If the model gives probability to impossible events, it is infinite: see
      `truesource.evaluation.divergence.compare.mean_scores` for the scores then reported.
    * ``samples_reverse_kl_possible``: the same with Q restricted in each context to possible events.
    * ``samples_impossible_mass``: Q of impossible events, in these contexts.

    Args:
        model: a causal model with full distributions.
        truth: the grammar or process.
        samples: ancestral samples from the model, each ended by the model itself; an empty sentence counts as
            impossible.
        lengths: the length condition of the truth.
        seed: seed of the bootstrap.

    Raises:
        InputError: the model is masked, or there are no samples.
    """
    if model.objective != "causal":
        raise InputError("a masked model cannot sample sentences, so it has no reverse divergence; use a causal model")
    if not samples:
        raise InputError("there are no sentences of the model to compare; add samples")
    oracle = oracle_for(model, truth, lengths)
    shared = _parts_of_samples(oracle, samples, seed)
    possible = np.array([len(sample) > 0 for sample in samples])
    words = [oracle.read(sample) for sample in samples if len(sample) > 0]
    if words:
        possible[possible] = np.isfinite(oracle.language.exact.string_log_probs(words, lengths))
    bad = (~possible).astype(np.float64)
    interval = np.clip(resampled_ratio(bad, np.ones(len(bad)), seed=seed), 0.0, 1.0)
    parts = {**shared, "unit": "share of sentences"}
    scores = {"samples_impossible": Score("samples_impossible", float(bad.mean()), signature(parts), *ends(*interval))}
    if not possible.any():
        return scores
    possible_samples = [sample for sample, fine in zip(samples, possible, strict=True) if fine]
    measured = measure_contexts(model, oracle, possible_samples)
    paired = measured.model - np.log1p(-measured.column("special_mass")) - measured.truth
    nats = {"unit": "nats/token", "q": "renormalised", "possible": len(possible_samples)}
    columns = _columns_of_samples(measured, nats)
    if len(possible_samples) == len(samples):
        columns["samples_reverse_kl_paired"] = Column(paired, {**nats, "estimator": "paired"})
    scores |= mean_scores(columns, measured.sentence, shared, seed)
    parts = {**shared, **nats, "q": "given-possible-sentence", "estimator": "paired"}
    scores["samples_reverse_kl_of_possible"] = _of_possible(
        measured.per_sentence(paired), measured.per_sentence(np.ones(len(paired))), len(samples), parts, seed
    )
    if "samples_reverse_kl" in scores and "samples_reverse_kl_paired" in scores:
        counts = measured.per_sentence(np.ones(len(paired)))
        ratio = variance_ratio(
            measured.per_sentence(paired), measured.per_sentence(measured.column("reverse_kl")), counts
        )
        if ratio is not None:
            parts = {**shared, "ratio": "samples_reverse_kl_paired/samples_reverse_kl", "unit": "ratio"}
            scores["samples_variance_ratio"] = Score("samples_variance_ratio", ratio, signature(parts))
    return scores


def _parts_of_samples(oracle: Oracle, samples: Sequence[Sequence[str]], seed: int) -> dict[str, object]:
    return {
        "objective": "causal",
        "given": oracle.condition,
        **transform_parts(oracle.truth, oracle.transform, "causal"),
        **frame_parts(ScoringFrame(), "causal"),
        "vocab": vocabulary_part(oracle),
        "ci": ci_part(len(samples), seed),
        "contexts-of": "model",
        "samples": len(samples),
        "data": digest_sentences(samples),
        "grammar": oracle.truth.identity,
    }


def _columns_of_samples(measured: Contexts, nats: Mapping[str, object]) -> dict[str, Column]:
    """Return the columns whose means `mean_scores` computes."""
    exact = {**nats, "estimator": "rao-blackwell", "may": "infinite"}
    share = {"unit": "share", "possible": nats["possible"], "estimator": "rao-blackwell"}
    return {
        "samples_reverse_kl": Column(measured.column("reverse_kl"), exact),
        "samples_reverse_kl_possible": Column(measured.column("reverse_kl_possible"), {**exact, "q": "given-possible"}),
        "samples_impossible_mass": Column(measured.column("impossible_mass"), share),
    }


def _of_possible(gap: FloatArray, tokens: FloatArray, n_samples: int, parts: Mapping[str, object], seed: int) -> Score:
    """Compute the divergence of possible sentences from ln Q - ln P and tokens of each possible sample, (K,)."""
    rows = np.zeros((n_samples, 4))
    rows[:, 3] = 1.0
    rows[: len(gap), :3] = np.stack([gap, np.ones(len(gap)), tokens], axis=1)

    def per_token(sums: NDArray[Any]) -> NDArray[Any]:
        total, possible, counted, n_sampled = sums.T
        return np.asarray((total - possible * np.log(possible / n_sampled)) / counted)[:, None]

    with np.errstate(invalid="ignore", divide="ignore"):  # resamples without a possible sample have no value
        interval = resampled_measures(per_token, rows, seed=seed)[:, 0]
    value = float(per_token(rows.sum(axis=0)[None])[0, 0])
    name = "samples_reverse_kl_of_possible"
    if too_few(len(gap)):
        return Score(name, value, signature({**parts, "ci": ci_part(len(gap), seed)}))
    return Score(name, value, signature(parts), *ends(*interval))
