"""Checks of what models of others return: scores and distributions that are those of probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from truesource.generator.foreign_code import code_errors, file_of, is_foreign
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

ROUNDING = 1e-6  #: by which a log probability, or the sum of a row of probabilities, may exceed its maximum


def checked_scores(model: LanguageModel, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
    """Scores of a model, checked.

    Raises:
        InputError: it is not `TokenScores` of these sentences in this frame (code ``not-scores``), a value is greater
            than 0 (``not-log-probabilities``) or complex (``complex``), or the model raises (``code-failed``).
    """
    if not is_foreign(model):
        return model.score(sentences, frame)
    source = file_of(model)
    with code_errors(f"{model.name}.score", source):
        scores = model.score(sentences, frame)
    if not isinstance(scores, TokenScores):
        raise InputError(
            f"{model.name}.score returned {type(scores).__name__}; it has to return TokenScores, which"
            " truesource.assemble_scores makes of one array of log probabilities per sentence",
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
    """Distributions of a model, checked; values that exceed 0 by rounding are set to 0.

    Args:
        model: any.
        sentences: of one length.
        columns: events that a row has to have; None: those of the model's vocabulary.

    Raises:
        InputError: a block is of another position or shape (code ``not-distributions``), a value is NaN or greater
            than 0, a row sums to more than 1 (``not-log-probabilities``), a value is complex (``complex``), or the
            model raises (``code-failed``).
    """
    if not is_foreign(model):
        yield from model.distributions(sentences)
        return
    source, causal, expected = file_of(model), model.objective == "causal", 0
    if columns is None:
        columns = len(model.vocabulary or ()) + 1 + causal
    with code_errors(f"{model.name}.distributions", source):
        blocks = iter(model.distributions(sentences))
    while True:
        with code_errors(f"{model.name}.distributions", source):
            block = next(blocks, None)
        if block is None:
            break
        where = f"{model.name}.distributions: position {expected}"
        events = "the vocabulary, <unk> and the end" if causal else "the vocabulary and <unk>"
        if not isinstance(block, LogDistributions):
            raise InputError(
                f"{where} is {type(block).__name__}; it has to be LogDistributions", source, code="not-distributions"
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
    wanted = len(sentences[0]) + causal if sentences else 0
    if expected != wanted:
        raise InputError(
            f"{model.name}.distributions gave {expected} positions of sentences of {len(sentences[0])} words, expected"
            f" {wanted}",
            source,
            code="not-distributions",
        )


def checked_table(table: FloatArray, where: str) -> FloatArray:
    """Rows of log probabilities, values that exceed 0 by rounding set to 0.

    Raises:
        InputError: a value is NaN or greater than 0, or a row sums to more than 1.
    """
    if table.size:
        require_log_probability(float(table.max()), where)  # the maximum is NaN where a value is
        sums = np.exp(table).sum(axis=1)
        if sums.max() > 1.0 + ROUNDING:
            raise InputError(
                f"{where}: the probabilities of row {int(sums.argmax()) + 1} sum to {sums.max():.6g}, more than 1;"
                " subtract the logsumexp of the row",
                code="not-log-probabilities",
            )
    return np.minimum(table, 0.0)


def require_log_probability(value: float, where: str) -> None:
    """Stop before a number that is not a log probability.

    Raises:
        InputError: it is NaN, or exceeds 0 by more than rounding (code ``not-log-probabilities``).
    """
    if np.isnan(value):
        raise InputError(f"{where} is NaN; give -inf to what is impossible", code="not-log-probabilities")
    if value > ROUNDING:
        raise InputError(
            f"{where} is {value:.6g}, which is greater than 0, so these are not log probabilities; subtract the"
            " logsumexp",
            code="not-log-probabilities",
        )


def shape_of(table: FloatArray) -> str:
    """``3x5``, for messages."""
    return "x".join(map(str, table.shape)) or "of a single number"
