"""Reverse divergence KL(Q || P) on sentences drawn from the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.core.comparison import oracle_for, vocabulary_part
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, frame_parts, signature
from truesource.evaluation.core.transformed import transform_parts
from truesource.evaluation.divergence.contexts import Contexts, measure_contexts
from truesource.evaluation.divergence.estimate import Column, mean_scores, variance_ratio
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_measures, resampled_ratio
from truesource.generator.language_model import DistributionModel, ScoringFrame
from truesource.grammar.conditioning import DEFAULT_SEED, LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import too_few


def reverse_divergence(
    model: DistributionModel,
    pcfg: PCFG,
    samples: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    seed: int = DEFAULT_SEED,
) -> dict[str, Score]:
    """Compare model and truth in the contexts that the model itself makes.

    Q is over the events that sentences consist of, made to sum to one. A sentence that the truth cannot make has an
    infinite ln Q - ln P, and KL(Q || P) with it. Such samples are counted (``samples_impossible``), and all other
    values are of the possible ones, whose number stands in their signatures:

    * ``samples_reverse_kl_paired``: mean of ln Q - ln P over tokens; only where every sample is possible.
    * ``samples_reverse_kl_of_possible``: KL(Q given that the sentence is possible || P) per token, the mean of
      ln Q - ln P less ln of the share of possible samples once a sentence; the same where every sample is possible.
    * ``samples_reverse_kl``: the mean over contexts of the exact KL(Q || P), which has the expectation of the first
      and less variance. Where the model gives any probability to what the truth forbids it is infinite: see
      `truesource.evaluation.divergence.estimate.mean_scores` for what is then reported.
    * ``samples_reverse_kl_possible``: of Q restricted in each context to what the truth allows next.
    * ``samples_impossible_mass``: what Q gives to what the truth forbids, in these contexts.

    Args:
        model: a causal model with full distributions.
        pcfg: the grammar.
        samples: drawn from the model by ancestral sampling, each ended by the model itself; one without words is one
            that the truth cannot make.
        lengths: the length condition of the truth.
        seed: of the bootstrap.

    Raises:
        InputError: the model is masked, or there are no samples.
    """
    if model.objective != "causal":
        raise InputError("a masked model has no sentences of its own, so it has no reverse divergence on samples")
    if not samples:
        raise InputError("there are no sentences of the model to compare")
    oracle = oracle_for(model, pcfg, lengths)
    shared = _signed_parts(oracle, samples, seed)
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
    kept = [sample for sample, fine in zip(samples, possible, strict=True) if fine]
    measured = measure_contexts(model, oracle, kept)
    paired = measured.model - np.log1p(-measured.column("special_mass")) - measured.truth
    nats = {"unit": "nats/token", "q": "renormalised", "possible": len(kept)}
    columns = _columns(measured, nats)
    if len(kept) == len(samples):
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


def _signed_parts(oracle: Oracle, samples: Sequence[Sequence[str]], seed: int) -> dict[str, object]:
    return {
        "objective": "causal",
        "given": oracle.condition,
        **transform_parts(oracle.pcfg, oracle.transform, "causal"),
        **frame_parts(ScoringFrame(), "causal"),
        "vocab": vocabulary_part(oracle),
        "ci": ci_part(len(samples), seed),
        "contexts-of": "model",
        "samples": len(samples),
        "data": digest_sentences(samples),
        "grammar": oracle.pcfg.identity,
    }


def _columns(measured: Contexts, nats: Mapping[str, object]) -> dict[str, Column]:
    """What `mean_scores` takes the means of."""
    exact = {**nats, "estimator": "rao-blackwell", "may": "infinite"}
    share = {"unit": "share", "possible": nats["possible"], "estimator": "rao-blackwell"}
    return {
        "samples_reverse_kl": Column(measured.column("reverse_kl"), exact),
        "samples_reverse_kl_possible": Column(measured.column("reverse_kl_possible"), {**exact, "q": "given-possible"}),
        "samples_impossible_mass": Column(measured.column("impossible_mass"), share),
    }


def _of_possible(gap: FloatArray, tokens: FloatArray, n_samples: int, parts: Mapping[str, object], seed: int) -> Score:
    """The divergence of the possible sentences, from ln Q - ln P and the tokens of each possible sample, (K,)."""
    rows = np.zeros((n_samples, 4))
    rows[:, 3] = 1.0
    rows[: len(gap), :3] = np.stack([gap, np.ones(len(gap)), tokens], axis=1)

    def per_token(sums: NDArray[Any]) -> NDArray[Any]:
        total, possible, counted, drawn = sums.T
        return np.asarray((total - possible * np.log(possible / drawn)) / counted)[:, None]

    with np.errstate(invalid="ignore", divide="ignore"):  # resamples without a possible sample have no value
        interval = resampled_measures(per_token, rows, seed=seed)[:, 0]
    value = float(per_token(rows.sum(axis=0)[None])[0, 0])
    name = "samples_reverse_kl_of_possible"
    if too_few(len(gap)):
        return Score(name, value, signature({**parts, "ci": ci_part(len(gap), seed)}))
    return Score(name, value, signature(parts), *ends(*interval))
