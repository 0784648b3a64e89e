"""Inputs of verbs: corpora, samples and texts, and warnings about them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from truesource.evaluation.core.setting import Setting
    from truesource.evaluation.core.text import Text
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.truth import Truth

PATIENCE = 20.0  #: seconds that long sentences may take before they are announced
PLACES = ("grammar.npz", "grammar/grammar.npz")  #: of the grammar in a corpus, and in a run


def read_text(path: Path, split: str, *, lines: bool = False) -> Text:
    """Read a text, and say on stderr what is excluded; see `Text.read` for arguments and errors."""
    from truesource.evaluation.core.text import Text

    text = Text.read(path, split, lines=lines)
    warn(text.notes)
    return text


def read_setting(
    path: Path,
    split: str,
    oracle: Truth | Path | bool,
    lengths: str | None,
    *,
    frame: str = "default",
    seed: int = DEFAULT_SEED,
    first: int | None = None,
    longest: int | None = None,
    drawn: LengthRange | None = None,
    scores: bool = True,
    uncorrected: str = "",
) -> Setting:
    """Read the text that models are measured on, and its truth; warn on stderr of their differences.

    Args:
        path: corpus folder, folder of samples, or text with one tokenised sentence a line.
        split: name of the split in a corpus folder.
        oracle: the grammar that the text was sampled from, or its file; True: the grammar in the corpus folder; False:
            the truth is unknown.
        lengths: the condition of the truth, such as ``6..25``; None: the condition of the corpus.
        frame: name of a preset that says which positions count.
        seed: random seed.
        first: number of sentences; None: all.
        longest: maximum number of words in a sentence; None: any number.
        drawn: length condition that the text was sampled under, if the text does not record it.
        scores: tokens are scored, see `truesource.evaluation.core.setting.Setting.of`.
        uncorrected: see `truesource.evaluation.core.differences.differences`.

    Raises:
        InputError: text or grammar cannot be read, or all sentences are too long.
    """
    from truesource.evaluation.core.text import Text

    text = Text.read(path, split).first(first)
    if drawn is not None:
        text = replace(text, lengths=drawn)
    text = text.at_most(longest)
    warn(text.notes)
    return setting_of(text, oracle, uncorrected=uncorrected, lengths=lengths, frame=frame, seed=seed, scored=scores)


def setting_of(text: Text, oracle: Truth | Path | bool, *, uncorrected: str = "", **how: Any) -> Setting:
    """Relate a text to its truth, and warn on stderr of their differences.

    Args:
        text: the text.
        oracle: see `read_setting`.
        uncorrected: see `read_setting`.
        how: further arguments of `truesource.evaluation.core.setting.Setting.of`.

    Raises:
        InputError: see `Setting.of`.
    """
    from truesource.evaluation.core.differences import differences
    from truesource.evaluation.core.setting import Setting

    setting = Setting.of(text, oracle, **how)
    warn(differences(setting, uncorrected))
    return setting


def warn(sentences: Iterable[str]) -> None:
    """Print sentences on stderr."""
    for sentence in sentences:
        echo(sentence, err=True)


def warn_of_other_corpus(model: str | Path, text: Text | None) -> None:
    """Warn on stderr if a model is scored on a split of a corpus that it was not trained on.

    External models and models that are code do not record their corpus, and other texts have no digest: no warning
    is possible then.

    Raises:
        InputError: there is no such model, or its ``training.json`` cannot be read.
    """
    if text is None or text.corpus is None:
        return
    from truesource.lmtrain.references import model_reference

    folder = model_reference(model).folder
    trained, here = None if folder is None else _trained_on(folder), text.corpus.digest
    if trained is not None and trained != here:
        echo(
            f"Warning: {model} was trained on another corpus ({trained[:8]}, not {here[:8]}). Unless both have the same"
            " grammar and length range, relative perplexity also measures the difference between the two languages.",
            err=True,
        )


def _trained_on(model: Path) -> str | None:
    """Return the digest of the training corpus of a model; None if the model does not record it."""
    from truesource.lmtrain.training_record import FILE, read_training

    trained = model.parent.parent if model.parent.name == "snapshots" else model
    return read_training(trained).corpus_digest if (trained / FILE).is_file() else None


def say_left_out(setting: Setting, impossible_model: Collection[int], impossible_oracle: Collection[int]) -> None:
    """Print on stderr how many sentences a comparison excludes, which side gives them probability 0, and missing words.

    Args:
        setting: text and truth.
        impossible_model: indices of the sentences with probability 0 under the model.
        impossible_oracle: indices of the sentences with probability 0 under the oracle.
    """
    from truesource.evaluation.measures.paired import unknown_words, words_missing
    from truesource.evaluation.show.words import impossible

    left_out, sentences = {*impossible_model, *impossible_oracle}, setting.sentences
    if not left_out:
        return
    unknown = (
        [] if setting.language is None else unknown_words(setting.language, (sentences[i] for i in impossible_oracle))
    )
    why = f"; {words_missing(unknown)}" if unknown else ""
    sides = impossible({"impossible_oracle": len(impossible_oracle), "impossible_model": len(impossible_model)})
    echo(f"{len(left_out)} of {len(sentences)} sentences have probability 0 and are excluded: {sides}{why}", err=True)


def announce_long(setting: Setting, *, masked: bool, dtype: DTypeLike = "float64") -> None:
    """Print on stderr the time of exact scores of long sentences if it is more than `PATIENCE`."""
    from truesource.evaluation.core.long_sentences import LONG, long_sentences

    cost = long_sentences(setting.known, setting.sentences, setting.lengths, masked=masked, dtype=dtype)
    if cost is not None and cost.seconds > PATIENCE:
        echo(f"{cost}; --longest {LONG} excludes them", err=True)


def grammar_inside(folder: Path) -> Path | None:
    """Return the grammar file in a folder; None for a folder without a grammar."""
    return next((folder / place for place in PLACES if (folder / place).is_file()), None)


def requested_truth(oracle: Path | None, no_oracle: bool = False) -> Path | bool:
    """Return the grammar of --oracle; else True for the grammar in the corpus folder, or False with --no-oracle.

    Raises:
        InputError: both options are given.
    """
    if oracle is not None and no_oracle:
        raise InputError("--oracle and --no-oracle contradict each other; remove one")
    return not no_oracle if oracle is None else oracle


def require_truth(setting: Setting, path: Path) -> None:
    """Refuse a text whose truth is not known, before a model is loaded.

    Raises:
        InputError: its truth is not known (code ``no-grammar``).
    """
    if setting.language is None:
        raise InputError(
            "the truth of this text is not known; add its grammar: --oracle GRAMMAR", path, code="no-grammar"
        )


def oracle_option(oracle: Path | None, text: Path) -> str:
    """Return the --oracle option for the next command; with the placeholder GRAMMAR if the truth is unknown."""
    if oracle is None:
        return "" if grammar_inside(text) is not None else " --oracle GRAMMAR"
    return f" --oracle {shlex.quote(str(oracle))}"
