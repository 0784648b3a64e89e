"""Exact scores of sentences under a grammar, or scores that others published, and the bounds they add up to.

Published scores have two formats, those of the released oracle values of Jumelet & Zuidema (2023): causal scores are
JSON, an object with the surprisals (nats) of the words of each sentence; masked scores are text, each sentence followed
by two lines per word, ``Token: 3`` and the probability of that word given all others. Both may be packed with gzip.
Neither has a value for the end of a sentence. Their causal file and their vocabulary write ``<apostrophe>`` where the
masked file has ``'``; both are read as ``'``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from truesource.evaluation.core.exclusion import Exclusion, disjoint_part
from truesource.evaluation.core.oracle import condition_part
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.sentence_records import GIVEN_LENGTH
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.core.transformed import of_sentences, require_whole, transform_parts
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratio
from truesource.evaluation.measures.paired import unknown_words, words_missing
from truesource.generator.language_model import ScoringFrame, assemble_scores, preset_frame
from truesource.generator.objectives import Objective
from truesource.generator.plan import Transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.exact import Variant
from truesource.grammar.sentences import split_words
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_bytes
from truesource.grammar.support.records import decode_record
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth

REMEDY = "expecting the token scores of Jumelet & Zuidema (2023): JSON of surprisals, or text of masked probabilities"
LIMIT = 2**30  #: bytes of a file, unpacked


def bound_records(
    truth: Truth,
    records: Sequence[dict[str, Any]],
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
    """``causal_bound`` (perplexity), ``masked_bound`` (pseudo-perplexity) and ``any_order_bound`` (perplexity).

    Over the possible sentences; the others are counted in the signature. Of text that was not sampled from the grammar,
    they bound nothing and are called ``causal_perplexity`` and so on.

    Args:
        truth: the grammar or process.
        records: of `sentence_records`.
        lengths: the length condition of the causal scores.
        seed: of the bootstrap.
        excluded: as `sentence_records` had it.
        frame: name of the frame, see `truesource.generator.language_model.preset_frame`; the default one counts all
            words, and the end.
        vocabulary: words outside it are unknown; None: none is.
        variant: as `sentence_records` had it.
        left_out: entries of the signature that say which sentences were not scored, and how many, and how words were
            read.
        transform: as `sentence_records` had it.
        sampled: the text was sampled from the grammar.

    Raises:
        InputError: the grammar can make none of the sentences, no position counts, or the frame leaves out positions
            where only sentences have a truth.
    """
    kept = [record for record in records if record["possible"]]
    if not kept:
        unknown = unknown_words(truth, (record["tokens"] for record in records))
        why = f"; {words_missing(unknown)}" if unknown else ""
        raise InputError(f"the grammar can make none of the {len(records)} sentences, so there is no bound{why}")
    tail = {"data": digest_sentences([r["tokens"] for r in records]), "grammar": truth.identity}
    rows: dict[Objective, list[FloatArray]] = {}
    if "logprob" in kept[0]:
        require_whole(transform, "causal", preset_frame(frame, "causal"))
        rows["causal"] = [_causal_row(record, transform) for record in kept]
    for given_length, name in GIVEN_LENGTH.items():
        if name in kept[0]:
            rows[given_length] = [np.array(r[name]) for r in kept]
    bounds = [
        bound_of_rows(
            of_kind,
            [record["tokens"] for record in kept],
            objective,
            frame=preset_frame(frame, objective),
            vocabulary=vocabulary,
            seed=seed,
            condition=condition_part(objective, lengths),
            impossible=len(records) - len(kept),
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
    """The same perplexity, of text that was not sampled from the grammar, under a name that claims no bound."""
    return replace(bound, name=bound.name.replace("bound", "perplexity"))


def _causal_row(record: Mapping[str, Any], transform: Transform | None) -> FloatArray:
    """Ln P of the words of a sentence and of its end, (n+1,) nats; in equal parts where only their sum is known."""
    if of_sentences(transform, "causal"):
        size = len(record["tokens"]) + 1
        return np.full(size, record["logprob"] / size)
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
    """The perplexity of scored sentences over the positions of a frame, with its interval and signature.

    Args:
        rows: for each sentence of n words, ln P of each, nats, (n,), or (n+1,) with the end.
        sentences: their words.
        objective: of the scores; names the measure.
        frame: which positions count.
        vocabulary: words outside it are unknown; None: none is.
        seed: of the bootstrap.
        condition: what the scores are conditioned on, for the signature.
        impossible: sentences that are not among ``rows``, for the signature.
        excluded: what the text leaves out, for the signature.
        corrected: the scores leave it out, too.
        parts: further parts of the signature.

    Raises:
        InputError: no position counts.
    """
    known = None if vocabulary is None else frozenset(vocabulary)
    unknown = [np.array([known is not None and word not in known for word in s], dtype=bool) for s in sentences]
    scores = assemble_scores(rows, unknown, frame)
    if not len(scores.log_prob):
        raise InputError(f"no position of the {len(sentences)} sentences counts in this frame, so there is no bound")
    _, row = np.unique(scores.sentence, return_inverse=True)
    total = np.bincount(row, -scores.log_prob).astype(np.float64)
    count = np.bincount(row).astype(np.float64)
    interval = np.exp(np.maximum(resampled_ratio(total, count, seed=seed), 0.0))
    with_end = frame.eos and any(len(row) > len(words) for row, words in zip(rows, sentences, strict=True))
    published = {"first": "in" if frame.first else "out", "unk": frame.unk} if frame != ScoringFrame() else {}
    if known is not None:
        published["vocab"] = f"{len(known)}/{digest_sentences([sorted(known)])}"
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


@dataclass(frozen=True)
class PublishedScores:
    """Scores of the words of some sentences, without the ends."""

    objective: Objective
    sentences: Sequence[Sequence[str]]
    rows: Sequence[FloatArray]  #: (n,) ln P of the words of each sentence, nats


def read_published(path: str | Path) -> PublishedScores:
    """Read a file of token scores; its content says which of the two formats it has.

    Raises:
        InputError: the file cannot be read, is in neither format, a sentence has more or fewer scores than words, or
            a score is no probability.
    """
    content = read_bytes(path, limit=LIMIT, line_limit=None)
    if content.lstrip()[:1] == b"{":
        table = decode_record(content, dict[str, list[float]], what="this file", remedy=REMEDY, path=path)
        scored = [(split_words(sentence), np.array([-value for value in row])) for sentence, row in table.items()]
        objective: Objective = "causal"
    else:
        scored, objective = list(_masked(content, Path(path))), "masked"
    if not scored:
        raise InputError(f"holds no sentence; {REMEDY}", path)
    for number, (sentence, row) in enumerate(scored, start=1):
        if len(sentence) != len(row):
            raise InputError(f"sentence {number} has {len(sentence)} words and {len(row)} scores; {REMEDY}", path)
        if not (row <= 0.0).all():
            raise InputError(f"sentence {number} has a word with a probability above 1; {REMEDY}", path)
    sentences = [[_respelled(word) for word in words] for words, _ in scored]
    return PublishedScores(objective, sentences, [row for _, row in scored])


def _respelled(word: str) -> str:
    return word.replace("<apostrophe>", "'")


def _masked(content: bytes, path: Path) -> Iterator[tuple[list[str], FloatArray]]:
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text; {REMEDY}", path) from error
    at = 0
    while at < len(lines):
        words = split_words(lines[at])
        values = []
        for position in range(len(words)):
            line = at + 1 + 2 * position
            head, value = (lines[k] if k < len(lines) else "" for k in (line, line + 1))
            if head.strip() != f"Token: {position}":
                raise InputError(f"expecting 'Token: {position}', got {head[:40]!r}; {REMEDY}", path, line + 1)
            values.append(_log(value, path, line + 2))
        yield words, np.array(values)
        at += 1 + 2 * len(words)


def _log(value: str, path: Path, line: int) -> float:
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not 0.0 < number <= 1.0 + 1e-9:
        raise InputError(f"expecting a probability above 0, got {value[:40]!r}; {REMEDY}", path, line)
    return min(float(np.log(number)), 0.0)


def read_words(path: str | Path) -> frozenset[str]:
    """Words of a vocabulary: the keys of a JSON object, a JSON list, or one word a line; ``.gz`` is unpacked.

    Raises:
        InputError: the file cannot be read or holds no word.
    """
    content = read_bytes(path, limit=LIMIT, line_limit=None)
    if content.lstrip()[:1] in (b"{", b"["):
        remedy = "expecting a JSON object whose keys are words, a JSON list of words, or a word a line"
        model: Any = dict[str, Any] | list[str]
        words = frozenset(decode_record(content, model, what="this vocabulary", remedy=remedy, path=path))
    else:
        try:
            words = frozenset(content.decode("utf-8-sig").split())
        except UnicodeDecodeError as error:
            raise InputError("this vocabulary is not UTF-8 text", path) from error
    if not words:
        raise InputError("this vocabulary holds no word", path)
    return words


def published_bound(
    scores: PublishedScores, *, frame: ScoringFrame, vocabulary: Collection[str] | None, seed: int = DEFAULT_SEED
) -> Score:
    """``causal_bound`` or ``masked_bound`` of published scores: their perplexity over the positions of a frame.

    Args:
        scores: of the words of each sentence.
        frame: which positions count; there are no ends.
        vocabulary: all other words are unknown, whichever way it writes the apostrophe; None: no word is.
        seed: of the bootstrap.

    Raises:
        InputError: no position counts.
    """
    return bound_of_rows(
        scores.rows,
        scores.sentences,
        scores.objective,
        frame=frame,
        vocabulary=None if vocabulary is None else frozenset(map(_respelled, vocabulary)),
        seed=seed,
        condition="published",
        parts={"data": digest_sentences(scores.sentences), "grammar": "unknown"},
    )
