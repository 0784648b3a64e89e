"""Distributions of model and truth side by side, position by position, and the groups that their events belong to.

Groups are frequency bands of words, and classes of the symbols that words come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.core.tag_classes import PENN, TagClasses, tags_of
from truesource.generator.abilities import checked_distributions
from truesource.generator.language_model import DistributionModel, LanguageModel, LogDistributions
from truesource.grammar.inference.batch import Batch
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter

CELLS = 2**22  #: most numbers in a block of one position (32 MiB); some ten such blocks stand in memory at once
END = "(end)"  #: the group of sentence ends in records; tables and figures say "sentence ends"
RAREST = -7  #: power of ten; rarer words are in one band


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


def frequency_bands(oracle: Oracle, events: Events) -> tuple[IntArray, tuple[str, ...]]:
    """Group of each event by its exact probability among all tokens, ends of sentences included, and their names.

    A band is a power of ten. ``<unk>`` and the end are groups of their own.

    Raises:
        InputError: expected counts are infinite (spectral radius 1 or more, and no length range).
    """
    counts = expected_counts(oracle.language, oracle.lengths).words
    unigram = np.append(counts / (counts.sum() + events.causal), 0.0)[events.source[: len(events.words)]]
    with np.errstate(divide="ignore"):
        power = np.clip(np.floor(np.log10(unigram) + 1e-12), RAREST, -1)
    order = np.unique(power)[::-1]
    names = [_band(int(p)) for p in order.tolist()]
    extra = [UNKNOWN, END][: 1 + events.causal]
    groups = np.searchsorted(-order, -power)
    return np.append(groups, len(order) + np.arange(len(extra))).astype(np.int64), (*names, *extra)


def _band(power: int) -> str:
    """Name of the band from 10 to that power on."""
    upper = "1" if power == -1 else f"1/{10 ** -(power + 1):,}"
    return f"below {upper}" if power == RAREST else f"1/{10**-power:,} to {upper}"


@dataclass(frozen=True, eq=False)
class PreterminalClasses:
    """Classes of the preterminals of a grammar."""

    names: tuple[str, ...]  #: (C,) the end of a sentence is the last, if causal
    of_state: FloatArray  #: (S, C) 1 where a symbol is in a class

    def divide(self, oracle: Oracle, events: Events, block: TruthBlock, model: FloatArray) -> tuple[FloatArray, ...]:
        """P of each class at the next token, and its part of KL(P || Q), (W, C) each.

        The class is that of the symbol that makes the word, whose posterior given the left context and the word is
        exact: summed over the words, so that nothing of the divergence is left to the token that was drawn. Parts are
        inf where the model gives no probability to a word of the class.
        """
        gap = np.zeros(block.log_prob.shape)
        np.subtract(block.log_prob, model, out=gap, where=block.log_prob > -np.inf)
        exact = oracle.language.exact
        n_words = len(oracle.language.terminals)
        per_state = np.asarray(exact.emission @ gap[:, events.target[:n_words]].T).T
        part = np.where(block.states > 0.0, block.states * np.where(block.states > 0.0, per_state, 0.0), 0.0)
        infinite = np.isinf(part)
        share = (block.states * exact.lexical_sums) @ self.of_state
        divided = np.where(infinite, 0.0, part) @ self.of_state
        divided[(infinite @ self.of_state) > 0.0] = np.inf
        if events.causal:
            end = np.exp(block.log_prob[:, -1])
            share[:, -1] = end
            divided[:, -1] = np.where(end > 0.0, end * np.where(end > 0.0, gap[:, -1], 0.0), 0.0)
        return share, divided


def word_classes(oracle: Oracle, classes: TagClasses = PENN) -> PreterminalClasses:
    """The classes of an oracle's grammar.

    Raises:
        InputError: ``classes`` miss one of its tags.
    """
    grammar = oracle.language
    tags = tags_of(grammar)
    names, of_tag = classes.table(tags)
    ends = (END,) if oracle.objective == "causal" else ()
    of_state = np.zeros((len(grammar.symbols), len(names) + len(ends)))
    for state in np.unique(grammar.lexical[:, 0]).tolist():
        of_state[state, : len(names)] = of_tag[tags.index(grammar.labels[state])]
    return PreterminalClasses((*names, *ends), of_state)
