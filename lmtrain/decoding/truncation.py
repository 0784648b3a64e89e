"""Which tokens may come next: the sets of nucleus, top-k, typical, eta and epsilon sampling."""

from __future__ import annotations

import torch
from torch import Tensor

from truesource.lmtrain.decoding.settings import Decoding

PART = 512  #: of a large vocabulary, so many tokens are sorted first; more only in rows that need it


def next_law(log_p: Tensor, decoding: Decoding) -> Tensor:
    """What a sampling scheme draws the next token from.

    Args:
        log_p: (R, K) log probabilities of each row, nats; -inf for none.
        decoding: one of the sampling schemes.

    Returns:
        Probabilities (R, K), in proportion: a row sums to the mass of its set, 1 where nothing is left out.
    """
    if decoding.temperature not in (None, 1.0):
        log_p = torch.log_softmax(log_p / decoding.temperature, dim=1)
    p = log_p.exp()
    if 1.0 in (decoding.top_p, decoding.typical_p):  # all, also where rounding makes the sum a little less than 1
        return p
    if decoding.top_p is not None:
        return p * smallest_set(-p, p, decoding.top_p)
    if decoding.top_k is not None:
        return p * smallest_set(-p, torch.ones_like(p), min(decoding.top_k, p.shape[1]))
    if decoding.typical_p is not None:
        return p * smallest_set((log_p + entropy(log_p, p)).abs(), p, decoding.typical_p)
    if decoding.eta is not None:
        least = (0.5 * torch.log(log_p.new_tensor(decoding.eta)) - entropy(log_p, p)).exp().clamp(max=decoding.eta)
        return p * at_least(p, least)
    if decoding.epsilon is not None:
        return p * at_least(p, p.new_full((1, 1), decoding.epsilon))
    return p


def entropy(log_p: Tensor, p: Tensor) -> Tensor:
    """(R, 1), nats; tokens of probability zero add nothing."""
    return -(p * log_p.masked_fill(p == 0.0, 0.0)).sum(dim=1, keepdim=True)


def at_least(p: Tensor, least: Tensor) -> Tensor:
    """Tokens (R, K) of probability ``least`` or more, and the most probable one in any case."""
    return p >= torch.minimum(least, p.amax(dim=1, keepdim=True))


def smallest_set(key: Tensor, mass: Tensor, wanted: float) -> Tensor:
    """Take tokens in ascending order of ``key``, ties in order of number, until their mass is ``wanted`` or more.

    Args:
        key: (R, K).
        mass: (R, K), not negative.
        wanted: above 0.

    Returns:
        (R, K) whether the token is taken; all are where the whole mass is less.
    """
    if key.shape[1] <= 2 * PART:
        return _smallest_set(key, mass, wanted)
    front, at = key.topk(PART, dim=1, largest=False)
    at = at.sort(dim=1).values
    taken = _smallest_set(key.gather(1, at), mass.gather(1, at), wanted)
    result = torch.zeros_like(key, dtype=torch.bool).scatter_(1, at, taken)
    # the front is the whole story unless the last token taken ties with some that are not in it, or it was too little
    last = key.masked_fill(~result, -torch.inf).amax(dim=1)
    rest = (last >= front[:, -1]).nonzero()[:, 0]
    if len(rest):
        result[rest] = _smallest_set(key[rest], mass[rest], wanted)
    return result


def _smallest_set(key: Tensor, mass: Tensor, wanted: float) -> Tensor:
    order = torch.sort(key, dim=1, stable=True).indices
    sorted_mass = mass.gather(1, order)
    before = sorted_mass.cumsum(dim=1).roll(1, dims=1)
    before[:, 0] = 0.0
    return torch.zeros_like(key, dtype=torch.bool).scatter_(1, order, before < wanted)
