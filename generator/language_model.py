"""The interface of language models, including the truth: scores, and the positions that count.

It is here because this is the lowest package that both model training and evaluation import.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from truesource.generator.objectives import Objective
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.call_arguments import choice, flag
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import brief

if TYPE_CHECKING:
    import pandas as pd

PRESETS = ("default", "paper")
END = "</s>"  #: the end of a sentence, in lists and files of tokens


@dataclass(frozen=True, slots=True)
class ScoringFrame:
    """The positions to score. Positions 0..n-1 are the words, position n is the end of the sentence.

    Only a causal model has an end-of-sentence position, for any ``eos``. Without ``first`` position 0 never counts,
    since nothing precedes it: for an empty sentence that is the end.
    """

    eos: bool = True  #: the end of the sentence is predicted and counted
    first: bool = True  #: the first word counts (of an empty sentence, its end)
    unk: Literal["token", "skip"] = "token"  #: unknown words count as the token ``<unk>``, or are skipped as targets

    def __post_init__(self) -> None:
        flag(self.eos, "eos")
        flag(self.first, "first")
        choice(self.unk, "unk", ("token", "skip"))

    def __str__(self) -> str:
        eos, first = ("in" if x else "out" for x in (self.eos, self.first))
        return f"eos:{eos}|first:{first}|unk:{self.unk}|unit:nats"

    def counts(self, position: IntArray, length: IntArray, unknown: BoolArray) -> BoolArray:
        """Return whether each position counts, (T,).

        Args:
            position: (T,) in its sentence.
            length: (T,) number of words of its sentence.
            unknown: (T,) whether the model reads ``<unk>`` there; false at ends.
        """
        counted = ~unknown if self.unk == "skip" else np.ones(len(position), dtype=bool)
        if not self.eos:
            counted &= position < length
        if not self.first:
            counted &= position > 0
        return counted


EVERY_POSITION = ScoringFrame()  #: default of scores


def preset_frame(name: str, objective: Objective) -> ScoringFrame:
    """Return a frame by name: ``default`` counts everything, ``paper`` the positions of Jumelet & Zuidema (2023).

    Their masked score excludes only unknown words, their causal one also the first word and the end.

    Raises:
        InputError: there is no such preset.
    """
    if name not in PRESETS:
        raise InputError(f"unknown frame {name!r}; choose one of {', '.join(PRESETS)}")
    if name == "default":
        return ScoringFrame()
    return ScoringFrame(eos=False, first=objective != "causal", unk="skip")


@dataclass(frozen=True, repr=False)
class TokenScores:
    """Log probability of every scored position of some sentences, in sentence order, then position order.

    A sentence of probability zero under the model (or with an undefined score) has no rows here: its number is in
    ``impossible``. ``log_prob`` is finite throughout.
    """

    log_prob: FloatArray  #: (T,) nats
    sentence: Int32Array  #: (T,) number of the sentence in the input
    position: Int32Array  #: (T,) 0 to n; n is the end of the sentence
    impossible: Int32Array  #: numbers of sentences without rows
    n_sentences: int  #: number of scored sentences
    frame: ScoringFrame

    def __post_init__(self) -> None:
        if not self.log_prob.shape == self.sentence.shape == self.position.shape:
            raise ValueError("log_prob, sentence and position need one entry per scored position each")
        if not np.isfinite(self.log_prob).all():
            raise ValueError("a log probability is not finite; sentences of probability zero go to `impossible`")

    def __repr__(self) -> str:
        lost = f", {len(self.impossible):,} of them impossible" if len(self.impossible) else ""
        total = float(self.log_prob.sum())
        return f"TokenScores({len(self.log_prob):,} tokens of {self.n_sentences:,} sentences{lost}; {total:.2f} nats)"

    def to_pandas(self) -> pd.DataFrame:
        """Return a row a position: ``sentence``, ``position``, ``log_prob`` (nats)."""
        import pandas as pd

        return pd.DataFrame({"sentence": self.sentence, "position": self.position, "log_prob": self.log_prob})


class LanguageModel(Protocol):
    """Anything that assigns probabilities to the tokens of sentences.

    A model of pieces of words also has ``reading``: how it scores words, a part of every signature.
    """

    @property
    def name(self) -> str:
        """Name of the model in tables."""

    @property
    def objective(self) -> Objective:
        """Context of a predicted token: the left context, all other tokens, or any set of others."""

    @property
    def vocabulary(self) -> tuple[str, ...] | None:
        """The words that it distinguishes; all others are ``<unk>`` to it. None: every word of the language."""

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Return log probabilities of the positions that ``frame`` counts."""


@dataclass(frozen=True)
class LogDistributions:
    """Predicted distributions of a model at one position of W sentences of one length.

    Columns are the words of the model's ``vocabulary`` in its order, then ``<unk>``, then, for a causal model, the end
    of the sentence. The probability of tokens that no sentence contains is in no column, so a row sums to at most 1.
    """

    position: int  #: 0 to n; n is the end of the sentence (causal only)
    log_prob: FloatArray  #: (W, V+2) causal, (W, V+1) masked; nats; -inf for probability zero


