"""Sentences from whatever holds them: a corpus folder, a text file, a treebank; or sampled from a grammar or model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.conditioning import condition_text, length_condition
from truesource.grammar.conventions import without_headers
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_chunks
from truesource.grammar.support.folders import refuse_other_kind
from truesource.terminal.console import echo

if TYPE_CHECKING:
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.conventions import Name
    from truesource.grammar.pcfg import PCFG

_HEAD = 4096  #: bytes looked at to tell what a file is
_BRACKETING = re.compile(r"\(\s*\(|\(\S")  #: in tokenised text an opening bracket stands alone
_RULE = re.compile(r"(?:[0-9.eE+-]+\s+){0,2}(?:\S+\s*-{1,2}>|\S+->\[)")
_STREAM = 0x4E41  #: keeps these samples apart from a corpus drawn with the same seed


@dataclass(frozen=True)
class Source:
    """Sentences, and the grammar or the words of the model they were drawn from where there is one."""

    name: str
    path: Path
    sentences: list[list[str]]
    left_out: int  #: sentences outside the length range
    pcfg: PCFG | None = None
    words: tuple[str, ...] | None = None  #: those that the model tells apart which the sentences were sampled from
    sampled: bool = False  #: here, from a grammar or a model
    documents: tuple[int, ...] | None = None  #: number of the document (file) of each sentence; None: not known

    def __str__(self) -> str:
        outside = f", {self.left_out:,} of other lengths left out" if self.left_out else ""
        return f"{self.name}: {len(self.sentences):,} sentences{' sampled' if self.sampled else ''}{outside}"


def read_source(
    given: str,
    *,
    n: int,
    seed: int,
    lengths: LengthRange | None,
    split: str = "train",
    convention: Name = "penn",
) -> Source:
    """Read sentences, or draw ``n`` from a grammar or a causal model.

    Args:
        given: a path or a reference to a model, or ``NAME=`` one; a glob pattern names treebank files.
        n: sentences to draw from a grammar or a model.
        seed: of the drawing.
        lengths: sentences of other lengths are left out; a grammar is conditioned on it.
        split: of a corpus folder.
        convention: of a treebank.

    Raises:
        InputError: there is no such file, it cannot be read, or none of its sentences has a length in the range.
    """
    name, path = named(given)
    named_by_user = str(path) != given
    given = str(path)
    kind = kind_of(given)
    if kind == "grammar":
        return _draw(name, path, n, seed, lengths)
    model, words, documents = None, None, None
    if kind == "model":
        model, sentences, words = _draw_from_model(given, n, seed)
        name = name if named_by_user else model
    else:
        sentences, documents = _read(given, kind, split, convention)
    fits = [lengths is None or len(sentence) in lengths for sentence in sentences]
    kept = list(compress(sentences, fits))
    if not kept:
        raise InputError(f"none of the {len(sentences):,} sentences has {lengths} words; choose other --lengths", given)
    return Source(
        name,
        path,
        kept,
        len(sentences) - len(kept),
        words=words,
        sampled=kind == "model",
        documents=None if documents is None else tuple(compress(documents, fits)),
    )


def named(given: str) -> tuple[str, Path]:
    """The name and the path of ``NAME=PATH``; of a bare path, its file's name without ending; of a language, itself."""
    from truesource.grammar.languages import is_reference

    path = Path(given)
    if is_reference(given):
        return given, path
    title, separator, rest = given.partition("=")
    meant = ":" not in title or Path(rest).exists()  # else it is a language, misspelt
    if separator and title and meant and not path.exists():
        return title, Path(rest)
    return path.name.removesuffix(".gz").rsplit(".", 1)[0] or given, path


