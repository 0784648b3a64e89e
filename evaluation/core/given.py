"""Texts as people pass them: a corpus, a split of it, a path, sentences, or a setting with its truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.text import Text
from truesource.generator.arguments import as_truth
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import ScoringFrame, preset_frame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.sentences import as_sentences
from truesource.grammar.support.call_arguments import as_path, seed_number, whole_number
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth


def as_text(given: Any, split: str = "eval") -> Text:
    """Return a text: the given one, a split of a corpus, the content of a path, or sentences in memory.

    Args:
        given: a `Text`, a `Corpus`, the path of a corpus folder, of a folder of samples or of a text file, or
            sentences, each a list of words or text.
        split: of a corpus.

    Raises:
        InputError: it is something else, or cannot be read.
    """
    if isinstance(given, Text):
        return given
    if isinstance(given, Corpus):
        return Text.of(given, split)
    if isinstance(given, str | Path):
        path = as_path(given, "a corpus or text file")
        if not path.exists():
            raise InputError("there is no such file or folder; pass sentences as a list", path, code="missing")
        return Text.read(path, split)
    if hasattr(given, "score") or hasattr(given, "exact"):
        raise InputError(
            f"expecting a text, got {type(given).__name__}; the order is model, text, oracle=GRAMMAR;"
            " sample(grammar, 1000) makes a text",
            code="no-text",
        )
    return Text(as_sentences(given))


def given_truth(given: Any, oracle: Truth | str | Path | bool = True) -> tuple[Truth, LengthRange | None]:
    """Return a truth, and the length condition of its corpus.

    Args:
        given: a grammar or process, its file, or a language; or a corpus, its folder or a `Text` of it.
        oracle: a truth that replaces it; True: the truth of ``given``.

    Raises:
        InputError: there is no truth (code ``no-grammar`` or ``no-truth``), or it cannot be read.
    """
    other = None if isinstance(oracle, bool) else as_truth(oracle)
    if isinstance(given, str | Path) and (Path(given) / "record.json").is_file():
        source: Any = Corpus.load(given)
    else:
        source = given.corpus if isinstance(given, Text) and given.corpus is not None else given
    if isinstance(source, Corpus):
        return source.truth if other is None else other, source.lengths
    return as_truth(source) if other is None else other, None


def require_truth(setting: Setting) -> None:
    """Refuse a text with an unknown truth.

    Raises:
        InputError: the truth is unknown (code ``no-grammar``).
    """
    if setting.language is None:
        raise InputError("the truth of this text is not known; name its grammar: oracle=GRAMMAR", code="no-grammar")


def as_setting(
    given: Any,
    oracle: Truth | str | Path | bool = True,
    *,
    split: str = "eval",
    sentences: int | None = None,
    longest: int | None = None,
    lengths: LengthRange | tuple[int, int] | str | None = None,
    frame: ScoringFrame | str = "default",
    seed: int = DEFAULT_SEED,
    scored: bool = True,
) -> Setting:
    """Return a text with its truth; a `Setting` as it is.

    Args:
        given: see `as_text`.
        oracle: grammar or process that the text was sampled from, its file, or a language; True: the truth in the
            corpus folder, if there is one; False: the truth is unknown.
        split: of a corpus.
        sentences: number of sentences, from the first; None: all.
        longest: maximum number of words of a sentence; None: any number.
        lengths: the condition of the truth, such as ``6..25``, ``(6, 25)`` or ``none``; None: the recorded one.
        frame: which positions count.
        seed: of random numbers, such as for intervals.
        scored: see `Setting.of`.

    Raises:
        InputError: text or truth cannot be read, or there is a condition and no truth (code ``no-grammar``).
    """
    sentences = None if sentences is None else whole_number(sentences, "sentences")
    if isinstance(given, Setting):
        return given.first(sentences)
    longest = None if longest is None else whole_number(longest, "longest")
    seed = seed_number(seed)
    if not isinstance(frame, ScoringFrame):
        preset_frame(frame, "causal")  # refuses other names
    text = as_text(given, split).first(sentences).at_most(longest)
    truth = oracle if isinstance(oracle, bool) else as_truth(oracle)
    setting = Setting.of(text, truth, lengths=lengths, frame=frame, seed=seed, scored=scored)
    if lengths is not None and setting.language is None:
        reason = "lengths is the condition of the truth; name it, oracle=GRAMMAR, or remove lengths"
        raise InputError(reason, code="no-grammar")
    return setting
