"""The exact bound of a text in one call: the perplexity that no model can beat in the long run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from truesource.evaluation.core.differences import is_sampled_from, notes_on
from truesource.evaluation.core.exact_bound import bound_records, unbounded
from truesource.evaluation.core.given import as_setting, require_truth
from truesource.evaluation.core.piece_bounds import piece_bounds
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.sentence_records import SentenceRecord, sentence_records
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import require_tokens, require_whole
from truesource.evaluation.core.windows import window_bounds
from truesource.evaluation.show.result import Result
from truesource.evaluation.show.table import ReportTable, TableRow, score_cell
from truesource.generator.abilities import offers, require
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.inference.exact import Variant
from truesource.grammar.support.arrays import float_type
from truesource.grammar.support.call_arguments import choice, flag, whole_number, word_list
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.unknown import read_words

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.truth import Truth

MEANINGS = {
    "causal": "per word or end of a sentence, given the words before",
    "masked": "pseudo-perplexity: per word, given all other words",
    "any_order": "per word in any order, given the number of words",
    "piece": "causal: per piece or end of a sentence, given the pieces before",
    "bits_per_byte": "bits per byte of text, ends of sentences included",
}
SHARED_PIECES = (
    "Some words of the text have the same pieces as other words, such as the unknown token: the bound per piece takes"
    " them as one word, and bits per byte of the text do not exist."
)
Scoring = Callable[..., list[SentenceRecord] | None]  #: `sentence_records`, or a part of it; None: parts are missing


@dataclass(frozen=True, kw_only=True)
class BoundRequest:
    """The bounds of a text to compute."""

    causal: bool = True  #: of each word given the words before it
    masked: bool = True  #: of each word given all other words
    any_order: bool = False  #: of words in a random order, given the words so far
    lines: int = 0  #: bounds of the best predictors that see 0, 1, ..., lines - 1 words
    definitions: Variant = "default"  #: of masked scores
    vocabulary: Collection[str] | None = None  #: known words of the frame ``paper``; None: all
    tokenizer: Any = None  #: whose pieces have a bound, too, see `truesource.evaluation.core.cutting.cutter`

    def __post_init__(self) -> None:
        for name in ("causal", "masked", "any_order"):
            flag(getattr(self, name), name)
        whole_number(self.lines, "lines", 0)
        choice(self.definitions, "definitions", get_args(Variant))
        if self.vocabulary is not None:
            word_list(self.vocabulary, "vocabulary")
        if not (self.causal or self.masked or self.any_order or self.lines):
            raise InputError("no bound is requested; set causal, masked, any_order or lines")
        if self.tokenizer is not None and not self.causal:
            raise InputError("a bound of pieces is causal; leave causal as it is")


def bound(
    text: Any,
    oracle: Truth | str | Path | bool = True,
    *,
    split: str = "eval",
    sentences: int | None = None,
    longest: int | None = None,
    lengths: LengthRange | tuple[int, int] | str | None = None,
    frame: Literal["default", "paper"] = "default",
    seed: int = DEFAULT_SEED,
    causal: bool = True,
    masked: bool = True,
    any_order: bool = False,
    lines: int = 0,
    definitions: Variant = "default",
    vocabulary: Collection[str] | None = None,
    tokenizer: Any = None,
    dtype: DTypeLike = "float64",
) -> Result:
    """Score sentences exactly with the truth, as `truesource bound` does.

    Args:
        text: a corpus, its folder, a text file, sentences, or a `Setting`.
        oracle: grammar or process that the text was sampled from, its file, or a language; True: the one in the corpus
            folder.
        split: of a corpus.
        sentences: number of sentences, from the first; None: all.
        longest: maximum number of words of a sentence; None: any number.
        lengths: the condition of the truth, such as ``6..25``, ``(6, 25)`` or ``none``; None: as the corpus.
        frame: which positions count.
        seed: of the intervals.
        causal: bound models that read from left to right.
        masked: bound masked models (pseudo-perplexity); a process has no such bound.
        any_order: bound diffusion models, given the number of words.
        lines: number of best predictors that see 0, 1, ... words.
        definitions: of masked scores, ``default`` or ``paper``.
        vocabulary: known words of the frame ``paper``; None: all.
        tokenizer: whose pieces have a bound, too: ``characters``, ``bytes``, a model folder, a ``tokenizer.json``, or a
            fast tokeniser of transformers; None: no bound of pieces.
        dtype: of the charts; float32 is accurate to 1e-4 nats per token.

    Returns:
        ``causal_bound`` and ``masked_bound``: perplexities with intervals; with a tokeniser also ``piece_bound``, and
        ``bits_per_byte``, which counts the ends of sentences as bits and not as bytes, unless words of the text share
        their pieces with others. If the text was not sampled from the grammar, they are not bounds, and are called
        ``causal_perplexity`` and so on. ``detail`` is a `Bounds`.

    Raises:
        InputError: the truth of the text is unknown, or lacks the requested scores.
    """
    request = BoundRequest(
        causal=causal,
        masked=masked,
        any_order=any_order,
        lines=lines,
        definitions=definitions,
        vocabulary=vocabulary,
        tokenizer=tokenizer,
    )
    setting = as_setting(
        text, oracle, frame=frame, seed=seed, split=split, sentences=sentences, longest=longest, lengths=lengths
    )
    require_truth(setting)
    bounds = exact_bounds(setting, request, partial(sentence_records, dtype=float_type(dtype)))
    return replace(result_of(bounds), notes=(*notes_on(setting), *bounds.notes))


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Exact scores of sentences, and their bounds."""

    sentences: Sequence[SentenceRecord]  #: records of `sentence_records`; empty while parts of other jobs are missing
    scores: Sequence[Score]
    notes: Sequence[str]  #: sentences on the scope of the numbers
    complete: bool = True  #: False while parts of other jobs are missing


