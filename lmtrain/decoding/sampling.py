"""The decoding schemes: how sentences are drawn or searched for, token by token.

`sample_each` and `sample_in_groups` draw each sentence by itself, from the sets of nucleus, top-k, typical, eta and
epsilon sampling. `beam_search` searches, and draws from whole beams, as transformers does
(`GenerationMixin._beam_search`, version 5). `beam_sampling` follows Meister & Cotterell (2021, section 4). They name
fairseq as their implementation (footnote 11), but fairseq does something else, `sample_in_groups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.decoding.settings import Decoding

PART = 512  #: of a large vocabulary, so many tokens are sorted first; more only in rows that need it


class Stepper(Protocol):
    """Next-token log probabilities of rows of text, all of one length, that are extended token by token."""

    def start(self, n: int) -> Tensor:
        """Begin ``n`` empty rows, each after ``<bos>``; log probabilities (n, K) of their first token, nats."""

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Extend some rows by one token each.

        Args:
            parents: (R,) int64, which of the present rows each new row continues; rows may be dropped or repeated.
            tokens: (R,) int64, the token appended to each.

        Returns:
            Log probabilities (R, K) of the next token of the new rows, nats.
        """


class NextDistribution(NamedTuple):
    """The distribution of the next token after each of R rows."""

    log_p: Tensor  #: (R, K) float64, nats; -inf for tokens that never come; exp sums to 1
    log_kept: Tensor  #: (R,) log of the model's probability of all other tokens; add it for the model's own value


class Hypothesis(NamedTuple):
    """A sentence that a scheme found."""

    tokens: list[int]  #: without ``<eos>``
    finished: bool  #: whether it ended; otherwise it was cut
    log_prob: float  #: of the tokens, and of the end if there is one, under the model itself, nats
    score: float  #: criterion of the beam: log probability over a power of the number of tokens


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

    def start(self, n: int) -> NextDistribution:
        """Begin ``n`` empty rows."""
        log_prob = self._stepper.start(n)
        self.device = log_prob.device
        self.generator = torch.Generator(device=self.device).manual_seed(self._seed)
        self._never = self._never.to(self.device)
        return self._next(log_prob)

    def extend(self, parents: Tensor, tokens: Tensor) -> NextDistribution:
        """Extend some rows by one token each; see `Stepper.extend`."""
        return self._next(self._stepper.extend(parents, tokens))

    def _next(self, log_prob: Tensor) -> NextDistribution:
        log_prob = log_prob.double()
        lost = log_prob[:, self._never].exp().sum(dim=1)
        self.special += lost.sum().item()
        self.contexts += len(lost)
        log_kept = torch.log1p(-lost)
        if not torch.isfinite(log_kept).all():
            raise InputError("the model's probabilities are not finite, or 0 for all words; check its weights")
        return NextDistribution((log_prob - log_kept[:, None]).index_fill_(1, self._never, -torch.inf), log_kept)

    def draw(self, p: Tensor, k: int) -> Tensor:
        """Draw tokens (R, k), k times independently from each row of ``p`` (R, K), which need not sum to 1."""
        sums = p.cumsum(dim=1)
        total = sums[:, -1:].contiguous()
        if not (torch.isfinite(total) & (total > 0.0)).all():
            raise InputError("the model's probabilities are not finite, or 0 for all words; check its weights")
        uniform = torch.rand((len(p), k), generator=self.generator, device=p.device, dtype=p.dtype)
        indices = torch.searchsorted(sums, uniform * total, right=True)
        last = torch.searchsorted(sums, total)  # rounding must not reach beyond the last token that has probability
        return torch.minimum(indices, last)

    def gumbel(self, like: Tensor) -> Tensor:
        """Draw independent standard Gumbel numbers of the shape of ``like``."""
        uniform = torch.rand(like.shape, generator=self.generator, device=like.device, dtype=like.dtype)
        return uniform.log_().neg_().log_().neg_()


