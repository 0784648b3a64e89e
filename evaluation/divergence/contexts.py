"""Every context of some sentences measured once: what all estimates and tables are made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.tag_classes import PENN, TagClasses
from truesource.evaluation.divergence.blocks import TruthBlock, events_of, paired_blocks
from truesource.evaluation.divergence.calibration import Reliability
from truesource.evaluation.divergence.groups import frequency_bands, word_classes
from truesource.evaluation.divergence.measures import NAMES, measure_rows
from truesource.generator.language_model import DistributionModel
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import NothingToMeasureError


@dataclass(frozen=True, eq=False, kw_only=True)
class Contexts:
    """Measures of the T contexts of N sentences, in sentence order, then position order."""

    values: FloatArray  #: (T, M) columns are `truesource.evaluation.divergence.measures.NAMES`
    truth: FloatArray  #: (T,) ln P of what stands there, nats
    model: FloatArray  #: (T,) ln Q of what stands there, nats; -inf where the model gives it no probability
    sentence: IntArray  #: (T,) number of the sentence in the input; those of `excluded` do not occur
    position: IntArray  #: (T,) 0 to n; n is the end of the sentence
    length: IntArray  #: (T,) words of the sentence
    excluded: IntArray  #: sentences that the truth cannot make
    n_sentences: int  #: sentences given, the excluded ones too
    reliability: Reliability
    divided: dict[str, DividedDivergence]  #: by ``class`` and ``frequency``, where asked for

    def column(self, name: str) -> FloatArray:
        """One measure, (T,)."""
        return self.values[:, NAMES.index(name)]

    @property
    def starts(self) -> IntArray:
        """Where each kept sentence begins, (K,)."""
        return np.flatnonzero(np.diff(self.sentence, prepend=-1))

    def per_sentence(self, values: FloatArray) -> FloatArray:
        """Sums over the contexts of each kept sentence, (K, ...)."""
        return np.add.reduceat(values, self.starts, axis=0)


@dataclass(frozen=True, eq=False)
class DividedDivergence:
    """KL(P || Q) divided among groups of what comes next, summed over the contexts of each kept sentence."""

    names: tuple[str, ...]  #: (G,)
    share: FloatArray  #: (K, G) expected number of tokens of the group
    part: FloatArray  #: (K, G) sum of P (ln P - ln Q) over the group, nats, where it is finite
    infinite: IntArray  #: (G,) contexts in which it is infinite; they count in neither of the two
    tokens: FloatArray  #: (G,) expected number of tokens of the group in all contexts


def measure_contexts(
    model: DistributionModel,
    oracle: Oracle,
    sentences: Sequence[Sequence[str]],
    *,
    top: int = 10,
    by: Sequence[str] = (),
    classes: TagClasses = PENN,
    blocks: Iterable[tuple[TruthBlock, FloatArray]] | None = None,
) -> Contexts:
    """Compare the full distributions of model and truth in every context of some sentences.

    Charts and networks run once for each different sentence. Memory holds a few blocks of one position, and some 120
    bytes a context.

    Args:
        model: its distributions have the oracle's words.
        oracle: as `truesource.evaluation.core.comparison.oracle_for` makes it.
        sentences: at least one token each.
        top: size of the sets of most probable events.
        by: ``class`` and ``frequency`` divide the divergence among groups of words.
        classes: of ``class``.
        blocks: both sides at every position of these very sentences, if they are at hand; None: computed here.

    Raises:
        InputError: a sentence is empty or too long for the model, the truth can make none of them, or the two sides
            do not share their words.
    """
    events = events_of(model, oracle)
    table = _ContextTable(np.array([len(s) + events.causal for s in sentences], dtype=np.int64))
    reliability = Reliability()
    bands, names = frequency_bands(oracle, events) if "frequency" in by else (None, ())
    divider = word_classes(oracle, classes) if "class" in by else None
    collect = {"frequency": _Collect(names, len(sentences))} if "frequency" in by else {}
    if divider is not None:
        collect["class"] = _Collect(divider.names, len(sentences))
    if blocks is None:
        blocks = paired_blocks(model, oracle, sentences, events, "divergence from the truth, by sentence")
    for block, q in blocks:
        kept = np.flatnonzero(block.whole)
        if len(kept) == 0:
            continue
        members = [block.members[row] for row in kept]
        repeats = np.array([len(m) for m in members])
        which = np.concatenate([np.asarray(m, dtype=np.int64) for m in members])
        rows = np.repeat(np.arange(len(kept)), repeats)
        p, q, observed = np.asarray(block.log_prob[kept], dtype=np.float64), q[kept], block.observed[kept]
        measured = measure_rows(p, q, top=top, groups=bands, weight=repeats.astype(np.float64), reliability=reliability)
        truth, found = (side[np.arange(len(kept)), observed][rows] for side in (p, q))
        table.add(which, block.position, measured.values[rows], truth, found)
        if "frequency" in by:
            collect["frequency"].add(which, measured.share[rows], measured.grouped[rows])
        if divider is not None:
            share, part = divider.divide(oracle, events, block.rows(kept), q)
            collect["class"].add(which, share[rows], part[rows])
    return table.contexts(events.causal, reliability, collect)


class _ContextTable:
    """What is measured in every context, sentence after sentence, as blocks of one position come in.

    Args:
        sizes: contexts of each sentence, (S,).
    """

    def __init__(self, sizes: IntArray) -> None:
        self._sizes, self._first = sizes, np.cumsum(sizes) - sizes
        total = int(sizes.sum())
        self._values, self._log_prob = np.zeros((total, len(NAMES))), np.zeros((2, total))
        self._possible = np.zeros(len(sizes), dtype=bool)

    def add(self, sentence: IntArray, position: int, values: FloatArray, truth: FloatArray, model: FloatArray) -> None:
        """Take in one position of some sentences."""
        at = self._first[sentence] + position
        self._values[at] = values
        self._log_prob[0, at], self._log_prob[1, at] = truth, model
        self._possible[sentence] = True

    def contexts(self, ends: int, reliability: Reliability, collect: Mapping[str, _Collect]) -> Contexts:
        """All of the sentences that the truth can make; ``ends``: contexts of a sentence beyond its words."""
        n = len(self._sizes)
        if not self._possible.any():
            raise NothingToMeasureError(
                f"the grammar can make none of the {n} sentences, so there is nothing to compare",
                "no-possible-sentence",
            )
        sentence = np.repeat(np.arange(n), self._sizes)
        kept = self._possible[sentence]
        return Contexts(
            values=self._values[kept],
            truth=self._log_prob[0, kept],
            model=self._log_prob[1, kept],
            sentence=sentence[kept],
            position=(np.arange(len(sentence)) - self._first[sentence])[kept],
            length=(self._sizes - ends)[sentence][kept],
            excluded=np.flatnonzero(~self._possible),
            n_sentences=n,
            reliability=reliability,
            divided={name: collected.of(self._possible) for name, collected in collect.items()},
        )


class _Collect:
    """Sums of groups by sentence."""

    def __init__(self, names: Sequence[str], n_sentences: int) -> None:
        self._names = tuple(names)
        self._share, self._part = np.zeros((2, n_sentences, len(self._names)))
        self._tokens = np.zeros(len(self._names))
        self._infinite = np.zeros(len(self._names), dtype=np.int64)

    def add(self, sentence: IntArray, share: FloatArray, part: FloatArray) -> None:
        finite = np.isfinite(part)
        self._tokens += share.sum(axis=0)
        self._infinite += (~finite).sum(axis=0)
        np.add.at(self._share, sentence, np.where(finite, share, 0.0))
        np.add.at(self._part, sentence, np.where(finite, part, 0.0))

    def of(self, kept: BoolArray) -> DividedDivergence:
        return DividedDivergence(self._names, self._share[kept], self._part[kept], self._infinite, self._tokens)
