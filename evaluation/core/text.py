"""A text: sentences to measure on, their source, and how they were sampled, as far as it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from truesource.generator.corpus import Corpus
from truesource.generator.text_files import read_documents, read_sentences
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.sentences import as_sentences, split_words
from truesource.grammar.support.call_arguments import as_path
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import brief
from truesource.grammar.truth import Truth

Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True, eq=False)
class Text:
    """Sentences and their source; `Text.read` reads a corpus folder, a folder of samples or a text file."""

    sentences: Sentences  #: words of each, as the grammar spells them
    path: Path | None = None  #: folder or file; None: sentences in memory
    split: str = ""  #: of a corpus folder
    corpus: Corpus | None = None  #: the corpus that this is a split of; None: any other text
    lengths: LengthRange | None = None  #: the length range that they were sampled under, as far as it is recorded
    left_out: Mapping[str, int] = field(default_factory=dict)  #: entries of signatures on sentences that are excluded
    notes: tuple[str, ...] = ()  #: sentences for the reader on what is excluded
    lines: Sequence[str] | None = None  #: the unchanged lines of a text file; None: they were not read

    def __post_init__(self) -> None:
        if isinstance(self.sentences, str):
            raise InputError("expecting a list of sentences, got one string; Text.read reads the file at a path")
        object.__setattr__(self, "sentences", as_sentences(self.sentences))

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else f"of {self.path}"
        return brief(f"Text({len(self.sentences):,} sentences {' '.join(filter(None, (self.split, place)))})")

    @classmethod
    def read(cls, path: str | Path, split: str = "eval", *, lines: bool = False) -> Text:
        """Read a text.

        A folder of samples is one split, whatever ``split`` says, without sentences that were truncated or have no
        words.

        Args:
            path: a corpus folder, a folder of samples, or a text file, one tokenised sentence a line.
            split: of a corpus folder.
            lines: keep the lines of a text file unchanged, white space included.

        Raises:
            InputError: the text cannot be read, or the corpus has no such split.
        """
        from truesource.lmtrain.decoding.folder import is_sample_folder

        path = as_path(path, "a corpus or text file")
        if path.is_dir():
            return cls._of_samples(path) if is_sample_folder(path) else cls.of(Corpus.load(path), split)
        if lines:
            documents = read_documents(path)
            return cls([split_words(line) for line in documents], path, split, lines=documents)
        return cls(read_sentences(path), path, split)

    @classmethod
    def of(cls, corpus: Corpus, split: str) -> Text:
        """Take a split of a corpus.

        Raises:
            InputError: the corpus has no such split.
        """
        if not isinstance(corpus, Corpus):
            raise InputError(f"expecting a corpus, got {type(corpus).__name__}; Corpus.load opens its folder")
        return cls(corpus.sentences(split), corpus.path, split, corpus, corpus.lengths)

    @classmethod
    def _of_samples(cls, path: Path) -> Text:
        from truesource.lmtrain.decoding.folder import SampleFolder

        samples = SampleFolder.load(path)
        finished = samples.sentences(cut=False)
        sentences = [sentence for sentence in finished if sentence]
        excluded = {
            "were truncated at max_tokens": samples.n_sentences - len(finished),
            "have no words": len(finished) - len(sentences),
        }
        notes = tuple(
            f"{number:,} of {samples.n_sentences:,} sentences of {path} {what} and are left out"
            for what, number in excluded.items()
            if number
        )
        return cls(sentences, path, notes=notes)

    @property
    def truth(self) -> Truth | None:
        """The grammar or process in the folder of its corpus; None without one.

        Raises:
            InputError: the corpus was sampled from another grammar (code ``other-grammar``).
        """
        return None if self.corpus is None or self.corpus.grammar_file is None else self.corpus.truth

    @property
    def documents(self) -> Sequence[str]:
        """The texts as strings: unchanged lines if they were read, else words joined by spaces."""
        return self.lines if self.lines is not None else [" ".join(sentence) for sentence in self.sentences]

    def first(self, number: int | None) -> Text:
        """Return the first sentences only; None: all of them."""
        return self if number is None else replace(self, sentences=self.sentences[:number], lines=None)

    def at_most(self, words: int | None) -> Text:
        """Exclude sentences of more words; None: exclude none.

        Raises:
            InputError: all sentences are longer.
        """
        if words is None:
            return self
        sentences = [sentence for sentence in self.sentences if len(sentence) <= words]
        longer = len(self.sentences) - len(sentences)
        if not sentences:
            raise InputError(f"all {longer} sentences have more than {words} words; increase --longest")
        note = f"{longer} of {len(self.sentences)} sentences have more than {words} words and are left out"
        return replace(
            self,
            sentences=sentences,
            lines=None,
            left_out={**self.left_out, "longest": words, "longer": longer},
            notes=(*self.notes, note) if longer else self.notes,
        )

    def other_split(self, name: str) -> list[list[str]]:
        """Read another split of the same corpus.

        Raises:
            InputError: this is no split of a corpus, or is that split itself, or there is no such split.
        """
        if self.corpus is None:
            raise InputError(f"this text is no split of a corpus: so it has no split {name}", code="no-split")
        if name == self.split:
            raise InputError(f"the text is the split {name} itself; name two different splits", code="no-split")
        return self.corpus.sentences(name)

    @cached_property
    def training_counts(self) -> Mapping[str, int] | None:
        """Occurrences of words in the split ``train`` of the same corpus; None if there is no such split."""
        if self.corpus is None or "train" not in self.corpus.splits:
            return None
        coded = self.corpus.coded("train")
        counts = np.bincount(coded.rows.flat, minlength=len(coded.words))
        return dict(zip(coded.words, counts.tolist(), strict=True))
