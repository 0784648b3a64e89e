"""What evaluators need of a model beyond scores, asked in one place; and checks of models and code of others.

An ability is some methods or attributes; a model that lacks one is refused with the name of the method. A class may
also answer for itself, with an attribute ``has_<ability>`` (``has_hidden_states = False``), where it has the methods
and refuses.

Models of truesource are trusted. Scores and distributions of others are checked at every call and refused where they
are not those of probabilities, and what their code raises becomes one sentence with the last line of it.

The device and precision that a call names for networks stand here, too; `truesource.lmtrain.device` checks them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, overload

import numpy as np

from truesource.generator.language_model import (
    DistributionModel,
    LanguageModel,
    LogDistributions,
    ScoringFrame,
    TokenisedModel,
    TokenScores,
    real_numbers,
)
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

#: what a module of ours is called; models of all others are checked, see `truesource.generator.abilities`
_OURS = "truesource."


@contextmanager
def code_errors(what: str, source: Path | None = None, code: str = "code-failed") -> Iterator[None]:
    """Turn what code of others raises inside the block into one sentence, with the last line of theirs.

    What it prints goes to standard error: the standard output may be that of ``--json -``.

    Args:
        what: the code that runs, such as ``gru.py:GRU``.
        source: its file; None: unknown.
        code: of the error.

    Raises:
        InputError: something was raised; an `InputError` keeps its sentence and its code.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except InputError as error:
        if error.path is not None or source is None:
            raise
        raise InputError(error.reason, source, line_of(error, source), code=error.code) from error
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        line = None if source is None else line_of(error, source)
        raise InputError(f"{what} raises {said(error)}", source, line, code=code) from error


def line_of(error: BaseException, source: Path) -> int | None:
    """The line of a file that raised an exception; None: the file is not in its traceback."""
    same = {str(source), str(source.resolve())}
    if isinstance(error, SyntaxError) and error.filename in same:
        return error.lineno
    line, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename in same:
            line = step.tb_lineno
        step = step.tb_next
    return line


def said(error: BaseException) -> str:
    """Type and message of an exception, on one line of at most 200 characters."""
    text = " ".join(str(error).split())
    result = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return result if len(result) <= 200 else f"{result[:199]}…"


def is_foreign(thing: object) -> bool:
    """Say whether an object is of a class that is not part of truesource."""
    return not type(thing).__module__.startswith(_OURS)


def file_of(thing: object) -> Path | None:
    """The file that a function, or the class of an object, is defined in; None: it has none."""
    for candidate in (inspect.unwrap(thing) if callable(thing) else thing, type(thing)):
        try:
            result = inspect.getsourcefile(candidate)  # type: ignore[arg-type] # refused below
        except (TypeError, OSError):
            continue
        if result is not None and Path(result).is_file():
            return Path(result)
    return None


Name = Literal["distributions", "words", "stepping", "hidden-states", "pieces", "marks", "snapshots"]


@dataclass(frozen=True)
class Ability:
    """Method or attribute that a model may have besides scoring."""

    name: str
    needs: tuple[str, ...]  #: methods and attributes, all of them
    means: str  #: for messages and documentation
    remedy: str  #: what to do without it

    def lacking(self, model: object) -> tuple[str, ...]:
        """Those that a model does not have; none: it has the ability."""
        answer = getattr(model, f"has_{self.name.replace('-', '_')}", None)
        if answer is not None:
            return () if answer else self.needs
        return tuple(need for need in self.needs if not _has(model, need))


ABILITIES: dict[str, Ability] = {
    ability.name: ability
    for ability in (
        Ability(
            "distributions",
            ("distributions",),
            "the probabilities of all words in a context",
            "models of pieces have none; use one of whole words",
        ),
        Ability("words", ("vocabulary",), "a list of its words", "models of pieces have none; use one of whole words"),
        Ability(
            "stepping",
            ("stepper", "alphabet"),
            "next-token probabilities, token by token",
            "use a causal network or n-gram model",
        ),
        Ability(
            "hidden-states",
            ("hidden_states",),
            "vectors of its layers",
            "models that count n-grams have none; use a network",
        ),
        Ability(
            "pieces",
            ("pieces", "incremental_scorer", "log_probs", "token_steps"),
            "a tokeniser of pieces, and scores piece by piece",
            "use a causal model of pieces (tokenizer bpe or unigram)",
        ),
        Ability(
            "marks",
            ("around_texts",),
            "tokens of one's choice around a text",
            "only causal networks of pieces have them; leave the option out",
        ),
        Ability(
            "snapshots",
            ("snapshots",),
            "what the model was at earlier steps of its training",
            "name a model folder with snapshots",
        ),
    )
}


def offers(model: object, ability: Name) -> bool:
    """Say whether a model has an ability."""
    return not ABILITIES[ability].lacking(model)


@overload
def require(model: Any, ability: Literal["distributions"], needed_by: str) -> DistributionModel: ...
@overload
def require(model: Any, ability: Literal["pieces"], needed_by: str) -> TokenisedModel: ...
@overload
def require(
    model: Any, ability: Literal["words", "stepping", "hidden-states", "marks", "snapshots"], needed_by: str
) -> Any: ...
def require(model: Any, ability: Name, needed_by: str) -> Any:
    """The model, if it has an ability.

    Args:
        model: any.
        ability: one of `ABILITIES`.
        needed_by: what needs it, such as ``evaluate probing``; begins the message.

    Raises:
        InputError: it lacks a method (code ``missing-ability``); the message names it.
    """
    asked = ABILITIES[ability]
    lacking = asked.lacking(model)
    if lacking:
        name = getattr(model, "name", type(model).__name__)
        of_ones_own = is_foreign(model) or getattr(model, "of_ones_own", False)
        remedy = "add it as help(truesource.LanguageModel) describes it" if of_ones_own else asked.remedy
        raise InputError(
            f"{needed_by} needs {asked.means}: {name} has no {_listed(lacking)}; {remedy}", code="missing-ability"
        )
    return model


def _listed(names: tuple[str, ...]) -> str:
    more = f" (and {len(names) - 2} more)" if len(names) > 2 else ""
    return f"{' and no '.join(names[:2])}{more}"


def _has(model: object, name: str) -> bool:
    """Say whether a model has an attribute that is not None; properties of its class are not run."""
    if isinstance(getattr(type(model), name, None), property) and name != "vocabulary":
        return True
    return getattr(model, name, None) is not None


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


Dtype = Literal["float32", "bfloat16", "float16"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
DTYPE: Dtype = "float32"  #: precision of networks, where none is named
DEVICE = r"^(auto|cpu|mps|cuda(:\d+)?)$"  #: how devices are written


@dataclass(frozen=True)
class Computing:
    """A device and a precision, as they are written; None: not named."""

    device: str | None = None
    dtype: str | None = None


_UNNAMED = Computing()
_CURRENT: ContextVar[Computing] = ContextVar("computing", default=_UNNAMED)


def current() -> Computing:
    """Device and precision that the running block has set."""
    return _CURRENT.get()


@contextmanager
def named_computing(device: str | None = None, dtype: str | None = None) -> Iterator[None]:
    """Name a device and a precision for a block; None: as around it."""
    around = current()
    token = _CURRENT.set(Computing(device or around.device, dtype or around.dtype))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def precision_parts() -> dict[str, object]:
    """Part of a signature: the precision of the networks, where it is not float32."""
    dtype = current().dtype or DTYPE
    return {} if dtype == DTYPE else {"networks": dtype}
