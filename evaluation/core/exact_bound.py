"""Exact scores of sentences under a grammar, or scores that others published, and the bounds they add up to.

Published scores have two formats, those of the released oracle values of Jumelet & Zuidema (2023): causal scores are
JSON, an object with the surprisals (nats) of the words of each sentence; masked scores are text, each sentence followed
by two lines per word, ``Token: 3`` and the probability of that word given all others. Both may be packed with gzip.
Neither has a value for the end of a sentence. Their causal file and their vocabulary write ``<apostrophe>`` where the
masked file has ``'``; both are read as ``'``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from truesource.evaluation.core.any_order import PatternCharts
from truesource.evaluation.core.exclusion import Exclusion, disjoint_part
from truesource.evaluation.core.oracle import Oracle, condition_part
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.core.transformed import of_sentences, require_tokens, require_whole, transform_parts
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratio
from truesource.evaluation.measures.paired import unknown_words, words_missing
from truesource.generator.abilities import require
from truesource.generator.language_model import END, ScoringFrame, assemble_scores, check_sentences, preset_frame
from truesource.generator.objectives import Objective
from truesource.generator.plan import Transform, order
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.diagnostics import require_endings
from truesource.grammar.inference.batch import Distributions
from truesource.grammar.inference.distributions import next_token_distributions
from truesource.grammar.inference.exact import Variant
from truesource.grammar.pcfg import PCFG
from truesource.grammar.sentences import split_words
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_bytes
from truesource.grammar.support.records import decode_record
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth

MOST_PROBABILITIES = 5_000_000  #: of full distributions in records, which are for small inputs
#: name in records of the scores of each token, by objective, where the number of words is given
GIVEN_LENGTH: dict[Objective, str] = {"masked": "masked_logprob", "any-order": "any_order_logprob"}
REMEDY = "expecting the token scores of Jumelet & Zuidema (2023): JSON of surprisals, or text of masked probabilities"
LIMIT = 2**30  #: bytes of a file, unpacked


class DeviceCharts(PatternCharts, Protocol):
    """Exact scores of a grammar that are computed on a device, see `truesource.lmtrain.accelerated`."""

    def causal_log_probs(self, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Ln P(token | its left context) of each sentence, (n+1,) nats with the end, without a length condition."""

    def masked_log_probs(self, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Ln P(word | all other words) of each sentence, (n,) nats."""


def sentence_records(
    truth: Truth,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    causal: bool = True,
    masked: bool = True,
    any_order: bool = False,
    distributions: bool = False,
    dtype: DTypeLike = np.float64,
    excluded: Exclusion | None = None,
    variant: Variant = "default",
    transform: Transform | None = None,
    charts: Callable[[PCFG], DeviceCharts] | None = None,
) -> list[dict[str, Any]]:
    """One record a sentence: ``tokens``, ``possible`` and, in nats, what was asked for.

    ``logprob`` (negative), ``surprisal`` per token (positive) and ``stop_surprisal`` for causal scores,
    ``masked_logprob`` per token for masked ones, and ``any_order_logprob`` for those in random orders. An infinite
    value is written as None. With ``distributions``, ``next`` has for each position, the end included, P(word | left
    context) of every word in ``words`` and P(end | left context) in ``stop``; None where the context is impossible.
    Where ``excluded`` says exactly what the sentences leave out, the scores are those of P(. | not among it).
    ``variant="paper"`` makes masked scores as Jumelet & Zuidema (2023) print them, see
    `truesource.grammar.inference.exact.Exact.masked_log_probs`. With the ``transform`` of the text, causal scores are
    ``logprob`` alone, see `truesource.evaluation.core.oracle.Oracle`. With ``charts``, which makes the charts
    of a grammar on a device, masked scores, those in any order and causal ones without ``lengths`` in float64 come from
    these; no number differs by more than rounding.

    Raises:
        InputError: a sentence is a string or has no tokens, causal scores are asked for without ``lengths`` of a
            grammar whose derivations may not end, or there are more than 5 million probabilities, or sentences are
            excluded and distributions or the published variant are asked for, or distributions of transformed text;
            the published variant is asked for with charts on a device.
    """
    check_sentences(sentences)
    if charts is not None and variant != "default":
        raise InputError("masked scores as published are computed on the CPU; leave out the device")
    found = None if charts is None else charts(require(truth, "masked", "charts on a device"))
    corrected = excluded if excluded is not None and excluded.exact else None
    if corrected is not None:
        _check_excluding(distributions, variant)
    if distributions:
        require_tokens(transform, "causal", "a distribution over the next word")
    records: list[dict[str, Any]] = [{"tokens": list(s), "possible": True} for s in sentences]
    text = sentences
    if transform is not None:
        sentences = [transform.undo(sentence) for sentence in sentences]
    if causal:
        if lengths is None:
            require_endings(truth)
        there = found if lengths is None and np.dtype(dtype) == np.float64 else None
        exact = truth.exact
        rows = there.causal_log_probs(sentences) if there else exact.causal_log_probs(sentences, lengths, dtype=dtype)
        if corrected is not None:
            rows = corrected.causal(rows, sentences, tuple)
        for record, row in zip(records, rows, strict=True):
            record["possible"] = bool(np.isfinite(row).all())
            record["logprob"] = _finite(float(row.sum()))
            if transform is None:
                record["surprisal"] = [_surprisal(x) for x in row[:-1].tolist()]
                record["stop_surprisal"] = _surprisal(float(row[-1]))
    if masked:
        pcfg = require(truth, "masked", "a masked bound")
        here = partial(pcfg.exact.masked_log_probs, variant=variant, dtype=dtype)
        rows = (found.masked_log_probs if found else here)(sentences)
        if corrected is not None:
            rows = corrected.masked(rows, sentences, pcfg, tuple)
        if transform is not None:
            rows = [row[order(transform, len(row))] for row in rows]
        _add_given_length(records, rows, "masked_logprob")
    if any_order:
        oracle = Oracle(truth, "any-order", excluded=corrected, transform=transform, charts=found)
        _add_given_length(records, oracle.token_log_probs(text), "any_order_logprob")
    if distributions:
        for record, following in zip(records, _next(truth, sentences, lengths, dtype), strict=True):
            record["next"] = following
    return records


def _add_given_length(records: list[dict[str, Any]], rows: Sequence[FloatArray], key: str) -> None:
    """Scores that sentences have given their length, and whether they are possible."""
    for record, row in zip(records, rows, strict=True):
        record["possible"] = record["possible"] and bool(np.isfinite(row).all())
        record[key] = [_finite(x) for x in row.tolist()]


def token_columns(
    records: Sequence[Mapping[str, Any]], first: int = 0, of: Sequence[str] | None = None
) -> dict[str, list[Any]]:
    """A row for each token and each end of a sentence, as columns of one length.

    Args:
        records: as `sentence_records` gives them.
        first: number of the first sentence.
        of: numbers, of ``surprisal``, ``sentence_surprisal`` (of the whole sentence, at its end) and `GIVEN_LENGTH`;
            None: those that the records have.

    Returns:
        ``sentence``, ``position`` (that after the last token is the end of the sentence), ``token``, and the numbers
        in nats; None where the grammar cannot make the sentence, and where nothing is defined.
    """
    if of is None:
        head = records[0] if records else {}
        causal = "surprisal" if "surprisal" in head else "sentence_surprisal" if "logprob" in head else None
        of = [name for name in (causal, *GIVEN_LENGTH.values()) if name is not None and name in {causal, *head}]
    return {
        "sentence": [first + i for i, r in enumerate(records) for _ in range(len(r["tokens"]) + 1)],
        "position": [j for r in records for j in range(len(r["tokens"]) + 1)],
        "token": [token for r in records for token in (*r["tokens"], END)],
        **{name: [value for r in records for value in _of_tokens(r, name)] for name in of},
    }


def _of_tokens(record: Mapping[str, Any], name: str) -> list[float | None]:
    """A number of each token of a sentence, and of its end, nats."""
    if name == "surprisal":
        return [*record["surprisal"], record["stop_surprisal"]]
    if name in GIVEN_LENGTH.values():
        return [*record[name], None]
    return [*(None for _ in record["tokens"]), None if record["logprob"] is None else -record["logprob"]]


def _check_excluding(distributions: bool, variant: Variant) -> None:
    """Refuse what cannot leave sentences out."""
    if distributions:
        raise InputError(
            "these sentences leave out those of earlier splits, and full distributions do not; write them to a text"
            " file to have the distributions of the grammar"
        )
    if variant != "default":
        raise InputError(
            "the published masked variant counts derivations several times, so it cannot leave out the sentences of"
            " earlier splits; write these sentences to a text file to score them by it"
        )


def _next(
    truth: Truth, sentences: Sequence[Sequence[str]], lengths: LengthRange | None, dtype: DTypeLike
) -> list[list[dict[str, Any] | None]]:
    """Full next-token distributions as plain values."""
    size = len(truth.terminals) * sum(len(s) + 1 for s in sentences)
    if size > MOST_PROBABILITIES:
        raise InputError(
            f"full distributions of these sentences are {size:,} probabilities, more than {MOST_PROBABILITIES:,};"
            " ask for fewer sentences, or reduce them in Python with grammar.inference.distributions"
        )
    entries: list[list[dict[str, Any] | None]] = [[None] * (len(s) + 1) for s in sentences]

    def keep(block: Distributions) -> None:
        for row, members, possible in zip(block.probability, block.members, block.possible, strict=True):
            if possible:
                *probabilities, stop = row.tolist()
                entry = {"words": dict(zip(truth.terminals, probabilities, strict=True)), "stop": stop}
                for i in members:
                    entries[i][block.position] = entry

    for _ in next_token_distributions(truth.exact, sentences, keep, lengths, dtype=dtype):
        pass
    return entries


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


def _surprisal(log_prob: float) -> float | None:
    """A surprisal, which is not below zero, as rounding of a certain word makes it."""
    return _finite(max(0.0, -log_prob))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
