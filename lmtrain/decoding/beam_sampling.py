"""Beam sampling as Meister & Cotterell (2021, section 4) describe it.

They take fairseq for their implementation (footnote 11); fairseq does something else, `sampling.sample_in_groups`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.decoding.walk import Hypothesis, Walk


def beam_sampling(walk: Walk, n: int, decoding: Decoding) -> list[list[Hypothesis]]:
    """Draw n beams; the hypotheses of each, best first, at most k.

    The paper leaves open what happens at the start (here: one empty hypothesis, for which k tokens are drawn), whether
    a token drawn twice for the same hypothesis counts twice (``dedupe``), whether the beam narrows when hypotheses
    leave it (here: no, the k best candidates remain at every step) and what is returned. With fewer than k candidates
    a beam may end with fewer than k hypotheses.
    """
    k, most, penalty = decoding.width, decoding.most, decoding.length_penalty or 0.0
    found: list[list[Hypothesis]] = [[] for _ in range(n)]
    after = walk.start(n)
    device = walk.device
    rows = torch.arange(n, device=device)  # the beam that each row belongs to
    log_p, log_prob = (torch.zeros(n, dtype=torch.float64, device=device) for _ in range(2))
    text = torch.empty((n, 0), dtype=torch.int64, device=device)
    for t in range(most + 1):
        drawn = walk.draw(after.log_p.exp(), k)
        if decoding.dedupe:
            drawn = drawn.sort(dim=1).values
        step = after.log_p.gather(1, drawn)
        scores = log_p[:, None] + step
        if decoding.dedupe:
            again = torch.zeros_like(drawn, dtype=torch.bool)
            again[:, 1:] = drawn[:, 1:] == drawn[:, :-1]
            scores = scores.masked_fill(again, -torch.inf)
        parent, column = _best(scores, rows, n, k)
        token = drawn[parent, column]
        log_p = scores[parent, column]
        before, log_prob = log_prob[parent], log_prob[parent] + step[parent, column] + after.log_kept[parent]
        text, rows = text[parent], rows[parent]
        ended = token == walk.eos
        leaving = (torch.ones_like(ended) if t == most else ended).nonzero()[:, 0]
        values = torch.where(ended, log_prob, before)[leaving].tolist()
        scored = (log_p[leaving] / float(t + 1) ** penalty).tolist()
        columns = (rows[leaving].tolist(), text[leaving].tolist(), ended[leaving].tolist(), values, scored)
        for row, tokens, finished, value, score in zip(*columns, strict=True):
            found[row].append(Hypothesis(tokens, finished, value, score))
        n_found = torch.tensor([len(hypotheses) for hypotheses in found], device=device)
        going = (~ended & (n_found[rows] < k)).nonzero()[:, 0]
        if t == most or not len(going):
            break
        parent, token = parent[going], token[going]
        rows, log_p, log_prob = rows[going], log_p[going], log_prob[going]
        text = torch.cat([text[going], token[:, None]], dim=1)
        after = walk.extend(parent, token)
    return [sorted(hypotheses, key=lambda h: -h.score)[:k] for hypotheses in found]


def _best(scores: Tensor, rows: Tensor, n: int, k: int) -> tuple[Tensor, Tensor]:
    """Row and column of the k highest of the candidates (R, C) of each of n beams, ties in order, beam after beam.

    The rows of a beam stand together.
    """
    flat = scores.flatten()
    beam = rows.repeat_interleave(scores.shape[1])
    order = torch.sort(flat, descending=True, stable=True).indices
    order = order[torch.sort(beam[order], stable=True).indices]
    counts = torch.bincount(beam, minlength=n)
    first = (counts.cumsum(0) - counts)[beam[order]]
    rank = torch.arange(len(order), device=scores.device) - first
    kept = order[(rank < k) & (flat[order] > -torch.inf)]
    return kept // scores.shape[1], kept % scores.shape[1]
