"""How much of a text a grammar knows: words of its lexicon, and sentences it can make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import TooLongError
from truesource.grammar.pcfg import PCFG


@dataclass(frozen=True)
class Coverage:
    """What `coverage` found."""

    sentences: int
    tokens: int
    types: int
    unknown_tokens: int  #: tokens that the lexicon does not have
    unknown_types: int
    unknown: tuple[tuple[str, int], ...]  #: unknown words and how often they occur, most frequent first
    impossible: tuple[int, ...]  #: sentences of probability zero, counted from 1, in order
    mean_log_prob: float | None  #: of the others, nats per sentence; None without any

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def coverage(pcfg: PCFG, sentences: Sequence[Sequence[str]], *, lengths: LengthRange | None = None) -> Coverage:
    """Look for unknown words, and compute the exact probability of every sentence.

    Args:
        pcfg: the grammar.
        sentences: tokenised.
        lengths: condition on these lengths; sentences of another length are impossible.

    Raises:
        InputError: a sentence has no tokens, or the grammar makes no sentence of such a length.
    """
    count = Counter(token for sentence in sentences for token in sentence)
    unknown = Counter({word: n for word, n in count.items() if word not in pcfg.word_ids})
    known = [i for i, s in enumerate(sentences) if not any(token in unknown for token in s)]
    scores = np.full(len(sentences), -np.inf)
    if known:
        try:
            scores[known] = pcfg.exact.string_log_probs([sentences[i] for i in known], lengths)
        except TooLongError as error:
            raise TooLongError(error.tokens, error.needed, known[(error.number or 1) - 1] + 1) from None
    possible = np.isfinite(scores)
    return Coverage(
        sentences=len(sentences),
        tokens=count.total(),
        types=len(count),
        unknown_tokens=unknown.total(),
        unknown_types=len(unknown),
        unknown=tuple(sorted(unknown.items(), key=lambda item: (-item[1], item[0]))),
        impossible=tuple((np.flatnonzero(~possible) + 1).tolist()),
        mean_log_prob=float(scores[possible].mean()) if possible.any() else None,
    )
