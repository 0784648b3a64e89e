"""Sentences ranked by PPL and PPLu (table 2 of Roh et al. 2020).

PPLu asks how much better than its words' frequencies a sentence is predicted, so it favours rare words that go
together: it is a mean pointwise mutual information, with the bias that this has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from truesource.evaluation.pplu.compare import UnigramPerplexity
from truesource.grammar.support.errors import InputError


@dataclass(frozen=True)
class RankedSentence:
    """A sentence, its perplexities per token (with the end, if it counts) and its ranks from 1, lowest first."""

    sentence: int  #: number in the input
    text: str
    ppl: float
    pplu: float
    rank_ppl: int
    rank_pplu: int
    rank_truth_ppl: int | None = None  #: None without a grammar
    rank_truth_pplu: int | None = None


@dataclass(frozen=True)
class Rankings:
    """All sentences, and how the rankings agree."""

    rows: list[RankedSentence]  #: in the order of the input
    tau: dict[tuple[str, str], float]  #: Kendall's tau-b of every two rankings, in [-1, 1]; none where all tie

    def top(self, k: int, by: str, *, last: bool = False) -> list[RankedSentence]:
        """Return the k first, or last, by ``ppl``, ``pplu``, ``truth_ppl`` or ``truth_pplu``."""
        ordered = sorted(self.rows, key=lambda row: int(getattr(row, f"rank_{by}")))
        return ordered[::-1][:k] if last else ordered[:k]


def rank_sentences(scored: UnigramPerplexity, sentences: Sequence[Sequence[str]]) -> Rankings:
    """Rank the sentences that `compare_pplu` scored.

    Args:
        scored: result of `compare_pplu`.
        sentences: its sentences.

    Raises:
        InputError: fewer than 2 sentences were scored.
    """
    numbers, row = np.unique(scored.sentence, return_inverse=True)
    if len(numbers) < 2:
        raise InputError("a ranking needs 2 sentences or more")
    n = np.bincount(row)
    model, unigram = (np.bincount(row, x) / n for x in (scored.log_model, scored.log_unigram))
    values = {"ppl": -model, "pplu": unigram - model}
    if scored.log_truth is not None:
        truth = np.bincount(row, scored.log_truth) / n
        values |= {"truth_ppl": -truth, "truth_pplu": unigram - truth}
    ranks = {name: stats.rankdata(value, method="ordinal") for name, value in values.items()}
    rows = [
        RankedSentence(
            int(number),
            " ".join(sentences[int(number)]),
            float(np.exp(values["ppl"][i])),
            float(np.exp(values["pplu"][i])),
            *(int(ranks[name][i]) for name in values),
        )
        for i, number in enumerate(numbers)
    ]
    tau = {(a, b): float(stats.kendalltau(values[a], values[b]).statistic) for a, b in combinations(values, 2)}
    return Rankings(rows, {pair: value for pair, value in tau.items() if np.isfinite(value)})
