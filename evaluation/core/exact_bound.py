"""Bounds of the perplexity of models, from exact scores of sentences under a grammar."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from truesource.evaluation.core.exclusion import Exclusion, disjoint_part
from truesource.evaluation.core.oracle import condition_part
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.sentence_records import GIVEN_LENGTH, SentenceRecord
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.core.transformed import of_sentences, require_whole, transform_parts
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratio
from truesource.evaluation.measures.paired import unknown_words, words_missing
from truesource.generator.language_model import ScoringFrame, assemble_scores, preset_frame
from truesource.generator.objectives import Objective
from truesource.generator.plan import Transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.exact import Variant
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth


def bound_records(
    truth: Truth,
    records: Sequence[SentenceRecord],
    *,
    lengths: LengthRange | None,
    seed: int = DEFAULT_SEED,
    excluded: Exclusion | None = None,
    frame: str = "default",
    vocabulary: Collection[str] | None = None,
    variant: Variant = "default",
    left_out: Mapping[str, object] | None = None,
    transform: Transform | None = None,
    sampled: bool = True,
) -> list[Score]:
    """Return ``causal_bound`` (perplexity), ``masked_bound`` (pseudo-perplexity) and ``any_order_bound`` (perplexity).

    They are over the possible sentences; the others are counted in the signature. If the text was not sampled from the
    grammar, they are not bounds, and are called ``causal_perplexity`` and so on.

    Args:
        truth: the grammar or process.
        records: of `sentence_records`.
        lengths: the length condition of the causal scores.
        seed: of the bootstrap.
        excluded: as `sentence_records` had it.
        frame: name of the frame, see `truesource.generator.language_model.preset_frame`; the default one counts all
            words, and the end.
        vocabulary: words outside it are unknown; None: no word is.
        variant: as `sentence_records` had it.
        left_out: entries of the signature on the excluded sentences, their number, and the reading of words.
        transform: as `sentence_records` had it.
        sampled: the text was sampled from the grammar.

    Raises:
        InputError: the grammar can make none of the sentences, no position counts, or the frame excludes positions
            where only sentences have a truth.
    """
    possible = [record for record in records if record["possible"]]
    if not possible:
        unknown = unknown_words(truth, (record["tokens"] for record in records))
        why = f"; {words_missing(unknown)}" if unknown else ""
        raise InputError(f"the grammar can make none of the {len(records)} sentences, so there is no bound{why}")
    tail = {"data": digest_sentences([r["tokens"] for r in records]), "grammar": truth.identity}
    rows: dict[Objective, list[FloatArray]] = {}
    if "logprob" in possible[0]:
        require_whole(transform, "causal", preset_frame(frame, "causal"))
        rows["causal"] = [_causal_row(record, transform) for record in possible]
    for given_length, name in GIVEN_LENGTH.items():
        if name in possible[0]:
            rows[given_length] = [np.array(r[name]) for r in possible]
    bounds = [
        bound_of_rows(
            of_kind,
            [record["tokens"] for record in possible],
            objective,
            frame=preset_frame(frame, objective),
            vocabulary=vocabulary,
            seed=seed,
            condition=condition_part(objective, lengths),
            impossible=len(records) - len(possible),
            excluded=excluded,
            parts={
                **transform_parts(truth, transform, objective),
                **(left_out or {}),
                **({"variant": variant} if objective == "masked" and variant != "default" else {}),
                **tail,
            },
        )
        for objective, of_kind in rows.items()
    ]
    return bounds if sampled else [unbounded(bound) for bound in bounds]


def unbounded(bound: Score) -> Score:
    """Return the same perplexity, of text that was not sampled from the grammar, under a name that claims no bound."""
    return replace(bound, name=bound.name.replace("bound", "perplexity"))


def _causal_row(record: SentenceRecord, transform: Transform | None) -> FloatArray:
    """Return ln P of the words of a sentence and of its end, (n+1,) nats; in equal parts if only their sum is known."""
    if of_sentences(transform, "causal"):
        size = len(record["tokens"]) + 1
        return np.full(size, record["logprob"]) / size
    return -np.array([*record["surprisal"], record["stop_surprisal"]])


def bound_of_rows(
    rows: Sequence[FloatArray],
    sentences: Sequence[Sequence[str]],
    objective: Objective,
    *,
    frame: ScoringFrame,
    vocabulary: Collection[str] | None,
    seed: int,
    condition: str,
    impossible: int = 0,
    excluded: Exclusion | None = None,
    corrected: bool = True,
    parts: Mapping[str, object],
) -> Score:
    """Return the perplexity of scored sentences over the positions of a frame, with its interval and signature.

    Args:
        rows: for each sentence of n words, ln P of each, nats, (n,), or (n+1,) with the end.
        sentences: their words.
        objective: of the scores; names the measure.
        frame: which positions count.
        vocabulary: words outside it are unknown; None: no word is.
        seed: of the bootstrap.
        condition: what the scores are conditioned on, for the signature.
        impossible: sentences that are not among ``rows``, for the signature.
        excluded: what the text excludes, for the signature.
        corrected: the scores exclude it, too.
        parts: further parts of the signature.

    Raises:
        InputError: no position counts.
    """
    words_known = None if vocabulary is None else frozenset(vocabulary)
    unknown = [
        np.array([words_known is not None and word not in words_known for word in s], dtype=bool) for s in sentences
    ]
    scores = assemble_scores(rows, unknown, frame)
    if not len(scores.log_prob):
        raise InputError(f"no position of the {len(sentences)} sentences counts in this frame, so there is no bound")
    _, row = np.unique(scores.sentence, return_inverse=True)
    total = np.bincount(row, -scores.log_prob).astype(np.float64)
    count = np.bincount(row).astype(np.float64)
    interval = np.exp(np.maximum(resampled_ratio(total, count, seed=seed), 0.0))
    with_end = frame.eos and any(len(row) > len(words) for row, words in zip(rows, sentences, strict=True))
    published = {"first": "in" if frame.first else "out", "unk": frame.unk} if frame != ScoringFrame() else {}
    if words_known is not None:
        published["vocab"] = f"{len(words_known)}/{digest_sentences([sorted(words_known)])}"
    listed = {
        "given": condition,
        **disjoint_part(excluded, corrected=corrected),
        "eos": "in" if with_end else "out",
        **published,
        "unit": "perplexity",
        "ci": ci_part(len(count), seed),
        "sentences": len(sentences),
        "impossible": impossible,
        "tokens": int(count.sum()),
        **parts,
    }
    value = float(np.exp(total.sum() / count.sum()))
    return Score(f"{objective.replace('-', '_')}_bound", value, signature(listed), *ends(*interval))