def kind_of(given: str) -> str:
    """``corpus``, ``treebank``, ``grammar``, ``model`` or ``text``, by what is there.

    Raises:
        InputError: nothing is there.
    """
    from truesource.grammar.languages import is_reference, missing
    from truesource.lmtrain.references import is_arpa, names_model

    path = Path(given)
    if path.is_dir():
        if (path / "record.json").exists():
            return "corpus"
        if names_model(given):
            return "model"
        refuse_other_kind(path, "model")  # a run
        return "treebank"
    if not path.exists():
        if any(c in given for c in "*?["):
            return "treebank"
        if is_reference(given):
            return "grammar"
        if names_model(given):
            return "model"
        raise missing(given)
    if is_arpa(path):
        return "model"
    bare = path.name.removesuffix(".gz")
    if bare.endswith((".npz", ".lexicon")):
        return "grammar"
    head = next(read_chunks(path), b"")[:_HEAD].decode("utf-8-sig", errors="replace").lstrip()
    if _BRACKETING.match(without_headers(head)):
        return "treebank"
    lines = [line for line in head.split("\n") if line.strip() and not line.lstrip().startswith(("#", "%"))]
    return "grammar" if lines and _RULE.match(lines[0].strip()) else "text"


def recorded_condition(given: str | Path) -> str | None:
    """``6..25`` or ``none``, as a corpus folder, or a model or samples of it, records it; None where nothing does.

    Args:
        given: a path, or a reference to a model.
    """
    from truesource.lmtrain.decoding.folder import SampleFolder, is_sample_folder
    from truesource.lmtrain.references import model_reference, names_model
    from truesource.lmtrain.training_record import FILE, read_training

    path = Path(given)
    if names_model(str(given)):
        folder = model_reference(str(given)).folder
        return None if folder is None or not (folder / FILE).is_file() else read_training(folder).corpus_lengths
    if is_sample_folder(path):
        found = SampleFolder.load(path).record["model"].get("corpus_lengths")
        return found if isinstance(found, str) else None
    if (path / "record.json").is_file():
        from truesource.generator.corpus import Corpus

        return str(Corpus.load(path).lengths or "none")
    return None


def first_condition(asked: str | None, paths: Iterable[str | Path]) -> LengthRange | None:
    """The length condition that a call asks for, else the first that one of these folders records, else none.

    Prints whose it is, where the call does not say.

    Raises:
        InputError: ``asked`` is no range, or a record cannot be read.
    """
    if asked is None:
        for path in paths:
            if (recorded := recorded_condition(path)) is not None:
                condition = length_condition(recorded)
                echo(f"{condition_text(condition)} (recorded by {path})")
                return condition
    return length_condition(asked)


def _read(given: str, kind: str, split: str, convention: Name) -> tuple[list[list[str]], tuple[int, ...] | None]:
    """Sentences, and the documents of a treebank of several files."""
    if kind == "treebank":
        from truesource.grammar.treebank import Normalisation, Treebank
        from truesource.terminal.treebanks import show_reading

        bank = Treebank.read(given, Normalisation(convention=convention))
        show_reading(bank, has_settings=False)
        return bank.sentences(), bank.files if len(set(bank.files)) > 1 else None
    from truesource.terminal.inputs import read_text

    return [list(sentence) for sentence in read_text(Path(given), split).sentences], None


def _draw_from_model(given: str, n: int, seed: int) -> tuple[str, list[list[str]], tuple[str, ...] | None]:
    """Name, finished sentences of the own distribution, and words of a model."""
    from truesource.lmtrain.decoding.decode import draw
    from truesource.lmtrain.decoding.sample_builder import stepwise
    from truesource.lmtrain.decoding.settings import Decoding
    from truesource.lmtrain.models import load_model

    model = load_model(given)
    if model.objective != "causal":
        raise InputError("a masked model has no distribution over sentences to sample from", given)
    drawn = draw(stepwise(model, "sampling text"), n, Decoding(), seed=seed)
    text = [s for s, finished in zip(drawn.sentences, drawn.finished, strict=True) if finished and s]
    if len(text) < n:
        echo(f"{n - len(text):,} of {n:,} sentences of {model.name}, unfinished or empty, are left out", err=True)
    return model.name, text, model.vocabulary


def _draw(name: str, path: Path, n: int, seed: int, lengths: LengthRange | None) -> Source:
    from truesource.generator.sampler import Sampler
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.arrays import random_state

    pcfg = PCFG.load(path)
    sampler = Sampler(pcfg, lengths)
    return Source(name, path, sampler.sentences(sampler.draw(n, random_state(seed, _STREAM))), 0, pcfg, sampled=True)
