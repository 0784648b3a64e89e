"""Sentences from a corpus, a text, a treebank or memory, or sampled from a grammar or a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.grammar.conditioning import condition_text, length_condition
from truesource.grammar.conventions import without_headers
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_chunks
from truesource.grammar.support.folders import refuse_other_kind

if TYPE_CHECKING:
    from truesource.evaluation.core.text import Text
    from truesource.generator.corpus import Corpus
    from truesource.generator.language_model import LanguageModel
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.conventions import Name
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.treebank import Treebank

_HEAD = 4096  #: bytes read to recognise the kind of a file
_BRACKETING = re.compile(r"\(\s*\(|\(\S")  #: in tokenised text an opening bracket is alone
_RULE = re.compile(r"(?:[0-9.eE+-]+\s+){0,2}(?:\S+\s*-{1,2}>|\S+->\[)")
_STREAM = 0x4E41  #: keeps these samples apart from a corpus drawn with the same seed


@dataclass(frozen=True)
class Source:
    """Sentences, and the grammar or the words of the model that they were drawn from."""

    name: str
    path: Path | None  #: None: from memory
    sentences: list[list[str]]
    left_out: int = 0  #: sentences outside the length range
    pcfg: PCFG | None = None  #: that the sentences were sampled from here
    words: tuple[str, ...] | None = None  #: known to the model that the sentences were sampled from here
    sampled: bool = False  #: here, from a grammar or a model
    documents: tuple[int, ...] | None = None  #: number of the document (file) of each sentence; None: not known
    notes: tuple[str, ...] = ()  #: sentences for the reader
    corpus: Corpus | None = None  #: that the sentences are a split of
    bank: Treebank | None = None  #: that they were read from

    def __str__(self) -> str:
        outside = f", {self.left_out:,} of other lengths left out" if self.left_out else ""
        return f"{self.name}: {len(self.sentences):,} sentences{' sampled' if self.sampled else ''}{outside}"

    @staticmethod
    def refuse_same_names(sources: Sequence[Source], what: str = "sources") -> None:
        """Refuse sources of one name.

        Raises:
            InputError: two have the same name (code ``repeated-name``).
        """
        names = [source.name for source in sources]
        if twice := next((source for source in sources if names.count(source.name) > 1), None):
            reason = f"two {what} are called {twice.name!r}; name one, NAME={twice.path or 'SOURCE'}"
            raise InputError(reason, code="repeated-name")


def by_name(sources: Any) -> list[tuple[str, Any]]:
    """Return names, empty if not given, and sources: of a mapping, of a list of sources, or of one.

    Raises:
        InputError: there is no source.
    """
    if sources is None or (isinstance(sources, list | tuple | Mapping) and not sources):
        raise InputError(f"expecting texts, such as a model, a corpus or sentences, got {sources!r}")
    if isinstance(sources, Mapping):
        return [(str(name), source) for name, source in sources.items()]
    several = isinstance(sources, list | tuple) and not _is_text(sources)
    return [("", source) for source in (sources if several else [sources])]


def _is_text(given: Sequence[Any]) -> bool:
    """Return True if a list holds sentences: lists of words, or text that names no file."""
    return bool(given) and all(
        all(isinstance(word, str) for word in each)
        if isinstance(each, list | tuple)
        else isinstance(each, str) and len(each.split()) > 1 and not Path(each).exists()
        for each in given
    )


def is_truth_source(source: Any) -> bool:
    """Return True if a source is a grammar, its file, a language, or a corpus with the grammar in its folder."""
    if isinstance(source, str | Path):
        path = str(source)
        kind = kind_of(path)
        from truesource.generator.corpus_record import GRAMMAR

        return kind == "grammar" or (kind == "corpus" and (Path(path) / GRAMMAR).is_file())
    corpus = getattr(source, "corpus", source)  # of a text
    return hasattr(corpus, "exact") or getattr(corpus, "grammar_file", None) is not None


def read_source(
    source: Any,
    *,
    n: int,
    seed: int,
    lengths: LengthRange | None,
    split: str = "train",
    convention: Name = "penn",
    name: str = "",
) -> Source:
    """Read sentences, or draw ``n`` from a grammar or a causal model.

    Args:
        source: a path or a reference to a model, or ``NAME=`` one; a glob pattern names treebank files. Or an object: a
            corpus, a `Text`, a grammar, a model, or sentences.
        n: sentences to draw from a grammar or a model.
        seed: of the drawing.
        lengths: sentences of other lengths are excluded; a grammar is conditioned on it.
        split: of a corpus.
        convention: of a treebank.
        name: of the source; empty: the name of the file or model.

    Raises:
        InputError: there is no such file, it cannot be read, or none of its sentences has a length in the range.
    """
    if not isinstance(source, str | Path):
        return _within(_of_object(source, name, n, seed, lengths, split), lengths)
    reference = str(source)
    if name:
        title, path = name, Path(reference)
    else:
        title, path = named(reference)
        name = title if str(path) != reference else ""
    reference = str(path)
    kind = kind_of(reference)
    if kind == "grammar":
        from truesource.grammar.pcfg import PCFG

        return _draw(title, path, PCFG.load(path), n, seed, lengths)
    if kind == "model":
        from truesource.lmtrain.models import load_model

        return _within(_draw_from_model(name, path, load_model(reference), n, seed), lengths)
    if kind == "treebank":
        return _within(_read_trees(title, path, convention), lengths)
    from truesource.evaluation.core.text import Text

    return _within(_of_text(title, path, Text.read(path, split)), lengths)


def _within(source: Source, lengths: LengthRange | None) -> Source:
    """Return a source without the sentences of other lengths.

    Raises:
        InputError: no sentence is left.
    """
    fits = [lengths is None or len(sentence) in lengths for sentence in source.sentences]
    if not any(fits):
        raise InputError(
            f"none of the {len(fits):,} sentences has {lengths} words; choose other --lengths",
            source.name if source.path is None else source.path,
        )
    documents = source.documents
    return replace(
        source,
        sentences=list(compress(source.sentences, fits)),
        left_out=fits.count(False),
        documents=None if documents is None else tuple(compress(documents, fits)),
    )


def named(given: str) -> tuple[str, Path]:
    """Return name and path of ``NAME=PATH``; of a bare path, its file's name without ending; of a language, itself."""
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
    """Return ``corpus``, ``treebank``, ``grammar``, ``model`` or ``text``, by the content of a path.

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


def recorded_condition(source: Any) -> str | None:
    """Return ``6..25`` or ``none``, as a corpus, or a model or samples of it, records it; None if none does.

    Args:
        source: a path, a reference to a model, or an object.
    """
    from truesource.evaluation.core.text import Text
    from truesource.generator.corpus import Corpus
    from truesource.lmtrain.decoding.folder import SampleFolder, is_sample_folder
    from truesource.lmtrain.references import model_reference, names_model
    from truesource.lmtrain.training_record import FILE, read_training

    if isinstance(source, Text):
        source = source.corpus
    if isinstance(source, Corpus):
        return str(source.lengths or "none")
    if not isinstance(source, str | Path):
        return None
    path = named(str(source))[1]
    if names_model(str(path)):
        folder = model_reference(str(path)).folder
        return None if folder is None or not (folder / FILE).is_file() else read_training(folder).corpus_lengths
    if is_sample_folder(path):
        lengths = SampleFolder.load(path).record["model"].get("corpus_lengths")
        return lengths if isinstance(lengths, str) else None
    if (path / "record.json").is_file():
        return str(Corpus.load(path).lengths or "none")
    return None


def first_condition(
    condition: LengthRange | tuple[int, int] | str | None, sources: Iterable[Any]
) -> tuple[LengthRange | None, str]:
    """Return the length condition that a call asks for, else the first that one of these sources records, else none.

    Also returns whose it is, as a line for the reader; empty if the call says it or nothing records one.

    Raises:
        InputError: ``condition`` is no range, or a record cannot be read.
    """
    from truesource.generator.arguments import as_lengths

    if condition is None:
        for source in sources:
            if (recorded := recorded_condition(source)) is not None:
                lengths = length_condition(recorded)
                place = named(str(source))[1] if isinstance(source, str | Path) else source
                return lengths, f"{condition_text(lengths)} (recorded by {place})"
    return as_lengths(condition), ""


def _of_object(source: Any, name: str, n: int, seed: int, lengths: LengthRange | None, split: str) -> Source:
    from truesource.evaluation.core.given import as_text
    from truesource.grammar.pcfg import PCFG

    if isinstance(source, PCFG):
        return _draw(name or "grammar", None, source, n, seed, lengths)
    if hasattr(source, "score") and hasattr(source, "objective"):
        return _draw_from_model(name, None, source, n, seed)
    text = as_text(source, split)
    return _of_text(name or (text.path.name if text.path is not None else "sentences"), text.path, text)


def _of_text(name: str, path: Path | None, text: Text) -> Source:
    sentences = [list(sentence) for sentence in text.sentences]
    return Source(name, path, sentences, notes=tuple(text.notes), corpus=text.corpus)


def _read_trees(name: str, path: Path, convention: Name) -> Source:
    """Read the sentences, and the documents of a treebank of several files."""
    from truesource.grammar.treebank import Normalisation, Treebank

    bank = Treebank.read(str(path), Normalisation(convention=convention))
    documents = tuple(bank.files) if len(set(bank.files)) > 1 else None
    return Source(name, path, bank.sentences(), documents=documents, bank=bank)


def _draw_from_model(name: str, path: Path | None, model: LanguageModel, n: int, seed: int) -> Source:
    """Draw from the model's own distribution; sentences that are unfinished or empty are excluded.

    Raises:
        InputError: the model is masked, or cannot be read word by word.
    """
    from truesource.lmtrain.decoding.decode import draw
    from truesource.lmtrain.decoding.sample_builder import stepwise
    from truesource.lmtrain.decoding.settings import Decoding

    if model.objective != "causal":
        raise InputError("a masked model has no distribution over sentences to sample from", path or model.name)
    samples = draw(stepwise(model, "sampling text"), n, Decoding(), seed=seed)
    text = [s for s, finished in zip(samples.sentences, samples.finished, strict=True) if finished and s]
    note = f"{n - len(text):,} of {n:,} sentences of {model.name}, unfinished or empty, are left out"
    notes = (note,) if len(text) < n else ()
    words = None if model.vocabulary is None else tuple(model.vocabulary)
    return Source(name or model.name, path, text, words=words, sampled=True, notes=notes)


def _draw(name: str, path: Path | None, pcfg: PCFG, n: int, seed: int, lengths: LengthRange | None) -> Source:
    from truesource.generator.sampler import Sampler
    from truesource.grammar.support.arrays import random_state

    sampler = Sampler(pcfg, lengths)
    sentences = sampler.sentences(sampler.draw(n, random_state(seed, _STREAM)))
    return Source(name, path, sentences, pcfg=pcfg, sampled=True)
