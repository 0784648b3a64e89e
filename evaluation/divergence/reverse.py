"""Divergence of a model from the truth in contexts sampled from the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.core.comparison import vocabulary_part
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import oracle_for
from truesource.evaluation.core.signature import digest_sentences, frame_parts, signature
from truesource.evaluation.core.transformed import transform_parts
from truesource.evaluation.divergence.contexts import Contexts, measure_contexts
from truesource.evaluation.divergence.means import Column, mean_scores, variance_ratio
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_measures, resampled_ratio
from truesource.generator.language_model import DistributionModel, ScoringFrame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import too_few
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth


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
      `truesource.evaluation.divergence.means.mean_scores` for the scores then reported.
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
