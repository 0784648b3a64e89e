"""True distributions of the next token in a text, in the tokens of a model that is trained on it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.format import open_memmap

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.divergence.blocks import Events, batches_of, truth_blocks
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.atomic_files import atomic_path
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.printable import meter
from truesource.lmtrain.data import ExpectedTokens
from truesource.lmtrain.pieces.segmentation import PieceCutter
from truesource.lmtrain.subword_vocabulary import is_subword
from truesource.lmtrain.word_vocabulary import WordVocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

MOST_BYTES = 2**31  #: of a table
TIMED = 20  #: sentences whose distributions are timed


@dataclass(frozen=True, eq=False)
class TargetText:
    """A text in the tokens of a model, and the truth about each next token."""

    oracle: Oracle  #: causal, of these tokens
    sentences: Sequence[Sequence[str]]  #: of tokens
    names: tuple[str, ...]  #: of the tokens that the oracle tells apart, without ``<unk>`` and the end
    places: IntArray  #: number of each in the tokeniser, then of ``<unk>`` and of the end
    size: int  #: V, number of tokens

    @classmethod
    def of(cls, oracle: Oracle, sentences: Sequence[Sequence[str]], tokenizer: PreTrainedTokenizerFast) -> TargetText:
        """Cut truth and text as a tokeniser does.

        Args:
            oracle: causal, of words; with a tokeniser of words, these are its vocabulary.
            sentences: of words, with one or more each.
            tokenizer: of words or of pieces, made here.

        Raises:
            NothingToMeasureError: as `truesource.lmtrain.pieces.segmentation.PieceCutter.language`.
        """
        if not is_subword(tokenizer):
            vocabulary = WordVocabulary(tokenizer)
            places = np.array([*vocabulary.word_ids.tolist(), vocabulary.unk, vocabulary.eos], dtype=np.int64)
            return cls(oracle, sentences, vocabulary.words, places, len(vocabulary))
        cutter = PieceCutter(tokenizer)
        pieces = Oracle(cutter.language(oracle.truth), lengths=oracle.lengths)
        numbers = {name: number for number, name in enumerate(cutter.names)}
        names = pieces.words
        ends = [tokenizer.unk_token_id, cutter.around[1]]
        places = np.array([*(numbers[name] for name in names), *ends], dtype=np.int64)
        return cls(pieces, cutter.cut(sentences), names, places, len(cutter.names))

    @property
    def bytes(self) -> int:
        """The size of the table of their distributions."""
        return 4 * self.size * sum(len(sentence) + 1 for sentence in self.sentences)

    def seconds_needed(self) -> float:
        """Estimate the time for the true distributions from a few of the sentences."""
        sentences, oracle = self.sentences, self.oracle
        step = max(1, len(sentences) // TIMED)
        some = [sentences[i] for i in range(0, len(sentences), step)]
        for _ in oracle.blocks(oracle.batches(some[:1])[0]):  # what is computed once
            pass
        begun = time.perf_counter()
        for batch in oracle.batches(some):
            for _ in oracle.blocks(batch):
                pass
        different = len({tuple(oracle.read(sentence)) for sentence in sentences}) / max(1, len(sentences))
        return (time.perf_counter() - begun) * different * len(sentences) / len(some)

    def write(self, path: Path) -> None:
        """Write the true distributions as a ``.npy`` table (T, V), float32, whole or not at all.

        Raises:
            InputError: the truth cannot make a sentence.
        """
        oracle, sentences, names = self.oracle, self.sentences, self.names
        source = oracle.columns(names)
        starts: IntArray = np.concatenate([[0], np.cumsum([len(sentence) + 1 for sentence in sentences])])
        target = np.zeros(len(oracle.language.vocabulary) + 1, dtype=np.int64)
        target[source[source >= 0]] = np.flatnonzero(source >= 0)
        events = Events(names, True, source, target)
        shape = int(starts[-1]), self.size
        with atomic_path(path) as temporary, meter("true distributions of the train split", len(sentences)) as progress:
            table = open_memmap(temporary, mode="w+", dtype=np.float32, shape=shape)
            for batch in batches_of(oracle, sentences, len(events)):
                for block in truth_blocks(oracle, batch, events):
                    if not block.whole.all():
                        first = block.members[int(np.argmin(block.whole))][0]
                        raise InputError(f"the truth cannot make sentence {first + 1} of the train split")
                    probability = np.exp(block.log_prob)
                    for row, members in zip(probability, block.members, strict=True):
                        for member in members:
                            table[starts[member] + block.position, self.places] = row
                progress.advance(sum(len(members) for members in batch.members))
            table.flush()
            del table


def read_expected(path: Path, request: dict[str, object]) -> ExpectedTokens:
    """Return a table that `TargetText.write` wrote; it stays on disk.

    Args:
        path: of the file.
        request: all that decides it, for its digest.
    """
    return ExpectedTokens(np.load(path, mmap_mode="r", allow_pickle=False), digest_json(request))
