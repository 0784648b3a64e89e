"""Sentences drawn token by token, each by itself."""

from __future__ import annotations

import torch

from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.decoding.truncation import next_law
from truesource.lmtrain.decoding.walk import Hypothesis, Walk


def sample_each(walk: Walk, n: int, decoding: Decoding) -> list[list[Hypothesis]]:
    """Draw n sentences under one of the sampling schemes; each is the only hypothesis of its list."""
    return [[one] for one in _sample(walk, n, decoding)]


def sample_in_groups(walk: Walk, n: int, decoding: Decoding) -> list[list[Hypothesis]]:
    """Draw n times ``decoding.width`` independent sentences, each group sorted by score, as fairseq does."""
    k = decoding.width
    drawn = _sample(walk, n * k, decoding)
    return [sorted(drawn[i : i + k], key=lambda h: -h.score) for i in range(0, n * k, k)]


def _sample(walk: Walk, n: int, decoding: Decoding) -> list[Hypothesis]:
    most = decoding.most
    after = walk.start(n)
    device = walk.device
    alive = torch.arange(n, device=device)
    tokens = torch.full((n, most), -1, device=device)
    lengths = torch.full((n,), most, device=device)
    finished = torch.zeros(n, dtype=torch.bool, device=device)
    log_prob, log_p = (torch.zeros(n, dtype=torch.float64, device=device) for _ in range(2))
    for t in range(most + 1):
        drawn = walk.draw(next_law(after.log_p, decoding), 1)
        step = after.log_p.gather(1, drawn)[:, 0]
        drawn = drawn[:, 0]
        ended = drawn == walk.eos
        log_p[alive] += step
        counted = (
            ended if t == most else torch.ones_like(ended)
        )  # the last token drawn only tells whether it is the end
        log_prob[alive] += (step + after.log_kept).masked_fill(~counted, 0.0)
        finished[alive[ended]] = True
        lengths[alive[ended]] = t
        going = (~ended).nonzero()[:, 0]
        if t == most or not len(going):
            break
        alive, drawn = alive[going], drawn[going]
        tokens[alive, t] = drawn
        after = walk.extend(going, drawn)
    score = log_p / (lengths + 1).double() ** (decoding.length_penalty or 0.0)
    columns = (tokens, lengths, finished, log_prob, score)
    return [
        Hypothesis(row[:length], ended, value, scored)
        for row, length, ended, value, scored in zip(*(c.tolist() for c in columns), strict=True)
    ]
