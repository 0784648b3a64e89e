"""Linear probes of hidden states: multinomial logistic regressions, trained to soft or hard labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

WEIGHT_DECAYS = (1e-1, 1e-2, 1e-3, 1e-4)  #: strongest first
ITERATIONS = 10  #: of L-BFGS between two looks at the dev part
LOOKS = 30  #: maximum number
PATIENCE = 2  #: looks without improvement before training stops
IMPROVEMENT = 1e-4  #: nats of dev cross-entropy that count as one


@dataclass(frozen=True, eq=False)
class LinearProbe:
    """``softmax(W (x - mean) / scale + b)``."""

    weight: FloatArray  #: (C, D)
    bias: FloatArray  #: (C,)
    mean: FloatArray  #: (D,) of the train part
    scale: FloatArray  #: (D,) standard deviation of the train part, 1 instead of 0
    weight_decay: float  #: weight decay of its training
    dev_loss: float  #: cross-entropy on the dev part, nats

    def log_probs(self, x: NDArray[np.floating]) -> FloatArray:
        """Return the log probability of each label, (N, C) nats, for vectors (N, D)."""
        logits = _standard(x, self.mean, self.scale) @ self.weight.T + self.bias
        top = logits.max(axis=1, keepdims=True)
        result: FloatArray = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        return result


def fit_linear(
    x: NDArray[np.floating],
    targets: FloatArray,
    dev_x: NDArray[np.floating],
    dev_targets: FloatArray,
    *,
    weight_decays: Sequence[float] = WEIGHT_DECAYS,
) -> LinearProbe:
    """Minimise cross-entropy + ``weight_decay / 2 * |W|^2`` (of standardised inputs, the bias is free) by L-BFGS.

    Full batches in float64, from zero weights and the labels' frequencies, so one machine gives the same probe each
    time. Every few iterations the cross-entropy on the dev part is looked at; the weights that were best there are
    kept, and training stops when it improves no more. Weight decays are tried in the order given, each from the weights
    of the one before.

    Args:
        x: (N, D) vectors to learn from.
        targets: (N, C) probability of each label, rows sum to one; hard labels are rows of zeros with a one.
        dev_x: (M, D) for early stopping, and for the choice of the weight decay.
        dev_targets: (M, C).
        weight_decays: values to choose from.

    Raises:
        InputError: a part is empty, there are fewer than two labels, or nothing to choose from.
    """
    if len(x) == 0 or len(dev_x) == 0 or targets.shape[1] < 2 or not weight_decays:
        raise InputError("a probe needs words to learn from and to look at, two labels, and a weight decay")
    mean, spread = (np.asarray(f(x, axis=0, dtype=np.float64)) for f in (np.mean, np.std))
    scale = np.where(spread > 1e-12 * np.maximum(1.0, np.abs(mean)), spread, 1.0)
    inputs, dev_inputs = (torch.from_numpy(_standard(rows, mean, scale)) for rows in (x, dev_x))
    labels, dev_labels = torch.from_numpy(targets), torch.from_numpy(dev_targets)
    weight = torch.zeros(targets.shape[1], x.shape[1], dtype=torch.float64)
    bias = torch.from_numpy(np.log((targets.mean(axis=0) + 1.0 / len(x)) / (1.0 + targets.shape[1] / len(x))))
    best: LinearProbe | None = None
    for decay in weight_decays:
        weight, bias, loss = _minimise(inputs, labels, dev_inputs, dev_labels, weight, bias, decay)
        if best is None or loss < best.dev_loss:
            best = LinearProbe(weight.numpy(), bias.numpy(), mean, scale, decay, loss)
    assert best is not None
    return best


def _standard(x: NDArray[np.floating], mean: FloatArray, scale: FloatArray) -> FloatArray:
    """Return ``(x - mean) / scale``, with no other copy of ``x`` than the result."""
    result: FloatArray = np.subtract(x, mean, dtype=np.float64)
    result /= scale
    return result


def _minimise(
    x: Tensor, targets: Tensor, dev_x: Tensor, dev_targets: Tensor, weight: Tensor, bias: Tensor, decay: float
) -> tuple[Tensor, Tensor, float]:
    """Return the weights that were best on the dev part, and their loss there."""
    weight, bias = weight.clone().requires_grad_(), bias.clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [weight, bias], max_iter=ITERATIONS, tolerance_grad=1e-7, tolerance_change=1e-10, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = functional.cross_entropy(functional.linear(x, weight, bias), targets)
        loss = loss + decay / 2 * weight.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    def dev_loss() -> float:
        with torch.no_grad():
            return float(functional.cross_entropy(functional.linear(dev_x, weight, bias), dev_targets))

    best = weight.detach().clone(), bias.detach().clone(), dev_loss()
    waited = 0
    for _ in range(LOOKS):
        optimiser.step(closure)  # type: ignore[no-untyped-call]
        loss = dev_loss()
        waited = 0 if loss < best[2] - IMPROVEMENT else waited + 1
        if loss < best[2]:
            best = weight.detach().clone(), bias.detach().clone(), loss
        if waited == PATIENCE:
            break
    return best