def next_distribution(log_p: Tensor, decoding: Decoding) -> Tensor:
    """Return the distribution that a sampling scheme draws the next token from.

    Args:
        log_p: (R, K) log probabilities of each row, nats; -inf for none.
        decoding: one of the sampling schemes.

    Returns:
        (R, K) probabilities, not normalised: a row sums to the mass of its set, 1 if nothing is excluded.
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
    """Return the entropy of each row, (R, 1) nats; tokens of probability zero add nothing."""
    return -(p * log_p.masked_fill(p == 0.0, 0.0)).sum(dim=1, keepdim=True)


def at_least(p: Tensor, least: Tensor) -> Tensor:
    """Mark the tokens (R, K) of probability ``least`` or more, and the most probable one in any case."""
    return p >= torch.minimum(least, p.amax(dim=1, keepdim=True))


def smallest_set(key: Tensor, mass: Tensor, target: float) -> Tensor:
    """Take tokens in ascending order of ``key``, ties in order of number, until their mass is ``target`` or more.

    Args:
        key: (R, K).
        mass: (R, K), not negative.
        target: above 0.

    Returns:
        (R, K) true if the token is taken; all are if the whole mass is less.
    """
    if key.shape[1] <= 2 * PART:
        return _smallest_set(key, mass, target)
    front, at = key.topk(PART, dim=1, largest=False)
    at = at.sort(dim=1).values
    taken = _smallest_set(key.gather(1, at), mass.gather(1, at), target)
    result = torch.zeros_like(key, dtype=torch.bool).scatter_(1, at, taken)
    # the front is the whole story unless the last token taken ties with some that are not in it, or it was too little
    last = key.masked_fill(~result, -torch.inf).amax(dim=1)
    rest = (last >= front[:, -1]).nonzero()[:, 0]
    if len(rest):
        result[rest] = _smallest_set(key[rest], mass[rest], target)
    return result


def _smallest_set(key: Tensor, mass: Tensor, target: float) -> Tensor:
    order = torch.sort(key, dim=1, stable=True).indices
    sorted_mass = mass.gather(1, order)
    before = sorted_mass.cumsum(dim=1).roll(1, dims=1)
    before[:, 0] = 0.0
    return torch.zeros_like(key, dtype=torch.bool).scatter_(1, order, before < target)


def sample_each(walk: Walk, n: int, decoding: Decoding) -> list[list[Hypothesis]]:
    """Draw n sentences under one of the sampling schemes; each is the only hypothesis of its list."""
    return [[one] for one in _sample(walk, n, decoding)]


def sample_in_groups(walk: Walk, n: int, decoding: Decoding) -> list[list[Hypothesis]]:
    """Draw n times ``decoding.width`` independent sentences, each group sorted by score, as fairseq does."""
    k = decoding.width
    samples = _sample(walk, n * k, decoding)
    return [sorted(samples[i : i + k], key=lambda h: -h.score) for i in range(0, n * k, k)]


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
        sampled = walk.draw(next_distribution(after.log_p, decoding), 1)
        step = after.log_p.gather(1, sampled)[:, 0]
        sampled = sampled[:, 0]
        ended = sampled == walk.eos
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
        alive, sampled = alive[going], sampled[going]
        tokens[alive, t] = sampled
        after = walk.extend(going, sampled)
    score = log_p / (lengths + 1).double() ** (decoding.length_penalty or 0.0)
    columns = (tokens, lengths, finished, log_prob, score)
    return [
        Hypothesis(row[:length], ended, value, scored)
        for row, length, ended, value, scored in zip(*(c.tolist() for c in columns), strict=True)
    ]


def beam_search(walk: Walk, n: int, decoding: Decoding) -> list[list[Hypothesis]]:
    """Search n times, or draw under ``beam_sampling_hf``; return the hypotheses of each beam, best first, at most k.

    Equal to ``generate`` with ``num_beams=k, do_sample=..., early_stopping=False, max_new_tokens=max_tokens + 1``: of
    the 2k candidates of a step, those that end are results when they are among the first k (in order of score, or as
    drawn); the k best of the others continue. A beam stops when it has k results and its best hypothesis, if it ended
    now, would not be better than the worst of them. Unlike transformers, it never fills up with candidates of
    probability zero.
    """
    k, most, penalty = decoding.width, decoding.most, decoding.length_penalty or 0.0
    sampled = decoding.scheme == "beam_sampling_hf"
    result: list[list[Hypothesis]] = [[] for _ in range(n)]
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
            here = result[numbers[b]]
            here.append(Hypothesis(tokens, finished, value, scores[b, c].item() / float(t + 1) ** penalty))
            here.sort(key=lambda h: -h.score)
            del here[k:]
        if t == most:
            break
        log_p, best = scores.masked_fill(ended, -torch.inf).sort(dim=1, descending=True, stable=True)
        log_p, best = log_p[:, :k], best[:, :k]
        parent, token, log_prob = parent.gather(1, best), token.gather(1, best), log_prob.gather(1, best)
        hopeful = log_p[:, 0] / float(t + 1) ** penalty
        worst = [result[b][-1].score if len(result[b]) == k else -torch.inf for b in numbers]
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
    return result


def _candidates(scores: Tensor, most: int, n_tokens: int, drawn_by: Walk | None) -> tuple[Tensor, Tensor, Tensor]:
    """Choose at most ``most`` pairs of hypothesis and token from ``scores`` (B, k * K): scores, hypotheses, tokens.

    The best in order; or, with a walk, drawn without replacement in proportion to exp(score), in the order drawn: the
    largest scores after adding a Gumbel number to each (Vieira 2014; Kool et al. 2019). (B, most) each; missing
    candidates have the score -inf.
    """
    most = min(most, scores.shape[1])
    key = scores if drawn_by is None else scores + drawn_by.gumbel(scores)
    at = key.topk(most, dim=1).indices
    return scores.gather(1, at), at // n_tokens, at % n_tokens


def beam_sampling(walk: Walk, n: int, decoding: Decoding) -> list[list[Hypothesis]]:
    """Draw n beams; return the hypotheses of each, best first, at most k.

    The paper leaves open what happens at the start (here: one empty hypothesis, for which k tokens are drawn), whether
    a token drawn twice for the same hypothesis counts twice (``dedupe``), whether the beam narrows when hypotheses
    leave it (here: no, the k best candidates remain at every step) and what is returned. With fewer than k candidates
    a beam may end with fewer than k hypotheses.
    """
    k, most, penalty = decoding.width, decoding.most, decoding.length_penalty or 0.0
    result: list[list[Hypothesis]] = [[] for _ in range(n)]
    after = walk.start(n)
    device = walk.device
    rows = torch.arange(n, device=device)  # the beam that each row belongs to
    log_p, log_prob = (torch.zeros(n, dtype=torch.float64, device=device) for _ in range(2))
    text = torch.empty((n, 0), dtype=torch.int64, device=device)
    for t in range(most + 1):
        sampled = walk.draw(after.log_p.exp(), k)
        if decoding.dedupe:
            sampled = sampled.sort(dim=1).values
        step = after.log_p.gather(1, sampled)
        scores = log_p[:, None] + step
        if decoding.dedupe:
            again = torch.zeros_like(sampled, dtype=torch.bool)
            again[:, 1:] = sampled[:, 1:] == sampled[:, :-1]
            scores = scores.masked_fill(again, -torch.inf)
        parent, column = _best(scores, rows, n, k)
        token = sampled[parent, column]
        log_p = scores[parent, column]
        before, log_prob = log_prob[parent], log_prob[parent] + step[parent, column] + after.log_kept[parent]
        text, rows = text[parent], rows[parent]
        ended = token == walk.eos
        leaving = (torch.ones_like(ended) if t == most else ended).nonzero()[:, 0]
        values = torch.where(ended, log_prob, before)[leaving].tolist()
        scored = (log_p[leaving] / float(t + 1) ** penalty).tolist()
        columns = (rows[leaving].tolist(), text[leaving].tolist(), ended[leaving].tolist(), values, scored)
        for row, tokens, finished, value, score in zip(*columns, strict=True):
            result[row].append(Hypothesis(tokens, finished, value, score))
        n_found = torch.tensor([len(hypotheses) for hypotheses in result], device=device)
        going = (~ended & (n_found[rows] < k)).nonzero()[:, 0]
        if t == most or not len(going):
            break
        parent, token = parent[going], token[going]
        rows, log_p, log_prob = rows[going], log_p[going], log_prob[going]
        text = torch.cat([text[going], token[:, None]], dim=1)
        after = walk.extend(parent, token)
    return [sorted(hypotheses, key=lambda h: -h.score)[:k] for hypotheses in result]


def _best(scores: Tensor, rows: Tensor, n: int, k: int) -> tuple[Tensor, Tensor]:
    """Find the k best candidates (R, C) of each of n beams: their rows and columns, ties in order, beam by beam.

    The rows of a beam are adjacent.
    """
    flat = scores.flatten()
    beam = rows.repeat_interleave(scores.shape[1])
    order = torch.sort(flat, descending=True, stable=True).indices
    order = order[torch.sort(beam[order], stable=True).indices]
    counts = torch.bincount(beam, minlength=n)
    first = (counts.cumsum(0) - counts)[beam[order]]
    rank = torch.arange(len(order), device=scores.device) - first
    best = order[(rank < k) & (flat[order] > -torch.inf)]
    return best // scores.shape[1], best % scores.shape[1]
