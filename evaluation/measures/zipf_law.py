"""The Zipf-Mandelbrot law with finite support, and its maximum likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import NothingToMeasureError

LEAST_TYPES = 3  #: types needed to fit two parameters
ALPHA = (1e-6, 30.0)  #: bounds of the search for alpha
STARTS = ((1.0, 0.0), (1.0, 2.7), (1.5, 30.0))  #: (alpha, beta)
_POLISH = 20  #: Newton steps at most after the search


@dataclass(frozen=True, kw_only=True)
class Law:
    """A fitted law and its distance from the counts."""

    alpha: float  #: exponent, above 0
    beta: float  #: shift, 0 or more; 0 is Zipf's own law
    types: int  #: K, the support is 1..K
    tokens: int  #: N, tokens counted
    kl: float  #: KL(counts || law), nats per token; not 0 for counts drawn from the law, (K-1)/2N where none is small
    tv: float  #: total variation between the two, in [0, 1]
    interior: bool  #: false if alpha or a large beta is at the bound of the search: no power law

    def pmf(self, ranks: FloatArray | None = None) -> FloatArray:
        """Return the probability of each rank, (K,), or of the given ones."""
        _, log_p = log_pmf(self.alpha, self.beta, self.types)
        return np.exp(log_p) if ranks is None else np.exp(log_p)[np.asarray(ranks, dtype=np.int64) - 1]


def log_pmf(alpha: float, beta: float, types: int) -> tuple[FloatArray, FloatArray]:
    """Return ``r + beta`` and the log probability of r = 1..K, (K,) each."""
    x = np.arange(1, types + 1, dtype=np.float64) + beta
    logits = -alpha * np.log(x)
    return x, logits - (logits.max() + math.log(np.exp(logits - logits.max()).sum()))


def objective(alpha: float, beta: float, share: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return the mean negative log-likelihood with its derivatives.

    Args:
        alpha: exponent.
        beta: shift.
        share: (K,) share of the tokens at each rank, summing to 1.

    Returns:
        ``alpha sum_r s_r ln(r+beta) + ln sum_r (r+beta)^-alpha`` in nats per token, its gradient (2,) and its Hessian
        (2, 2) in (alpha, beta).
    """
    x, log_p = log_pmf(alpha, beta, len(share))
    p, log_x, inverse = np.exp(log_p), np.log(x), 1.0 / x
    excess = share - p
    mean_log, mean_inverse = p @ log_x, p @ inverse
    gradient = np.array([excess @ log_x, alpha * (excess @ inverse)])
    cross = excess @ inverse + alpha * (p @ (log_x * inverse) - mean_log * mean_inverse)
    square = inverse * inverse
    curved = alpha * (alpha * (p @ square - mean_inverse**2) - excess @ square)
    hessian = np.array([[p @ (log_x * log_x) - mean_log**2, cross], [cross, curved]])
    return -float(share @ log_p), gradient, hessian


def fit_law(counts: NDArray[Any], *, pure: bool = False) -> Law:
    """Fit the law to counts by rank, by maximum likelihood.

    A bounded search (L-BFGS-B over alpha and ln(1+beta), analytic gradient, three starts) precedes Newton steps.

    Args:
        counts: (K,) occurrences at rank 1, 2, ..., observed or expected, zeros allowed; the ranks must not come from
            these counts.
        pure: Zipf's law, ``beta = 0``.

    Raises:
        InputError: fewer than 3 ranks, or no more than one word was counted.
    """
    if len(counts) < LEAST_TYPES or np.count_nonzero(counts) < LEAST_TYPES - 1:
        raise NothingToMeasureError(
            f"a Zipf-Mandelbrot law needs at least {LEAST_TYPES} different words, two of them in the counted half;"
            f" got {len(counts)} and {np.count_nonzero(counts)}",
            "too-few-words",
        )
    share = counts / counts.sum()
    highest = 0.0 if pure else math.log1p(10.0 * len(counts))

    def value(at: FloatArray) -> tuple[float, FloatArray]:
        loss, gradient, _ = objective(float(at[0]), math.expm1(float(at[1])), share)
        return loss, gradient * [1.0, 0.0 if pure else math.exp(float(at[1]))]

    best = min(
        (
            optimize.minimize(
                value,
                np.array([alpha, min(math.log1p(beta), highest)]),
                jac=True,
                method="L-BFGS-B",
                bounds=[ALPHA, (0.0, highest)],
                options={"maxiter": 500, "ftol": 1e-15, "gtol": 1e-10},
            )
            for alpha, beta in (STARTS[:1] if pure else STARTS)
        ),
        key=lambda fit: float(fit.fun),
    )
    alpha, beta = _polished(float(best.x[0]), math.expm1(float(best.x[1])), share, pure)
    _, log_p = log_pmf(alpha, beta, len(share))
    seen = share > 0.0
    return Law(
        alpha=alpha,
        beta=beta,
        types=len(share),
        tokens=int(counts.sum()),
        kl=max(0.0, float(share[seen] @ (np.log(share[seen]) - log_p[seen]))),
        tv=0.5 * float(np.abs(share - np.exp(log_p)).sum()),
        interior=ALPHA[0] < alpha < ALPHA[1] and (pure or beta < 0.99 * math.expm1(highest)),
    )


def _polished(alpha: float, beta: float, share: FloatArray, pure: bool) -> tuple[float, float]:
    """Make Newton steps from an interior point while they reduce the gradient."""
    free = 1 if pure or beta <= 0.0 else 2
    at = np.array([alpha, beta])
    _, gradient, hessian = objective(alpha, beta, share)
    for _ in range(_POLISH):
        try:
            step = np.linalg.solve(hessian[:free, :free], gradient[:free])
        except np.linalg.LinAlgError:
            break
        near = at.copy()
        near[:free] -= step
        if not (ALPHA[0] < near[0] < ALPHA[1]) or near[1] < 0.0:
            break
        _, next_gradient, next_hessian = objective(float(near[0]), float(near[1]), share)
        if np.abs(next_gradient[:free]).max() >= np.abs(gradient[:free]).max():
            break
        at, gradient, hessian = near, next_gradient, next_hessian
    return float(at[0]), float(at[1])
