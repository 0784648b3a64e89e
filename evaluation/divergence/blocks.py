"""Distributions of model and truth side by side: the same batches of sentences, position by position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.core.oracle import Oracle
from truesource.generator.abilities import checked_distributions
from truesource.generator.language_model import DistributionModel, LanguageModel, LogDistributions
from truesource.grammar.inference.batch import Batch
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter

CELLS = 2**22  #: most numbers in a block of one position (32 MiB); some ten such blocks stand in memory at once


@dataclass(frozen=True, eq=False)
class TruthBlock:
    """The exact distributions at one position of W sentences of one length, in the columns of a model."""

    position: int  #: 0 to n; n is the end of the sentence
    members: tuple[tuple[int, ...], ...]  #: for each row, the input sentences that it stands for
    log_prob: NDArray[np.floating]  #: (W, E) ln P, nats
    observed: IntArray  #: (W,) column of what stands there; -1 where the truth knows no such word
    whole: BoolArray  #: (W,) whether the truth can make the whole sentence
    states: FloatArray  #: (W, S) weight of each symbol that the next word may come from

    def rows(self, kept: IntArray) -> TruthBlock:
        """Some rows of it."""
        return TruthBlock(
            self.position,
            tuple(self.members[row] for row in kept),
            self.log_prob[kept],
            self.observed[kept],
            self.whole[kept],
            self.states[kept],
        )


@dataclass(frozen=True)
class Events:
    """The columns of a comparison: the model's words in its order, ``<unk>``, and the end of a sentence if causal."""

    words: tuple[str, ...]
    causal: bool
    source: IntArray  #: (E,) column of each event in the oracle's blocks; -1: the truth does not have it
    target: IntArray  #: (V,) or (V+1,) column of each of the oracle's events

    def __len__(self) -> int:
        return len(self.source)


def events_of(model: LanguageModel, oracle: Oracle) -> Events:
    """The events that model and truth share.

    Raises:
        InputError: the two do not tell the same words apart.
    """
    words = oracle.words if model.vocabulary is None else tuple(model.vocabulary)
    source = oracle.columns(words)
    size = len(oracle.language.terminals) + (oracle.objective == "causal")
    target = np.full(size, -1, dtype=np.int64)
    target[source[source >= 0]] = np.flatnonzero(source >= 0)
    if (target < 0).any():
        raise InputError("the truth tells words apart that the model does not; give the oracle the model's vocabulary")
    return Events(words, oracle.objective == "causal", source, target)


def truth_blocks(oracle: Oracle, batch: Batch, events: Events) -> Iterator[TruthBlock]:
    """The truth about one of the oracle's batches, positions in order."""
    for block in oracle.blocks(batch):
        yield TruthBlock(
            block.position,
            block.members,
            oracle.log_table(block, events.source),
            np.where(block.observed >= 0, events.target[block.observed], -1),
            block.whole,
            block.states,
        )


def batches_of(oracle: Oracle, sentences: Sequence[Sequence[str]], n_events: int) -> list[Batch]:
    """The oracle's batches, cut so that a block of one position holds at most `CELLS` numbers."""
    most = max(1, CELLS // n_events)
    return [
        Batch(np.ascontiguousarray(batch.words[:, at : at + most]), batch.members[at : at + most])
        for batch in oracle.batches(sentences)
        for at in range(0, len(batch.members), most)
    ]


def paired_blocks(
    model: DistributionModel, oracle: Oracle, sentences: Sequence[Sequence[str]], events: Events, description: str
) -> Iterator[tuple[TruthBlock, FloatArray]]:
    """Truth and model, (W, E) ln Q, at every position of some sentences; longest sentences first.

    Sentences that read the same are one row. Charts and networks run once for each different sentence.

    Raises:
        InputError: as the two sides' own, or the model's distributions have other columns.
    """
    with meter(description, len(sentences)) as progress:
        for batch in batches_of(oracle, sentences, len(events)):
            rows = [sentences[members[0]] for members in batch.members]
            expected = checked_distributions(model, rows, len(events))
            yield from matched(truth_blocks(oracle, batch, events), expected, len(events))
            progress.advance(sum(len(members) for members in batch.members))


def matched(
    truth: Iterator[TruthBlock], model: Iterator[LogDistributions], n_events: int
) -> Iterator[tuple[TruthBlock, FloatArray]]:
    """Blocks of both sides that belong together.

    Raises:
        InputError: the model's have other positions or columns, or hold NaN or more than probability 1.
    """
    for block, found in zip(truth, model, strict=True):
        if found.position != block.position or found.log_prob.shape != (len(block.members), n_events):
            raise InputError(
                f"the model's distributions are not those of position {block.position} over {n_events} events"
            )
        if not (found.log_prob <= 1e-9).all():
            raise InputError("the model's distributions hold values that are no log probabilities")
        yield block, np.ascontiguousarray(found.log_prob, dtype=np.float64)
