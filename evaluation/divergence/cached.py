"""The truth about a fixed set of sentences, kept, so that a model in training can be compared again and again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from truesource.evaluation.core.comparison import oracle_for
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.divergence.blocks import Events, TruthBlock, batches_of, events_of, matched, truth_blocks
from truesource.evaluation.divergence.measures import NAMES, measure_rows
from truesource.generator.abilities import checked_distributions
from truesource.generator.language_model import DistributionModel
from truesource.generator.plan import Transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter

CONTEXTS = 2000  #: kept unless more are asked for
_KEPT = ("kl", "js", "tv")


@dataclass(frozen=True, eq=False, kw_only=True)
class CachedTruth:
    """Exact distributions of some sentences in the columns of one model; made by `cache_truth`."""

    objective: str
    words: tuple[str, ...] | None  #: of the model that it was made for; None: every word of the grammar
    sentences: int  #: that are kept
    contexts: int  #: their positions
    groups: tuple[tuple[tuple[tuple[str, ...], ...], tuple[TruthBlock, ...]], ...]  #: sentences (W,), their blocks
    events: Events
    oracle: Oracle
    inputs: tuple[tuple[str, ...], ...]  #: the sentences that were looked at, the impossible ones too

    @property
    def memory(self) -> int:
        """Bytes of the probabilities that are kept."""
        return sum(block.log_prob.nbytes + block.states.nbytes for _, blocks in self.groups for block in blocks)

    def blocks(self, model: DistributionModel) -> Iterator[tuple[TruthBlock, FloatArray]]:
        """Truth and model, (W, E) ln Q, at every position that is kept.

        Raises:
            InputError: the model has another objective or other words than the one that this was made for.
        """
        if model.objective != self.objective or model.vocabulary != self.words:
            raise InputError("the truth was kept for a model of another objective or other words; keep it anew")
        for rows, blocks in self.groups:
            yield from matched(iter(blocks), checked_distributions(model, rows, len(self.events)), len(self.events))

    def compare(self, model: DistributionModel) -> dict[str, float]:
        """Where a model stands now.

        Returns:
            ``relative_ppl``, exp of the mean of ln P - ln Q over tokens; ``kl``, the mean over contexts of the exact
            KL(P || Q); ``js`` and ``tv`` likewise; nats. What is infinite is left out, and ``infinite`` is then the
            number of contexts in which KL is.

        Raises:
            InputError: the model has another objective or other words than the one that this was made for.
        """
        totals, gap, infinite = np.zeros(len(_KEPT)), 0.0, 0
        columns = [NAMES.index(name) for name in _KEPT]
        for block, q in self.blocks(model):
            p = np.asarray(block.log_prob, dtype=np.float64)
            weight = np.array([len(members) for members in block.members], dtype=np.float64)
            values = measure_rows(p, q, top=1).values
            at = np.arange(len(p)), block.observed
            totals += weight @ values[:, columns]
            gap += float(weight @ (p[at] - q[at]))
            infinite += int(weight @ np.isinf(values[:, 0]))
        found = {name: float(total) / self.contexts for name, total in zip(_KEPT, totals, strict=True)}
        mean = gap / self.contexts
        found["relative_ppl"] = math.exp(mean) if mean < math.log(np.finfo(np.float64).max) else math.inf
        if infinite:
            found["infinite"] = float(infinite)
        return {name: value for name, value in found.items() if math.isfinite(value)}


def cache_truth(
    model: DistributionModel,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    contexts: int = CONTEXTS,
    dtype: DTypeLike = np.float32,
    states: bool = False,
    transform: Transform | None = None,
) -> CachedTruth:
    """Compute and keep the exact distributions of the first sentences.

    Memory is contexts times words times 4 bytes (float32, which moves a divergence by less than 1e-5 nats a token) or
    8 (float64): 190 MB for 2,000 contexts of 24,000 words.

    Args:
        model: one with the objective and the words that later ones will have.
        pcfg: the grammar that the corpus was drawn from.
        sentences: of which as many are kept, in order, as have ``contexts`` positions together, and at least one.
        lengths: the length condition of the corpus.
        contexts: at most so many positions, but for the first sentence.
        dtype: float32 or float64.
        states: keep what the symbols of the next word weigh too, which classes of words need.
        transform: of the text, see `truesource.evaluation.core.oracle.Oracle`; for masked models.

    Raises:
        InputError: the truth can make none of these sentences, or one is empty.
    """
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InputError(f"the truth is kept in float32 or float64, not {np.dtype(dtype)}")
    oracle = oracle_for(model, pcfg, lengths, transform=transform)
    events = events_of(model, oracle)
    ends = np.cumsum([len(sentence) + events.causal for sentence in sentences])
    some = list(sentences[: max(1, int(np.searchsorted(ends, contexts, side="right")))])
    groups = []
    kept = positions = 0
    with meter("exact distributions of sentences, to compare with", len(some)) as progress:
        for batch in batches_of(oracle, some, len(events)):
            blocks = []
            for block in truth_blocks(oracle, batch, events):
                part = block.rows(np.flatnonzero(block.whole))
                kept_states = part.states if states else np.empty((len(part.members), 0))
                blocks.append(replace(part, log_prob=part.log_prob.astype(dtype), states=kept_states))
            progress.advance(sum(len(members) for members in batch.members))
            members = blocks[0].members
            if members:
                groups.append((tuple(tuple(some[m[0]]) for m in members), tuple(blocks)))
                kept += sum(map(len, members))
                positions += sum(map(len, members)) * len(blocks)
    if not groups:
        raise InputError(f"the grammar can make none of the {len(some)} sentences, so there is nothing to compare with")
    return CachedTruth(
        objective=oracle.objective,
        words=model.vocabulary,
        sentences=kept,
        contexts=positions,
        groups=tuple(groups),
        events=events,
        oracle=oracle,
        inputs=tuple(tuple(sentence) for sentence in some),
    )
