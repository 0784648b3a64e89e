"""A small law of text, given as a function of the tokens so far, and the exact law of each decoding scheme under it.

Everything is enumerated in plain Python: nothing here knows of tensors, batches or caches, except `TreeStepper`, which
lets the schemes read such a law.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import torch
from torch import Tensor

Tokens = tuple[int, ...]
Law = Callable[[Tokens], Sequence[float]]  #: probabilities of the next token
Outcome = tuple[Tokens, bool]  #: without the end; whether it ended
Distribution = dict[Outcome, float]


class TreeStepper:
    """Reads a `Law` row by row."""

    def __init__(self, law: Law) -> None:
        self._law = law
        self._rows: list[Tokens] = []

    def start(self, n: int) -> Tensor:
        self._rows = [()] * n
        return self._log_prob()

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        self._rows = [(*self._rows[p], t) for p, t in zip(parents.tolist(), tokens.tolist(), strict=True)]
        return self._log_prob()

    def _log_prob(self) -> Tensor:
        return torch.tensor([self._law(row) for row in self._rows], dtype=torch.float64).log()


def ancestral(law: Law, eos: int, most: int) -> Distribution:
    """The law of text drawn token by token and cut after ``most`` tokens."""
    found: dict[Outcome, float] = defaultdict(float)

    def go(text: Tokens, p: float) -> None:
        for token, q in enumerate(law(text)):
            if q == 0.0:
                continue
            if token == eos:
                found[text, True] += p * q
            elif len(text) == most:
                found[text, False] += p * q
            else:
                go((*text, token), p * q)

    go((), 1.0)
    return dict(found)


def drawn_tokens(law: Law, eos: int, most: int) -> dict[Tokens, float]:
    """The same with the last token drawn: the end, or the one that was too many."""
    found: dict[Tokens, float] = {}

    def go(text: Tokens, p: float) -> None:
        for token, q in enumerate(law(text)):
            if q > 0.0:
                whole = (*text, token)
                if token == eos or len(text) == most:
                    found[whole] = p * q
                else:
                    go(whole, p * q)

    go((), 1.0)
    return found


def best_of(law: Law, eos: int, most: int, k: int, penalty: float) -> Distribution:
    """The best of k independent texts by log probability over tokens ** penalty, as fairseq returns it."""
    texts = drawn_tokens(law, eos, most)
    score = {text: math.log(p) / len(text) ** penalty for text, p in texts.items()}
    ranked = sorted(texts, key=lambda text: -score[text])
    found: dict[Outcome, float] = defaultdict(float)
    above = 0.0
    for text in ranked:
        p = (1.0 - above) ** k - (1.0 - above - texts[text]) ** k
        above += texts[text]
        found[text[:-1], text[-1] == eos] += p
    return dict(found)


@cache
def _log_p(law: Law, text: Tokens) -> float:
    return math.fsum(math.log(law(text[:i])[token]) for i, token in enumerate(text))


def _outcomes(finals: Sequence[Tokens], law: Law, eos: int, penalty: float, k: int) -> tuple[Outcome, ...]:
    ranked = sorted(finals, key=lambda text: -_log_p(law, text) / len(text) ** penalty)[:k]
    return tuple((text[:-1], text[-1] == eos) for text in ranked)


def paper_beams(
    law: Law, eos: int, most: int, k: int, penalty: float, *, dedupe: bool
) -> dict[tuple[Outcome, ...], float]:
    """Law of the beams, best first, of Meister & Cotterell's beam sampling: all draws of all steps enumerated."""

    @cache
    def go(live: tuple[Tokens, ...], done: tuple[Tokens, ...]) -> Mapping[tuple[Tokens, ...], float]:
        t = len(live[0]) if live else 0
        if not live or len(done) >= k or t > most:
            return {(*done, *(live if t > most else ())): 1.0}
        found: dict[tuple[Tokens, ...], float] = defaultdict(float)
        support = [[(i, q) for i, q in enumerate(law(text)) if q > 0.0] for text in live]
        draws = itertools.product(*(itertools.product(choices, repeat=k) for choices in support))
        chances: dict[tuple[Tokens, ...], float] = defaultdict(float)
        for draw in draws:
            p = math.prod(q for tokens in draw for _, q in tokens)
            candidates = [(*text, token) for text, tokens in zip(live, draw, strict=True) for token, _ in tokens]
            if dedupe:
                candidates = list(dict.fromkeys(candidates))
            chances[tuple(sorted(candidates, key=lambda text: (-_log_p(law, text), text))[:k])] += p
        for kept, p in chances.items():
            ended = tuple(text for text in kept if text[-1] == eos)
            others = tuple(text for text in kept if text[-1] != eos)
            for final, q in go(others, (*done, *ended)).items():
                found[final] += p * q
        return dict(found)

    result: dict[tuple[Outcome, ...], float] = defaultdict(float)
    for finals, p in go(((),), ()).items():
        result[_outcomes(finals, law, eos, penalty, k)] += p
    return dict(result)


def _without_replacement(weights: Mapping[Tokens, float], n: int) -> Iterator[tuple[tuple[Tokens, ...], float]]:
    """Ordered draws of n (or all) of the keys, each in proportion to what is left."""
    if n == 0 or not weights:
        yield (), 1.0
        return
    total = math.fsum(weights.values())
    for first, weight in weights.items():
        rest = {key: w for key, w in weights.items() if key != first}
        for others, p in _without_replacement(rest, n - 1):
            yield (first, *others), p * weight / total


@cache
def hf_beams(law: Law, eos: int, most: int, k: int, penalty: float) -> dict[tuple[Outcome, ...], float]:
    """Law of the results, best first, of sampling from beams as in transformers: all draws of all steps enumerated."""

    def score(text: Tokens) -> float:
        return _log_p(law, text) / len(text) ** penalty

    @cache
    def go(live: tuple[Tokens, ...], done: tuple[Tokens, ...]) -> Mapping[tuple[Tokens, ...], float]:
        t = len(live[0]) if live else most + 1
        hopeful = bool(live) and (
            t == 0
            or len(done) < k
            or max(_log_p(law, text) for text in live) / t**penalty > min(score(text) for text in done)
        )
        if t > most or not hopeful:
            return {done: 1.0}
        found: dict[tuple[Tokens, ...], float] = defaultdict(float)
        weights = {
            (*text, token): math.exp(_log_p(law, text)) * q
            for text in live
            for token, q in enumerate(law(text))
            if q > 0.0
        }
        chances: dict[tuple[tuple[Tokens, ...], tuple[Tokens, ...]], float] = defaultdict(float)
        for drawn, p in _without_replacement(weights, 2 * k):
            results = [text for text in drawn[:k] if text[-1] == eos or t == most]
            best = tuple(sorted((*done, *results), key=lambda text: (-score(text), text))[:k])
            others = sorted((x for x in drawn if x[-1] != eos), key=lambda text: (-_log_p(law, text), text))[:k]
            chances[tuple(others), best] += p
        for (others, best), p in chances.items():
            for final, q in go(others, best).items():
                found[final] += p * q
        return dict(found)

    result: dict[tuple[Outcome, ...], float] = defaultdict(float)
    for finals, p in go(((),), ()).items():
        result[_outcomes(finals, law, eos, penalty, k)] += p
    return dict(result)
