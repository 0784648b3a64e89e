"""PPL and PPLu with smaller vocabularies, of one fixed model (equation 15 of Roh et al. 2020).

The paper does not specify the treatment of dropped words, on which the result depends: ``skip`` excludes their
positions, ``merge`` adds them up in ``<unk>``, the only one that yields a language model, and
``renormalise`` excludes them and divides their probability among the others. By data processing, merging can only take
mutual information away from the truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

import numpy as np

from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.pplu.compare import UnigramModel
from truesource.generator.language_model import END, DistributionModel, LogDistributions
from truesource.generator.model_checks import checked_distributions
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter

Protocol = Literal["skip", "merge", "renormalise"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
ROWS = 64  #: sentences at once


@dataclass(frozen=True)
class ReducedVocabulary:
    """Perplexities with the most frequent words only."""

    words: int  #: kept
    protocol: Protocol
    tokens: int  #: that count
    ppl: float
    ppl_unigram: float
    pplu: float
    change_ppl: float  #: ``|PPL - PPL_full| / PPL_full`` (equation 15), a share
    change_pplu: float


def reduce_vocabulary(
    model: DistributionModel, sentences: Sequence[Sequence[str]], unigram: UnigramModel, sizes: Iterable[int]
) -> list[ReducedVocabulary]:
    """Return perplexities for some vocabulary sizes, words ordered by their unigram probability.

    Every position counts, ends of sentences too. ``<unk>`` as the model knows it belongs to what is dropped. One pass
    over the model's full distributions serves all sizes and protocols.

    Args:
        model: with full distributions; the oracle is one.
        sentences: possible for the model.
        unigram: of every word of the model, ``<unk>`` and, if causal, the end.
        sizes: words to keep, from 1 to all of them.

    Raises:
        InputError: a size is out of range, the model cuts words into pieces, or gives a token probability 0.
    """
    words = model.words if isinstance(model, Oracle) else model.vocabulary
    if words is None:
        raise InputError(f"{model.name} cuts words into pieces, so its vocabulary cannot be reduced")
    causal = model.objective == "causal"
    scores = np.array([unigram.log_prob.get(word, -np.inf) for word in words])
    order = np.argsort(-scores, kind="stable")
    kept_sizes = sorted({*sizes, len(words)})
    if kept_sizes[0] < 1 or kept_sizes[-1] > len(words):
        raise InputError(f"{model.name} has {len(words)} words; give sizes from 1 to that")
    rank = {words[i]: place for place, i in enumerate(order.tolist())}
    ends = [unigram.log_prob.get(name, -np.inf) for name in (UNKNOWN, *((END,) if causal else ()))]
    u_row = np.concatenate([scores[order], ends])[None]
    sums = np.zeros((len(kept_sizes), len(PROTOCOLS), 3))  # ln q, ln u, tokens
    groups = [list(group) for _, group in groupby(sorted(sentences, key=len), key=len)]
    parts = [group[i : i + ROWS] for group in groups for i in range(0, len(group), ROWS)]
    with meter("perplexity with smaller vocabularies, by sentence", total=len(sentences)) as progress:
        for part in parts:
            for block in checked_distributions(model, part):
                columns = _targets(part, block, rank, len(words))
                table = np.concatenate([block.log_prob[:, order], block.log_prob[:, len(words) :]], axis=1)
                for s, size in enumerate(kept_sizes):
                    sums[s] += _one_size(table, u_row, columns, size, len(words))
            progress.advance(len(part))
    if not np.isfinite(sums).all():
        raise InputError(f"{model.name} or the unigram distribution gives a token of the text no probability")
    return _results(kept_sizes, sums)


def halving(words: int, least: int = 10) -> list[int]:
    """Return a vocabulary size, half of it, a quarter, ... down to ``least``."""
    sizes = []
    while words >= least:
        sizes.append(words)
        words //= 2
    return sizes


def _targets(part: Sequence[Sequence[str]], block: LogDistributions, rank: Mapping[str, int], words: int) -> IntArray:
    """Return the column at the block's position in every sentence: rank of a word, then ``<unk>``, then the end."""
    if block.position == len(part[0]):
        return np.full(len(part), words + 1)
    return np.array([rank.get(sentence[block.position], words) for sentence in part])


def _one_size(table: FloatArray, u_row: FloatArray, columns: IntArray, size: int, words: int) -> FloatArray:
    """Return sums over the rows of a block for one vocabulary size, (3 protocols, 3)."""
    at = np.arange(len(columns))
    counted = (columns < size) | (columns > words)
    sums = np.zeros((len(PROTOCOLS), 3))
    n = float(counted.sum())
    for column, (values, of_model) in enumerate(((table, True), (u_row, False))):
        target = values[at if of_model else 0, columns]
        probability = np.exp(values)
        dropped = probability[:, size : words + 1].sum(axis=1)
        rest = probability[:, :size].sum(axis=1) + probability[:, words + 1 :].sum(axis=1)
        with np.errstate(divide="ignore"):
            merged, within = np.log(dropped), np.log(rest)
        if not of_model:
            merged, within = np.broadcast_to(merged, target.shape), np.broadcast_to(within, target.shape)
        sums[0, column] = target[counted].sum()
        sums[1, column] = target[counted].sum() + merged[~counted].sum()
        sums[2, column] = (target[counted] - within[counted]).sum()
    sums[:, 2] = n, len(columns), n
    return sums


def _results(sizes: Sequence[int], sums: FloatArray) -> list[ReducedVocabulary]:
    """Return perplexities and their changes against the whole vocabulary, whose words and ``<unk>`` all count."""
    values = np.exp(-sums[..., 0] / sums[..., 2]), np.exp(-sums[..., 1] / sums[..., 2])
    whole = float(values[0][-1, 1]), float((values[0] / values[1])[-1, 1])
    results = []
    for s, size in enumerate(sizes):
        for p, protocol in enumerate(PROTOCOLS):
            ppl, ppl_u = float(values[0][s, p]), float(values[1][s, p])
            change = abs(ppl - whole[0]) / whole[0], abs(ppl / ppl_u - whole[1]) / whole[1]
            results.append(ReducedVocabulary(size, protocol, int(sums[s, p, 2]), ppl, ppl_u, ppl / ppl_u, *change))
    return results
