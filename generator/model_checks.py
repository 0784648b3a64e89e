"""Checks of the output of custom models: scores and distributions must be valid probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truesource.generator.abilities import offers
from truesource.generator.dependence import FEW, Answers, Ask, DependenceCheck, is_due, same_length
from truesource.generator.foreign_code import Handling, code_errors, file_of, is_foreign
from truesource.generator.language_model import (
    DistributionModel,
    LanguageModel,
    LogDistributions,
    ScoringFrame,
    TokenScores,
    real_numbers,
)
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

ROUNDING = 1e-6  #: tolerance above the maximum of a log probability, or of the sum of a row of probabilities


def checked_scores(model: LanguageModel, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
    """Return scores of a model, checked; for a custom model also its dependence on other words, once per object.

    Raises:
        InputError: it is not `TokenScores` of these sentences in this frame (code ``not-scores``), a value is greater
            than 0 (``not-log-probabilities``) or complex (``complex``), the model raises (``code-failed``), its scores
            depend on later words (``looks-ahead``) or on the other sentences (``mixes-rows``), or disagree with its
            distributions (``scores-disagree``).
    """
    _require_order(model)
    if not is_due(model, "score"):
        return _scores(model, sentences, frame)

    def ask(texts: list[list[str]]) -> Answers:
        return score_rows(model, texts, frame)

    check = DependenceCheck(model, "score", sentences, ask)
    _check_tables(model, check.texts, ask)
    check.before()
    scores = _scores(model, sentences, frame)
    check.after(_rows_of(scores, sentences, model))
    return scores


def score_rows(model: LanguageModel, sentences: list[list[str]], frame: ScoringFrame) -> Answers:
    """Return log probabilities of each sentence, (n+1,) causal, (n,) masked, nats; NaN if unknown.

    Raises:
        InputError: as `checked_scores`.
    """
    rows = getattr(model, "log_prob_rows", None)
    if rows is not None and not is_foreign(model):
        return list(rows(sentences))
    return _rows_of(_scores(model, sentences, frame), sentences, model)


def _rows_of(scores: TokenScores, sentences: Sequence[Sequence[str]], model: LanguageModel) -> Answers:
    sizes = np.array([len(sentence) for sentence in sentences], dtype=np.int64) + (model.objective == "causal")
    starts = np.cumsum(sizes) - sizes
    values = np.full(int(sizes.sum()), np.nan)
    values[starts[scores.sentence] + scores.position] = scores.log_prob
    return np.split(values, starts[1:])


def table_rows(model: Any, sentences: list[list[str]], columns: int | None = None) -> Answers:
    """Return log distributions of each sentence, (n+1, E) causal, (n, E) masked, nats; one call for each length.

    Raises:
        InputError: as `checked_distributions`.
    """
    by_length: dict[int, list[int]] = {}
    for i, sentence in enumerate(sentences):
        by_length.setdefault(len(sentence), []).append(i)
    result: dict[int, FloatArray] = {}
    for members in by_length.values():
        blocks = [block.log_prob for block in _tables(model, [sentences[i] for i in members], columns)]
        result.update(zip(members, np.stack(blocks, axis=1), strict=True))
    return [result[i] for i in range(len(sentences))]


def _check_tables(model: LanguageModel, sentences: list[list[str]], scores: Ask) -> None:
    """Check the distributions of a model before it is scored, if it has them, on a few sentences.

    Raises:
        InputError: they depend on other words, or disagree with its scores; see `checked_scores`.
    """
    if model.vocabulary is None or not offers(model, "distributions") or not is_due(model, "distributions"):
        return
    some = same_length(sentences, FEW)
    check = DependenceCheck(model, "distributions", some, lambda texts: table_rows(model, texts))
    check.before(needed=False)
    check.compare_scores(scores)


def _require_order(model: LanguageModel) -> None:
    """Refuse a vocabulary that is a set, whose order is arbitrary."""
    if isinstance(model.vocabulary, set | frozenset):
        raise InputError(
            f"the vocabulary of {model.name} is a set, whose order is arbitrary; use a list, such as sorted(words)",
            file_of(model),
            code="vocabulary",
        )


def _scores(model: LanguageModel, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
    """Return scores of a model, which must be log probabilities."""
    if not is_foreign(model):
        return model.score(sentences, frame)
    source = file_of(model)
    with code_errors(f"{model.name}.score", source):
        scores = model.score(sentences, frame)
    if not isinstance(scores, TokenScores):
        raise InputError(
            f"{model.name}.score returned {type(scores).__name__}; it must return TokenScores, which"
            " truesource.assemble_scores builds from one array of log probabilities per sentence",
            source,
            code="not-scores",
        )
    if scores.n_sentences != len(sentences) or scores.frame != frame:
        raise InputError(
            f"{model.name}.score returned scores of {scores.n_sentences} sentences in the frame {scores.frame}; it was"
            f" given {len(sentences)} sentences and the frame {frame}",
            source,
            code="not-scores",
        )
    real_numbers(scores.log_prob, f"{model.name}.score")
    if len(scores.log_prob):
        worst = int(scores.log_prob.argmax())
        require_log_probability(
            float(scores.log_prob[worst]),
            f"{model.name}.score: position {scores.position[worst]} of sentence {scores.sentence[worst] + 1}",
        )
    return scores


def checked_distributions(
    model: DistributionModel, sentences: Sequence[Sequence[str]], columns: int | None = None
) -> Iterator[LogDistributions]:
    """Yield distributions of a model, checked; values that exceed 0 by rounding are set to 0.

    Args:
        model: any.
        sentences: sentences of one length.
        columns: number of events in a row; None: from the model's vocabulary.

    Raises:
        InputError: a block is of another position or shape (code ``not-distributions``), a value is NaN or greater
            than 0, a row sums to more than 1 (``not-log-probabilities``), a value is complex (``complex``), the model
            raises (``code-failed``), or it is custom and its distributions depend on later words (``looks-ahead``) or
            on the other sentences (``mixes-rows``), or disagree with its scores (``scores-disagree``).
    """
    _require_order(model)
    if not is_due(model, "distributions"):
        yield from _tables(model, sentences, columns)
        return
    check = DependenceCheck(model, "distributions", sentences, lambda texts: table_rows(model, texts, columns))
    check.before()
    check.compare_scores(lambda texts: score_rows(model, texts, ScoringFrame()))
    rows = []
    for block in _tables(model, sentences, columns):
        rows.append(block.log_prob[check.sample])
        yield block
    if rows:
        check.after(list(np.stack(rows, axis=1)))


def _tables(
    model: DistributionModel, sentences: Sequence[Sequence[str]], columns: int | None
) -> Iterator[LogDistributions]:
    """Yield distributions of a model, checked one by one."""
    if not is_foreign(model):
        yield from model.distributions(sentences)
        return
    source, causal, expected = file_of(model), model.objective == "causal", 0
    if columns is None:
        columns = len(model.vocabulary or ()) + 1 + causal
    with code_errors(f"{model.name}.distributions", source):
        blocks = iter(model.distributions(sentences))
    numpy_errors: dict[str, Handling] = {}
    while True:
        with code_errors(f"{model.name}.distributions", source, numpy_errors=numpy_errors):
            block = next(blocks, None)
        if block is None:
            break
        where = f"{model.name}.distributions: position {expected}"
        events = "the vocabulary, <unk> and the end" if causal else "the vocabulary and <unk>"
        if not isinstance(block, LogDistributions):
            raise InputError(
                f"{where} is {type(block).__name__}; it must be LogDistributions", source, code="not-distributions"
            )
        table = real_numbers(block.log_prob, where)
        if block.position != expected or table.shape != (len(sentences), columns):
            raise InputError(
                f"{where} came as position {block.position} with an array {shape_of(table)}, expected"
                f" {len(sentences)}x{columns}: the sentences by {events}",
                source,
                code="not-distributions",
            )
        yield LogDistributions(expected, checked_table(table, where))
        expected += 1
    n_positions = len(sentences[0]) + causal if sentences else 0
    if expected != n_positions:
        raise InputError(
            f"{model.name}.distributions gave {expected} positions of sentences of {len(sentences[0])} words, expected"
            f" {n_positions}",
            source,
            code="not-distributions",
        )


def checked_table(table: FloatArray, where: str) -> FloatArray:
    """Return rows of log probabilities, values that exceed 0 by rounding set to 0.

    Raises:
        InputError: a value is NaN or greater than 0, or a row sums to more than 1.
    """
    if table.size:
        require_log_probability(float(table.max()), where)  # the maximum is NaN if a value is
        sums = np.exp(table).sum(axis=1)
        if sums.max() > 1.0 + ROUNDING:
            raise InputError(
                f"{where}: the probabilities of row {int(sums.argmax()) + 1} sum to {sums.max():.6g}, more than 1;"
                " subtract the logsumexp of the row",
                code="not-log-probabilities",
            )
    return np.minimum(table, 0.0)


def require_log_probability(value: float, where: str) -> None:
    """Refuse a number that is not a log probability.

    Raises:
        InputError: it is NaN, or exceeds 0 by more than rounding (code ``not-log-probabilities``).
    """
    if np.isnan(value):
        raise InputError(f"{where} is NaN; use -inf for impossible tokens", code="not-log-probabilities")
    if value > ROUNDING:
        raise InputError(
            f"{where} is {value:.6g}, which is greater than 0, so these are not log probabilities; subtract the"
            " logsumexp",
            code="not-log-probabilities",
        )


def shape_of(table: FloatArray) -> str:
    """Return ``3x5``, for messages."""
    return "x".join(map(str, table.shape)) or "of a single number"


def require_words(vocabulary: tuple[Any, ...] | list[Any], name: str, source: Path | None = None) -> None:
    """Refuse a vocabulary that is not one of different words.

    Raises:
        InputError: an entry is no text, empty, or repeated (code ``vocabulary``).
    """
    seen: set[str] = set()
    for number, word in enumerate(vocabulary, start=1):
        if not isinstance(word, str):
            problem = f"is {word!r}, not a string"
        elif not word or word != "".join(word.split()):
            problem = f"is {word!r}, which is not a word: words are not empty and have no white space"
        elif not is_text(word):
            problem = f"is {word!r}, which has half of a character (a lone surrogate); give it text"
        elif word in seen:
            problem = f"is {word!r}, which is there twice; keep one"
        else:
            seen.add(word)
            continue
        raise InputError(f"entry {number} of the vocabulary of {name} {problem}", source, code="vocabulary")


def is_text(text: str) -> bool:
    """Return True if a string can be written to a file: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
