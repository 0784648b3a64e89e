"""Beam search, and the sampling from whole beams, of transformers (`GenerationMixin._beam_search`, version 5)."""

from __future__ import annotations

import torch
from torch import Tensor

from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.decoding.walk import Hypothesis, Walk


def beam_search(walk: Walk, n: int, decoding: Decoding) -> list[list[Hypothesis]]:
    """Search n times, or draw under ``beam_sampling_hf``; the hypotheses of each beam, best first, at most k.

    Equal to ``generate`` with ``num_beams=k, do_sample=..., early_stopping=False, max_new_tokens=max_tokens + 1``: of
    the 2k candidates of a step, those that end are results when they are among the first k (in order of score, or as
    drawn); the k best of the others go on. A beam stops when it has k results and its best hypothesis, if it ended
    now, would not be better than the worst of them. Candidates of probability zero, which transformers takes to fill
    up, are none here.
    """
    k, most, penalty = decoding.width, decoding.most, decoding.length_penalty or 0.0
    sampled = decoding.scheme == "beam_sampling_hf"
    found: list[list[Hypothesis]] = [[] for _ in range(n)]
    after = walk.start(n)
    device = walk.device
    beams = torch.arange(n, device=device)  # (B,) those still at work
    slots = beams * k  # (R,) place of each row in the table (B, k) of hypotheses; one per beam at the start
    log_p = torch.full((n, k), -torch.inf, dtype=torch.float64, device=device)
    log_p[:, 0] = 0.0
    log_prob = log_p.clone()
    text = torch.empty((n, k, 0), dtype=torch.int64, device=device)
    for t in range(most + 1):
        n_tokens = after.log_p.shape[1]
        step = torch.full((len(beams) * k, n_tokens), -torch.inf, dtype=torch.float64, device=device)
        step[slots] = after.log_p + log_p.flatten()[slots, None]
        log_kept = torch.zeros(len(beams) * k, dtype=torch.float64, device=device)
        log_kept[slots] = after.log_kept
        scores, parent, token = _candidates(step.view(len(beams), -1), 2 * k, n_tokens, walk if sampled else None)
        possible = scores > -torch.inf
        ended = (token == walk.eos) & possible
        before = log_prob.gather(1, parent)
        log_prob = before + (scores - log_p.gather(1, parent)) + log_kept.view(-1, k).gather(1, parent)
        numbers = beams.tolist()
        for b, c in (possible if t == most else ended)[:, :k].nonzero().tolist():
            finished = bool(ended[b, c])
            value = (log_prob if finished else before)[b, c].item()
            tokens = text[b, parent[b, c]].tolist()
            here = found[numbers[b]]
            here.append(Hypothesis(tokens, finished, value, scores[b, c].item() / float(t + 1) ** penalty))
            here.sort(key=lambda h: -h.score)
            del here[k:]
        if t == most:
            break
        log_p, best = scores.masked_fill(ended, -torch.inf).sort(dim=1, descending=True, stable=True)
        log_p, best = log_p[:, :k], best[:, :k]
        parent, token, log_prob = parent.gather(1, best), token.gather(1, best), log_prob.gather(1, best)
        hopeful = log_p[:, 0] / float(t + 1) ** penalty
        worst = [found[b][-1].score if len(found[b]) == k else -torch.inf for b in numbers]
        going = (hopeful > torch.tensor(worst, dtype=torch.float64, device=device)).nonzero()[:, 0]
        if not len(going):
            break
        row_of = torch.full((len(beams) * k,), -1, device=device)
        row_of[slots] = torch.arange(len(slots), device=device)
        text = torch.cat([text.take_along_dim(parent[:, :, None], dim=1), token[:, :, None]], dim=2)[going]
        parents = row_of[(parent + torch.arange(len(beams), device=device)[:, None] * k)[going].flatten()]
        beams, log_p, log_prob, token = beams[going], log_p[going], log_prob[going], token[going]
        slots = (log_p.flatten() > -torch.inf).nonzero()[:, 0]
        after = walk.extend(parents[slots], token.flatten()[slots])
    return found


def _candidates(scores: Tensor, most: int, n_tokens: int, drawn_by: Walk | None) -> tuple[Tensor, Tensor, Tensor]:
    """At most so many pairs of hypothesis and token from ``scores`` (B, k * K): their scores, hypotheses and tokens.

    The best in order; or, with a walk, drawn without replacement in proportion to exp(score), in the order drawn: the
    largest scores after adding a Gumbel number to each (Vieira 2014; Kool et al. 2019). (B, most) each; a score of
    -inf where there are no more.
    """
    most = min(most, scores.shape[1])
    key = scores if drawn_by is None else scores + drawn_by.gumbel(scores)
    at = key.topk(most, dim=1).indices
    return scores.gather(1, at), at // n_tokens, at % n_tokens
