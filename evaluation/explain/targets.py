"""The true distribution of the next word at each position of a text, in the tokens of a model that is trained on it."""

from __future__ import annotations

import time
from collections.abc import Sequence
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
from truesource.lmtrain.word_vocabulary import WordVocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

MOST_BYTES = 2**31  #: of a table
TIMED = 20  #: sentences whose distributions are timed


def table_shape(sentences: Sequence[Sequence[str]], tokens: int) -> tuple[int, int]:
    """Return positions, ends of sentences included, by tokens of a vocabulary."""
    return sum(len(sentence) + 1 for sentence in sentences), tokens


def seconds_needed(oracle: Oracle, sentences: Sequence[Sequence[str]]) -> float:
    """Estimate the time for the true distributions of a text from a few of its sentences."""
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


def write_expected(
    oracle: Oracle, sentences: Sequence[Sequence[str]], tokenizer: PreTrainedTokenizerFast, path: Path
) -> None:
    """Write the true distributions of a text as a ``.npy`` table (T, V), float32, whole or not at all.

    Args:
        oracle: causal, with the words of the tokeniser as its vocabulary.
        sentences: with one word or more each.
        tokenizer: of words.
        path: of the file.

    Raises:
        InputError: the truth cannot make a sentence.
    """
    vocabulary = WordVocabulary(tokenizer)
    words = vocabulary.words
    source = oracle.columns(words)
    places = np.array([*vocabulary.word_ids.tolist(), vocabulary.unk, vocabulary.eos], dtype=np.int64)
    starts: IntArray = np.concatenate([[0], np.cumsum([len(sentence) + 1 for sentence in sentences])])
    target = np.zeros(len(oracle.language.vocabulary) + 1, dtype=np.int64)
    target[source[source >= 0]] = np.flatnonzero(source >= 0)
    events = Events(words, True, source, target)
    shape = table_shape(sentences, len(vocabulary))
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
                        table[starts[member] + block.position, places] = row
            progress.advance(sum(len(members) for members in batch.members))
        table.flush()
        del table


def read_expected(path: Path, request: dict[str, object]) -> ExpectedTokens:
    """Return a table that `write_expected` wrote; it stays on disk.

    Args:
        path: of the file.
        request: all that decides it, for its digest.
    """
    return ExpectedTokens(np.load(path, mmap_mode="r", allow_pickle=False), digest_json(request))
