"""The 2-local entropy of a language whose words are in another order: what one word tells of the next."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.special import entr, softmax

from truesource.generator.plan import Transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.any_order import AnyOrder
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.truth import load_truth
from truesource.run.config import RunConfig
from truesource.studies.reproduce.run_records import RunRecord


def local_entropy(folder: Path, config: RunConfig) -> list[RunRecord]:
    """Return ``local_entropy``, nats a token: the loss of the best predictor from one word, in the corpus's order.

    Exact: the expected number of each pair of words that the order brings together is a sum of probabilities of two
    known places (Someya et al. 2025, with m = 2; the end of a sentence is a token, its beginning a word).
    """
    truth, lengths = load_truth(folder / "grammar" / "grammar.npz"), config.corpus.lengths
    assert isinstance(truth, PCFG) and lengths is not None
    pairs = pair_counts(truth, lengths, config.corpus.words_order)
    return [RunRecord({"name": "local_entropy", "value": conditional_entropy(pairs), "words": 1})]


def pair_counts(pcfg: PCFG, lengths: LengthRange, transform: Transform | None = None) -> FloatArray:
    """Return the expected number of each word after each word in a sentence of the new order, (V+1, V+1).

    The last row is the beginning of a sentence, the last column its end. All entries sum to the expected number of
    tokens, ends included.

    Args:
        pcfg: of the original order.
        lengths: of sentences.
        transform: the new order (default: the original one).
    """
    truth, size = AnyOrder(pcfg), len(pcfg.vocabulary)
    numbers = range(lengths.low, lengths.high + 1)
    weights = softmax(truth.log_probs([[None] * n for n in numbers]))
    counts = np.zeros((size + 1, size + 1))
    for n, weight in zip(numbers, weights.tolist(), strict=True):
        if weight == 0.0:
            continue
        order = np.arange(n) if transform is None else transform.permutation(n)
        alone = weight * truth.denoise(np.full((1, n), -1))[0]
        counts[size, :size] += alone[order[0]]
        counts[:size, size] += alone[order[-1]]
        for before, after in zip(order[:-1].tolist(), order[1:].tolist(), strict=True):
            possible = np.flatnonzero(alone[before])
            patterns = np.full((len(possible), n), -1)
            patterns[:, before] = possible
            counts[possible, :size] += alone[before, possible, None] * truth.denoise(patterns)[:, after]
    return counts


def conditional_entropy(counts: FloatArray) -> float:
    """Return the entropy of the column given the row, nats, of a table of expected numbers."""
    totals = counts.sum(axis=1)
    return float((entr(counts).sum() - entr(totals).sum()) / counts.sum())
