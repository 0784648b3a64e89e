"""Marginal gaps of documents, log P(D) - log P(T*), with entropies (Cao & Rimell 2021, section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.measures.bootstrap import ci_part, ends
from truesource.evaluation.measures.correlation import spearman, spearman_ends
from truesource.evaluation.tokenisation.lattice import entropy
from truesource.evaluation.tokenisation.results import Evaluation, pool, ratio_scores
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.settings import DEFAULT_SEED


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginalGaps:
    """The marginal gaps of N documents of one set or of several pooled sets."""

    model: str
    run: str  #: label of the run that estimated log P(D)
    sets: tuple[str, ...]  #: (N,) name of the set of each document
    gap: FloatArray  #: (N,) log P(D) - log P(T*), nats; may be negative for estimates
    entropy: FloatArray  #: (N,) entropy H of the tokeniser's Q over the segmentations of each document, nats
    pieces: FloatArray  #: (N,) ``|T*|``
    scores: Mapping[str, Score]  #: see `marginal_gaps`

    def rows(self) -> list[dict[str, str | float]]:
        """Return a row for each document: set, gap, entropy, pieces, and gap and entropy per piece."""
        rows = zip(self.sets, self.gap.tolist(), self.entropy.tolist(), self.pieces.tolist(), strict=True)
        return [
            {
                "model": self.model,
                "run": self.run,
                "set": name,
                "gap": gap,
                "entropy": h,
                "pieces": int(n),
                "gap_per_piece": gap / n,
                "entropy_per_piece": h / n,
            }
            for name, gap, h, n in rows
        ]


def marginal_gaps(
    evaluations: Mapping[str, Evaluation], run: str, *, b: float = 1.0, seed: int = DEFAULT_SEED
) -> MarginalGaps:
    """Compute gaps and entropies, pooled over sets (Cao & Rimell 2021, section 4.2 and figure 2).

    Scores: ``gap``, mean per document, nats; ``gap_per_piece`` and ``entropy_per_piece``, sums over sums of ``|T*|``,
    nats; ``entropy_gap_rho``, Spearman's correlation over documents of H with gap, each over ``|T*|``, in [-1, 1],
    if there are at least three documents; gaps within the rounding error of log P(D) are ties. The correlation
    depends on the estimator: a loose lower bound of P(D) lowers it. Intervals are from a document
    bootstrap, for the correlation from the jackknife.

    Args:
        evaluations: evaluations of one model, by name of the set.
        run: label of the run whose log P(D) is used, in each evaluation.
        b: inverse temperature of Q.
        seed: seed of the bootstrap.
    """
    sets = tuple(name for name, pooled in evaluations.items() for _ in pooled.documents)
    pooled = pool(evaluations)
    gap = pooled.log_p(run) - pooled.one_best
    pieces = pooled.pieces
    entropies = np.array([entropy(document.lattice, b) for document in pooled.documents])

    def signed(unit: str, method: Literal["t", "jackknife"] = "t") -> str:
        parts = {"ci": ci_part(len(gap), seed, "document", method=method), "entropy-b": f"{b:g}"}
        return pooled.signed(run, **parts, unit=unit)

    columns = {
        "gap": (gap, np.ones(len(gap))),
        "gap_per_piece": (gap, pieces),
        "entropy_per_piece": (entropies, pieces),
    }
    units = {"gap": "nats/document", "gap_per_piece": "nats/piece", "entropy_per_piece": "nats/piece"}
    scores = ratio_scores(columns, {name: signed(unit) for name, unit in units.items()}, seed)
    if len(gap) >= 3:
        rounded_gap = np.where(np.abs(gap) > pooled.rounding * np.abs(pooled.one_best), gap, 0.0)
        x, y = entropies / pieces, rounded_gap / pieces
        interval = ends(*spearman_ends(x, y, np.arange(len(x))))
        scores["entropy_gap_rho"] = Score("entropy_gap_rho", spearman(x, y), signed("spearman", "jackknife"), *interval)
    return MarginalGaps(
        model=pooled.model, run=run, sets=sets, gap=gap, entropy=entropies, pieces=pieces, scores=scores
    )
