"""A corpus in files for other training code: shards of token numbers, lines of JSON, lines of numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truesource.generator.columns import CodedSentences
from truesource.generator.corpus import Corpus
from truesource.generator.text_files import line_of
from truesource.grammar.support.atomic_files import atomic_path, opened_to_write, write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter

ExportFormat = Literal["bin", "jsonl", "ids"]
ENDINGS: Mapping[ExportFormat, str] = {"bin": ".bin", "jsonl": ".jsonl.gz", "ids": ".ids"}
END = "<end>"  #: in the vocabulary, with the last number
META = "meta.json"
AT_ONCE = 10_000  #: sentences written in one step


@dataclass(frozen=True)
class ExportedSplit:
    """One split in ``meta.json``."""

    file: str  #: its name in the folder
    sentences: int
    tokens: int  #: ends of sentences included
    bound: float | None  #: exact cross-entropy, nats a token; None if unknown


def export(
    corpus: Corpus,
    folder: str | Path,
    to: ExportFormat,
    *,
    splits: Sequence[str] | None = None,
    words: Sequence[str] = (),
    bounds: Mapping[str, float] | None = None,
) -> dict[str, ExportedSplit]:
    """Write splits of a corpus into a new folder, with ``meta.json``, all or nothing; the same bytes each time.

    ``bin``: the numbers of all tokens in one row, each sentence followed by the end, as uint16, or uint32 for more
    tokens, little-endian. ``ids``: the numbers of the words of a sentence a line. ``jsonl``: an object with the key
    ``text`` a line, compressed.

    Args:
        corpus: corpus to read.
        folder: folder to create or replace.
        to: the format.
        splits: splits to write; None: all.
        words: words that get the first numbers, in this order; the others follow in code point order.
        bounds: exact cross-entropy of tokens and ends of each split, nats a token, for ``meta.json``.

    Returns:
        The entries of the splits in ``meta.json``.

    Raises:
        InputError: there is no such split, a word is spelled like the end, or contains white space (``jsonl``).
    """
    names = list(corpus.splits if splits is None else splits)
    vocabulary = _vocabulary(corpus, words)
    dtype = np.dtype("<u2" if len(vocabulary) <= 2**16 else "<u4")
    parts = {}
    for name in names:
        sentences, tokens = corpus.n_sentences(name), corpus.n_tokens(name)
        bound = None if bounds is None else bounds.get(name)
        parts[name] = ExportedSplit(f"{name}{ENDINGS[to]}", sentences, tokens + sentences, bound)
    numbers = {word: number for number, word in enumerate(vocabulary)}
    meta = {
        "format": to,
        "dtype": dtype.name if to == "bin" else None,
        "vocab_size": len(vocabulary),
        "end": numbers[END],
        "stoi": numbers,
        "itos": vocabulary,
        "splits": {name: asdict(part) for name, part in parts.items()},
        "corpus": corpus.digest,
    }
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        for name in names:
            _write_split(corpus.coded(name), temporary / parts[name].file, to, numbers, dtype)
        write_json(temporary / META, meta)
    return parts


def _vocabulary(corpus: Corpus, words: Sequence[str]) -> list[str]:
    """Return the given words, the other words of all splits, and the end.

    Raises:
        InputError: a word is spelled like the end.
    """
    first = set(words)
    in_corpus = {word for name in corpus.splits for word in corpus.coded(name).words}
    if END in first | in_corpus:
        raise InputError(f"a word of the corpus is spelled {END}, which is the end of a sentence here; rename it")
    return [*words, *sorted(in_corpus - first), END]


def _write_split(
    sentences: CodedSentences, file: Path, to: ExportFormat, numbers: Mapping[str, int], dtype: np.dtype[Any]
) -> None:
    with (
        meter(f"writing {file.name}", len(sentences)) as progress,
        opened_to_write(file, packed=to == "jsonl") as stream,
    ):
        for at in range(0, len(sentences), AT_ONCE):
            some = range(at, min(at + AT_ONCE, len(sentences)))
            if to == "jsonl":
                for i in some:
                    text = json.dumps({"text": line_of(sentences[i])}, ensure_ascii=False)
                    stream.write(f"{text}\n".encode())
            else:
                rows = _rows(sentences, some, numbers)
                if to == "bin":
                    ends = np.array([numbers[END]], dtype=dtype)
                    stream.write(np.concatenate([part.astype(dtype) for row in rows for part in (row, ends)]).tobytes())
                else:
                    stream.write("".join(f"{' '.join(map(str, row.tolist()))}\n" for row in rows).encode())
            progress.advance(len(some))


def _rows(sentences: CodedSentences, some: range, numbers: Mapping[str, int]) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers of the words of some sentences."""
    renumbered = np.array([numbers[word] for word in sentences.words], dtype=np.int64)
    for i in some:
        yield renumbered[sentences.rows[i]]