class NextTokenProbabilities(NamedTuple):
    """Probabilities of what follows a prefix; they sum to 1."""

    words: FloatArray  #: (V,) probability of each word, in the order of the model's ``vocabulary``
    unk: float  #: probability of ``<unk>``
    eos: float  #: probability that the sentence ends
    special: float  #: probability lost on ``<pad>``, ``<bos>`` and ``<mask>``, which no sentence contains


class DistributionModel(LanguageModel, Protocol):
    """A language model of whole words with full distributions."""

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield predicted distributions at every position of some sentences, position by position.

        Args:
            sentences: all of one length n >= 1; their (W, V) numbers a position must fit in memory.

        Yields:
            Positions 0 to n of a causal model (n is the end), 0 to n-1 of a masked one, in order.

        Raises:
            InputError: the model splits words into pieces, or accepts no sentences of this length.
        """


def check_sentences(sentences: Sequence[Sequence[str]]) -> None:
    """Refuse strings in place of lists of words: Python would read their characters as words.

    Raises:
        InputError: ``sentences`` or one of them is a string.
    """
    if isinstance(sentences, str):
        raise InputError("expecting a list of sentences, each a list of words, got one string; split it into words")
    for number, sentence in enumerate(sentences, start=1):
        if isinstance(sentence, str):
            raise InputError(
                f"sentence {number} is the string {sentence[:60]!r}, not a list of words; split it, as with .split()"
            )


def real_numbers(values: Any, what: str, dtype: Any = np.float64) -> Any:
    """Return the output of a custom model as an array.

    Raises:
        InputError: the numbers are complex, of which numpy would keep the real part (code ``complex``).
    """
    array = np.asarray(values)
    if np.iscomplexobj(array):
        raise InputError(f"{what} is complex; return real numbers", code="complex")
    return array.astype(dtype, copy=False)


def model_line(model: Any) -> str:
    """Return one line about a model: its class, name, objective and number of words."""
    words = "" if model.vocabulary is None else f", {len(model.vocabulary):,} words"
    return brief(f"{type(model).__name__}({model.name}, {model.objective}{words})")


def assemble_scores(rows: Sequence[FloatArray], unknown: Sequence[BoolArray], frame: ScoringFrame) -> TokenScores:
    """Select the positions that a frame counts from per-sentence log probabilities.

    Args:
        rows: for each sentence of n tokens, (n,) for a masked model or (n+1,) with the end of the sentence.
        unknown: for each sentence, (n,) true where the model reads ``<unk>``.
        frame: which positions count.

    A sentence with any entry that is infinite (counted or not) goes to ``impossible`` as a whole.

    Raises:
        InputError: as `framed_scores`.
    """
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    lengths = np.array([len(row) for row in unknown], dtype=np.int64)
    flags = [np.append(unk, np.zeros(n - len(unk), dtype=bool)) for unk, n in zip(unknown, sizes, strict=True)]
    empty = np.zeros(0)
    return framed_scores(
        np.concatenate([empty, *rows]), np.concatenate([empty, *flags]).astype(bool), sizes, lengths, frame
    )


def framed_scores(
    log_prob: FloatArray, unknown: BoolArray, sizes: IntArray, lengths: IntArray, frame: ScoringFrame
) -> TokenScores:
    """Return scores in a frame, from one array for all sentences.

    Args:
        log_prob: (T,) log probability of every position, sentence after sentence, nats.
        unknown: (T,) true where the model reads ``<unk>``.
        sizes: (S,) positions of each sentence, the end included if it is predicted.
        lengths: (S,) words of each sentence.
        frame: which positions count.

    Raises:
        InputError: ``frame`` is no `ScoringFrame`, or an entry is NaN (code ``not-log-probabilities``) or complex
            (``complex``).
    """
    if not isinstance(frame, ScoringFrame):
        raise InputError(f"a frame must be a ScoringFrame, such as ScoringFrame(eos=False), got {frame!r}")
    log_prob = real_numbers(log_prob, "a log probability")
    sentence = np.repeat(np.arange(len(sizes)), sizes)
    position = np.arange(len(log_prob)) - (np.cumsum(sizes) - sizes)[sentence]
    if np.isnan(log_prob).any():
        first = int(np.isnan(log_prob).argmax())
        raise InputError(
            f"the log probability of token {position[first] + 1} of sentence {sentence[first] + 1} is NaN; use -inf for"
            " impossible tokens",
            code="not-log-probabilities",
        )
    impossible = np.zeros(len(sizes), dtype=bool)
    impossible[sentence[np.isinf(log_prob)]] = True
    counted = frame.counts(position, lengths[sentence], unknown) & ~impossible[sentence]
    return TokenScores(
        log_prob[counted],
        sentence[counted].astype(np.int32),
        position[counted].astype(np.int32),
        np.flatnonzero(impossible).astype(np.int32),
        len(sizes),
        frame,
    )
