"""Walking down a model token by token, and drawing on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.decoding.stepper import Stepper


class Next(NamedTuple):
    """What may come next after each of R rows."""

    log_p: Tensor  #: (R, K) float64, nats; -inf for tokens that never come; exp sums to 1
    log_kept: Tensor  #: (R,) log of the model's probability that it is none of those; add it for the model's own value


class Hypothesis(NamedTuple):
    """One sentence, as a scheme found it."""

    tokens: list[int]  #: without ``<eos>``
    finished: bool  #: whether it ended; otherwise it was cut
    log_prob: float  #: of the tokens, and of the end if there is one, under the model itself, nats
    score: float  #: what it competed with: log probability over a power of the number of tokens


class Walk:
    """A stepper without the tokens that no sentence contains, and the random numbers of one batch.

    Args:
        stepper: of the model.
        eos: number of the token that ends a sentence.
        never: numbers of tokens that must not be drawn: their probability goes to the rest in proportion.
        seed: of the random numbers, which also depend on the kind of device.
    """

    def __init__(self, stepper: Stepper, eos: int, never: Sequence[int], seed: int) -> None:
        self.eos = eos
        self.special, self.contexts = 0.0, 0  #: probability of ``never``, summed over so many contexts
        self._stepper, self._seed = stepper, seed
        self._never = torch.tensor(list(never), dtype=torch.int64)

    def start(self, n: int) -> Next:
        """Begin ``n`` empty rows."""
        log_prob = self._stepper.start(n)
        self.device = log_prob.device
        self.generator = torch.Generator(device=self.device).manual_seed(self._seed)
        self._never = self._never.to(self.device)
        return self._next(log_prob)

    def extend(self, parents: Tensor, tokens: Tensor) -> Next:
        """Go on with some rows, each one token longer; see `Stepper.extend`."""
        return self._next(self._stepper.extend(parents, tokens))

    def _next(self, log_prob: Tensor) -> Next:
        log_prob = log_prob.double()
        lost = log_prob[:, self._never].exp().sum(dim=1)
        self.special += lost.sum().item()
        self.contexts += len(lost)
        log_kept = torch.log1p(-lost)
        if not torch.isfinite(log_kept).all():
            raise InputError("the model's probabilities are not finite, or none is left for any word")
        return Next((log_prob - log_kept[:, None]).index_fill_(1, self._never, -torch.inf), log_kept)

    def draw(self, p: Tensor, k: int) -> Tensor:
        """Tokens (R, k), drawn k times independently from each row of ``p`` (R, K), which need not sum to 1."""
        sums = p.cumsum(dim=1)
        total = sums[:, -1:].contiguous()
        if not (torch.isfinite(total) & (total > 0.0)).all():
            raise InputError("the model's probabilities are not finite, or none is left for any word")
        uniform = torch.rand((len(p), k), generator=self.generator, device=p.device, dtype=p.dtype)
        drawn = torch.searchsorted(sums, uniform * total, right=True)
        last = torch.searchsorted(sums, total)  # rounding must not reach beyond the last token that has probability
        return torch.minimum(drawn, last)

    def gumbel(self, like: Tensor) -> Tensor:
        """Independent standard Gumbel numbers of the shape of ``like``."""
        uniform = torch.rand(like.shape, generator=self.generator, device=like.device, dtype=like.dtype)
        return uniform.log_().neg_().log_().neg_()
