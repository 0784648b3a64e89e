"""Gaps of a sentence, filled exactly: the most probable fillings, the words of each gap, and samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.diffusion.measure import ALL, HIDDEN, Filler, Schedule
from truesource.evaluation.measures.paired import unknown_words, words_missing
from truesource.evaluation.show.result import Result
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell
from truesource.generator.abilities import require
from truesource.generator.arguments import as_truth
from truesource.grammar.inference.any_order import AnyOrder, Pattern
from truesource.grammar.sentences import as_sentence
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.call_arguments import seed_number, whole_number
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED

if TYPE_CHECKING:
    from truesource.generator.language_model import LanguageModel
    from truesource.grammar.pcfg import PCFG

GAP = "___"  #: a word that is not known
SHOWN = 5  #: words of a gap that are listed
MOST_GAPS = 10  #: maximum number of gaps for a model


@dataclass(frozen=True)
class GapWord:
    """A word that fits a gap."""

    word: str
    probability: float  #: given the known words, summed over fillings of the other gaps


@dataclass(frozen=True)
class Gap:
    """The most probable words of a gap."""

    place: int  #: in the sentence, from 1
    possible: int  #: number of words that fit
    words: list[GapWord]
    model_words: list[GapWord] | None = None  #: of the model; None: there is no model


@dataclass(frozen=True)
class ScoredFilling:
    """A sentence without gaps; its probabilities are given the known words, in nats, None if they are zero."""

    sentence: str
    count: int | None  #: how often the model sampled it; None: it is not a sample
    log_prob: float | None
    model_log_prob: float | None = None


@dataclass(frozen=True)
class Infilling:
    """The fillings of a sentence."""

    log_prob: float  #: of the known words, nats
    gaps: list[Gap]
    fillings: list[ScoredFilling]  #: the most probable first
    model_samples: list[ScoredFilling] | None  #: None: there is no model
    samples: list[str]

    def as_record(self) -> dict[str, object]:
        """Return plain values for JSON; keys of the model are absent without it."""
        of_model = ("model_words", "model_log_prob", "model_samples") if self.model_samples is None else ()
        absent = ("count", *of_model)
        return asdict(self, dict_factory=lambda items: {k: v for k, v in items if v is not None or k not in absent})


def infill(
    grammar: PCFG | str | Path,
    sentence: str | Sequence[str],
    *,
    top: int = 10,
    number: int = 0,
    model: LanguageModel | str | Path | None = None,
    seed: int = DEFAULT_SEED,
) -> Result:
    """Fill the gaps of a sentence, as `truesource infill` does.

    All probabilities are exact, given the known words and the number of words.

    Args:
        grammar: a grammar, its file, or a language.
        sentence: its words, with ``___`` for each word that is not known.
        top: number of fillings to list.
        number: of sentences to sample.
        model: that fills gaps, or its reference, to compare with.
        seed: of the samples.

    Returns:
        ``log_prob`` of the known words, in nats given the length; ``detail`` is the record for JSON, with ``fillings``,
        ``gaps`` and ``samples``.

    Raises:
        InputError: there is no gap, the grammar lacks a word, the truth is a process, or the model cannot fill gaps.
    """
    words, seed = list(as_sentence(sentence)), seed_number(seed)
    top, number = whole_number(top, "top", 0), whole_number(number, "number", 0)
    truth = AnyOrder(require(as_truth(grammar), "parses", "infill"))
    pattern = _pattern(truth, words)
    filler = None if model is None else _filler(model, pattern)
    samples = truth.sample(pattern, number, np.random.default_rng(seed))
    fillings, notes = _fillings(truth, pattern, top, sampled=number > 0)
    log_prob, texts = float(truth.log_probs([pattern])[0]), [" ".join(words) for words in samples]
    infilling = Infilling(log_prob, _gaps(truth, pattern), fillings, None, texts)
    if filler is not None:
        infilling = _with_model(infilling, filler, truth, pattern, number, np.random.default_rng(seed))
    scores, tables = [*_scores(infilling)], _tables(infilling)
    return Result(kind="infill", scores=scores, tables=tables, notes=notes, detail=infilling.as_record())


def _scores(infilling: Infilling) -> Iterator[Score]:
    yield Score("log_prob", infilling.log_prob)
    for each in infilling.fillings:
        if each.log_prob is not None:
            yield Score("log_prob", each.log_prob).at(table="fillings", sentence=each.sentence)
    for gap in infilling.gaps:
        for word in gap.words:
            yield Score("probability", word.probability).at(table="gaps", place=gap.place, word=word.word)


def _filler(model: LanguageModel | str | Path, pattern: Pattern) -> Filler:
    """Return a model that fills gaps, as a sampler.

    Raises:
        InputError: it cannot fill gaps, or there are more than `MOST_GAPS`.
    """
    if sum(word is None for word in pattern) > MOST_GAPS:
        raise InputError(f"a model is asked for all orders of the gaps, which may be {MOST_GAPS}; remove the model")
    from truesource.lmtrain.models import as_loaded  # torch

    loaded = as_loaded(model)
    require(loaded, "denoising", "infill --model")
    return Filler(loaded, loaded.vocabulary or ())  # type: ignore[arg-type]


def _with_model(
    infilling: Infilling, filler: Filler, truth: AnyOrder, pattern: Pattern, number: int, rng: np.random.Generator
) -> Infilling:
    """Return the fillings with ``model_log_prob``, the gaps with ``model_words``, and ``model_samples``.

    The model's probability of a filling is the probability of filling its gaps one by one, summed over all orders.
    """
    place = {word: number for number, word in enumerate(filler.words)}
    gaps = [i for i, word in enumerate(pattern) if word is None]

    def numbers(words: Sequence[str | None]) -> IntArray:
        return np.array([HIDDEN if w is None else place.get(w, len(filler.words) - 1) for w in words], dtype=np.int64)

    def log_prob(sentence: str) -> float | None:
        value = filler.any_order_log_prob(numbers(sentence.split()), gaps)
        return value if np.isfinite(value) else None

    table = filler.table(numbers(pattern)[None])[0]
    of_gaps = []
    for gap in infilling.gaps:
        row = table[gap.place - 1]
        best = np.argsort(-row, kind="stable")[:SHOWN].tolist()
        of_gaps.append(replace(gap, model_words=[GapWord(filler.words[i], float(np.exp(row[i]))) for i in best]))
    sampled = filler.sample(np.tile(numbers(pattern), (number, 1)), Schedule("random", ALL), rng) if number else []
    counted = Counter(" ".join(words) for words in sampled).most_common()
    total = truth.log_probs([pattern])[0]
    exact = truth.pcfg.exact.string_log_probs([s.split() for s, _ in counted]) - total if counted else []
    samples = [
        ScoredFilling(s, n, float(p) if np.isfinite(p) else None, log_prob(s))
        for (s, n), p in zip(counted, exact, strict=True)
    ]
    fillings = [replace(each, model_log_prob=log_prob(each.sentence)) for each in infilling.fillings]
    return replace(infilling, fillings=fillings, gaps=of_gaps, model_samples=samples)


def _pattern(truth: AnyOrder, words: Sequence[str]) -> Pattern:
    """Return the words of a sentence, None for those that are not known.

    Raises:
        InputError: there is no gap, or the grammar lacks a word.
    """
    if GAP not in words:
        raise InputError(f"there is no gap in {' '.join(words)!r}; write {GAP} for each word that is not known")
    if unknown := unknown_words(truth.pcfg, [[word for word in words if word != GAP]]):
        raise InputError(words_missing(unknown))
    return [None if word == GAP else word for word in words]


def _gaps(truth: AnyOrder, pattern: Pattern) -> list[Gap]:
    table = truth.marginals([pattern])[0]
    gaps = []
    for place in (i for i, word in enumerate(pattern) if word is None):
        order = np.argsort(-table[place], kind="stable")[:SHOWN]
        best = [GapWord(truth.pcfg.vocabulary[i], float(table[place, i])) for i in order if table[place, i]]
        gaps.append(Gap(place + 1, int((table[place] > 0.0).sum()), best))
    return gaps


def _fillings(truth: AnyOrder, pattern: Pattern, top: int, *, sampled: bool) -> tuple[list[ScoredFilling], list[str]]:
    """Return the most probable fillings; if too many to rank, samples replace them, with a warning.

    Raises:
        InputError: they are too many to rank (code ``too-large``), and no samples are drawn.
    """
    try:
        best = [*islice(truth.best(pattern), top)]
    except InputError as error:
        if error.code != "too-large" or not sampled:
            raise
        return [], [f"No fillings are ranked: {error.reason}"]
    return [ScoredFilling(" ".join(each.words), None, each.log_prob) for each in best], []


def _tables(infilling: Infilling) -> list[ReportTable]:
    has_model = infilling.model_samples is not None
    sides = ("probability", "model") if has_model else ("probability",)
    unknown = "; words that the model does not know count as one, <unk>" if has_model else ""
    tables = [
        ReportTable(
            title="Fillings, the most probable first",
            columns=("sentence", *sides),
            rows=[_row(each, has_model) for each in infilling.fillings],
            note=f"given the known words and the number of words; exact{unknown}",
        ),
        ReportTable(
            title="Words of each gap",
            columns=("gap", "most probable words", "possible", *(("of the model",) if has_model else ())),
            rows=[_gap_row(gap) for gap in infilling.gaps],
            text=(0, 1, 3) if has_model else (0, 1),
            note="summed over fillings of the other gaps; possible: number of words that fit the gap",
        ),
        ReportTable(
            title="Sampled by the model",
            columns=("sentence", *sides, "times"),
            rows=[_row(each, has_model) for each in infilling.model_samples or ()],
            note="one word at a time, in random order; probability 0: the grammar cannot make the sentence",
        ),
    ]
    return [table for table in tables if table.rows]


def _row(filling: ScoredFilling, has_model: bool) -> TableRow:
    """Return a sentence, its probabilities, and how often it was sampled."""
    logs = [filling.log_prob, *([filling.model_log_prob] if has_model else ())]
    cells = [number_cell(0.0 if log is None else math.exp(log), ".4f") for log in logs]
    times = [] if filling.count is None else [number_cell(filling.count, ",")]
    return TableRow((filling.sentence, *cells, *times))


def _gap_row(gap: Gap) -> TableRow:
    def listed(words: list[GapWord]) -> str:
        return ", ".join(f"{each.word} {each.probability:.3f}" for each in words)

    of_model = () if gap.model_words is None else (listed(gap.model_words),)
    return TableRow((f"word {gap.place}", listed(gap.words), number_cell(gap.possible, ","), *of_model))
