"""Published scores of sentences, and their bounds.

They have the two formats of the released oracle values of Jumelet & Zuidema (2023): causal scores are JSON, an
object with the surprisals (nats) of the words of each sentence; masked scores are text, each sentence followed by two
lines per word, ``Token: 3`` and the probability of that word given all others. Both may be packed with gzip. Neither
has a value for the end of a sentence. Their causal file and their vocabulary write ``<apostrophe>`` where the masked
file has ``'``; both are read as ``'``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from truesource.evaluation.core.exact_bound import bound_of_rows
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences
from truesource.generator.language_model import ScoringFrame
from truesource.generator.objectives import Objective
from truesource.grammar.sentences import split_words
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_bytes
from truesource.grammar.support.records import decode_record
from truesource.grammar.support.settings import DEFAULT_SEED

REMEDY = "expecting the token scores of Jumelet & Zuidema (2023): JSON of surprisals, or text of masked probabilities"
LIMIT = 2**30  #: bytes of a file, unpacked


@dataclass(frozen=True)
class PublishedScores:
    """Scores of the words of some sentences, without the ends."""

    objective: Objective
    sentences: Sequence[Sequence[str]]
    rows: Sequence[FloatArray]  #: (n,) each, ln P of the words of a sentence, nats


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
    """Return words of a vocabulary: the keys of a JSON object, a JSON list, or one word a line; ``.gz`` is unpacked.

    Raises:
        InputError: the file cannot be read or holds no word.
    """
    content = read_bytes(path, limit=LIMIT, line_limit=None)
    if content.lstrip()[:1] in (b"{", b"["):
        remedy = "expecting a JSON object whose keys are words, a JSON list of words, or a word a line"
        model: Any = dict[str, object] | list[str]
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
    """Return ``causal_bound`` or ``masked_bound`` of published scores: their perplexity over the positions of a frame.

    Args:
        scores: of the words of each sentence.
        frame: which positions count; there are no ends.
        vocabulary: all other words are unknown, with either spelling of the apostrophe; None: no word is.
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
