"""What the rows of ``benchmarks/lattice.py`` share: a SentencePiece model of a text, documents of it, the clock."""

from __future__ import annotations

import ctypes
import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sentencepiece

from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.lmtrain.pieces.sentencepiece_pieces import SentencePiecePieces

Work = Callable[["Document"], object]


@dataclass(frozen=True)
class Document:
    raw: str  #: what the peer reads
    spelling: str  #: the same, normalised by the peer, as our lattices take it


@dataclass(frozen=True)
class Setting:
    processor: sentencepiece.SentencePieceProcessor
    builder: LatticeBuilder
    text: str

    def documents(self, length: int, most: int) -> list[Document]:
        """Stretches of so many characters, those left out that the peer cannot spell without <unk>."""
        pieces = SentencePiecePieces(self.processor)
        found: list[Document] = []
        for at in range(0, len(self.text) - length + 1, length):
            read = pieces.read(self.text[at : at + length])
            if not read.unreadable:
                found.append(Document(read.original, read.spelling))
            if len(found) == most:
                break
        return found


@dataclass(frozen=True)
class Row:
    name: str
    documents: Sequence[Document]
    ours: Work
    peer: Work | None  #: None: the peer has no such call


@dataclass(frozen=True)
class Figures:
    ours: float  #: seconds a document: the mean of the least times of each
    peer: float | None
    ours_kib: float  #: peak over what was held before
    peer_kib: float | None


def grammar_text(n: int) -> str:
    from truesource.generator.sampler import Sampler
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.embedded import english
    from truesource.grammar.support.arrays import random_state

    sampler = Sampler(english(), LengthRange(6, 25))
    return "\n".join(map(" ".join, sampler.sentences(sampler.draw(n, random_state(1)))))


def make_setting(text: str, size: int) -> Setting:
    """Train the peer's unigram model in a folder that is then removed."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "text"
        source.write_text(text, encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            input=str(source),
            model_prefix=str(Path(folder) / "model"),
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=1.0,
            minloglevel=2,
        )
        processor = sentencepiece.SentencePieceProcessor(model_file=str(Path(folder) / "model.model"))
    return Setting(processor, LatticeBuilder(SentencePiecePieces(processor).inventory), " ".join(text.split()))


def measure(row: Row, rounds: int) -> Figures:
    """Ours and the peer's turn by turn; each document once a turn, each timed on its own."""
    sides = [work for work in (row.ours, row.peer) if work is not None]
    for work in sides:
        work(row.documents[0])
    least = np.full((len(sides), len(row.documents)), np.inf)
    for _ in range(rounds):
        for work, found in zip(sides, least, strict=True):
            for k, document in enumerate(row.documents):
                begun = time.perf_counter()
                work(document)
                found[k] = min(found[k], time.perf_counter() - begun)
    times = least.mean(axis=1).tolist()
    peaks = [_peak(work, row.documents[0]) for work in sides]
    return Figures(times[0], times[1] if row.peer else None, peaks[0], peaks[1] if row.peer else None)


def _peak(work: Work, document: Document) -> float:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # gives back what earlier calls left free
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_mib()
    work(document)
    return 1024 * (peak_mib() - before)


def peak_mib() -> float:
    """Of this process since it was last forgotten (Linux only)."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