def exact_bounds(setting: Setting, request: BoundRequest, score: Scoring = sentence_records) -> Bounds:
    """Score the sentences of a setting exactly, and compute the bounds.

    Args:
        setting: text and truth.
        request: which bounds.
        score: computes the scores of sentences: `sentence_records` with settings, or
            `truesource.evaluation.core.scores_on_disk.score_in_parts`.

    Raises:
        InputError: the truth or the transform of the text does not have the requested scores.
    """
    truth, transform = setting.known, setting.transform
    setting, reading = read_unknown(setting)
    request, notes = _possible(request, setting)
    lengths, excluded = setting.lengths, setting.excluded
    how = {"causal": request.causal, "masked": request.masked, "any_order": request.any_order}
    of_text = partial(score, truth, setting.sentences, lengths=lengths, excluded=excluded, transform=transform)
    records = of_text(**how, variant=request.definitions)
    if records is None:
        return Bounds(sentences=(), scores=(), notes=(), complete=False)
    scores = bound_records(
        truth,
        records,
        lengths=lengths,
        excluded=excluded,
        transform=transform,
        seed=setting.seed,
        frame=str(setting.frame),
        vocabulary=request.vocabulary,
        variant=request.definitions,
        left_out={**setting.left_out, **reading.parts},
        sampled=reading.sampled,
    )
    if request.lines:
        possible = [sentence for sentence, record in zip(setting.sentences, records, strict=True) if record["possible"]]
        lines = window_bounds(setting, possible, request.lines)
        scores += lines if reading.sampled else map(unbounded, lines)
    if request.tokenizer is not None:
        parts = {**setting.left_out, **reading.parts}
        pieces = piece_bounds(setting, records, request.tokenizer, parts)
        scores += pieces if reading.sampled else map(unbounded, pieces)
        if all(each.name != "bits_per_byte" for each in pieces):
            notes.append(SHARED_PIECES)
    return Bounds(sentences=records, scores=scores, notes=(*notes, *reading.notes))


def result_of(bounds: Bounds) -> Result:
    """Return bounds as a result, with one row a bound."""
    rows = [
        TableRow([each.name, score_cell(each.as_record(), ".4f"), _meaning(each.name)], each.signature)
        for each in bounds.scores
    ]
    kind = "value" if any(each.name == "bits_per_byte" for each in bounds.scores) else "perplexity"
    columns, note = ("measure", kind, "meaning"), "95% intervals from resampling sentences"
    return Result(
        kind="bound",
        scores=bounds.scores,
        tables=[ReportTable(columns=columns, keys=("measure", "value", "meaning"), text=(0, -1), rows=rows, note=note)],
        notes=bounds.notes,
        detail=bounds,
    )


def _meaning(name: str) -> str:
    """Return the meaning of a bound."""
    objective = name.removesuffix("_bound").removesuffix("_perplexity")
    return MEANINGS.get(objective, MEANINGS["causal"])


def _possible(request: BoundRequest, setting: Setting) -> tuple[BoundRequest, list[str]]:
    """Return the request without the masked bound of a process, and a note on it.

    Raises:
        InputError: the truth or the transform of the text does not have the requested scores.
    """
    truth, transform, notes = setting.known, setting.transform, []
    if request.masked and not offers(truth, "masked"):
        if not request.causal:
            require(truth, "masked", "a masked bound")
        notes = [f"{truth.identity} is a process, which has no masked bound: this is the causal one alone."]
        request = replace(request, masked=False)
    if request.causal:
        require_whole(transform, "causal", setting.frame_of("causal"))
    if request.lines:
        require_tokens(transform, "causal", "--lines")
    if request.tokenizer is not None and setting.frame_of("causal") != ScoringFrame():
        raise InputError("a bound of pieces counts every position; leave the frame out")
    if request.any_order:
        require(truth, "any-order", "an any-order bound")
    return request, notes


class TextReading(NamedTuple):
    """The reading of the words of a text, and the kind of its perplexity."""

    sampled: bool  #: the text is a corpus of this grammar, so there is a bound
    parts: dict[str, object]  #: of signatures
    notes: list[str]  #: sentences about both


def read_unknown(setting: Setting) -> tuple[Setting, TextReading]:
    """Read unknown words as `truesource parse` does, unless the text is a corpus of this grammar."""
    truth, text = setting.known, setting.text
    if is_sampled_from(None if text is None else text.corpus, truth):
        return setting, TextReading(True, {}, [])
    place = "this text" if text is None or text.path is None else text.path
    notes = [
        f"{place} is no corpus that truesource sampled from"
        " this grammar, so this is the perplexity of the grammar on this text. Other models may be better, unless the"
        " text was sampled from the grammar."
    ]
    unchanged = setting, TextReading(False, {}, notes)
    if not offers(truth, "parses") or "unknown_words" not in truth.meta:
        return unchanged
    grammar = setting.grammar
    read = [read_words(grammar, sentence) for sentence in setting.sentences]
    unknown = sum(a != b for pair in zip(read, setting.sentences, strict=True) for a, b in zip(*pair, strict=True))
    if not unknown:
        return unchanged
    tokens = sum(map(len, read))
    notes.append(
        f"{unknown:,} of {tokens:,} words ({unknown / tokens:.1%}) are read as parse reads them: by the class of their"
        " form, or in lower case at the beginning. A class is more probable than a word of it."
    )
    return replace(setting, sentences=read), TextReading(False, {"unk": "form-class"}, notes)
