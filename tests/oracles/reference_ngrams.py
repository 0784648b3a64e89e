"""n-gram models in dictionaries, straight from the formulas."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

BOS, EOS, UNK = "<bos>", "<eos>", "<unk>"
NGram = tuple[str, ...]


def known(sentences: Sequence[Sequence[str]], words: Sequence[str]) -> list[NGram]:
    """With their marks, rare words as ``<unk>``."""
    return [(BOS, *(w if w in words else UNK for w in sentence), EOS) for sentence in sentences]


def occurrences(texts: Sequence[NGram], length: int) -> Counter[NGram]:
    """n-grams of one length within sentences; ``<bos>`` alone is no event."""
    found: Counter[NGram] = Counter()
    for text in texts:
        for i in range(len(text) - length + 1):
            if text[i : i + length] != (BOS,):
                found[text[i : i + length]] += 1
    return found


class Mle:
    """p(w | h) = c(hw) / sum over x of c(hx)."""

    def __init__(self, sentences: Sequence[Sequence[str]], order: int, words: Sequence[str]) -> None:
        self.order, self.words = order, words
        self.n_events = len(words) + 2  # what can follow something: words, <unk>, <eos>
        texts = known(sentences, words)
        self.counts = [occurrences(texts, k) for k in range(1, order + 1)]

    def context(self, prefix: Sequence[str]) -> NGram:
        text = (BOS, *(w if w in self.words else UNK for w in prefix))
        return text[max(0, len(text) - self.order + 1) :]

    def p(self, word: str, prefix: Sequence[str]) -> float:
        h = self.context(prefix)
        counts = self.counts[len(h)]
        total = sum(counts[(*h, x)] for x in (*self.words, UNK, EOS))
        return counts[(*h, word)] / total if total else 0.0


class KneserNey(Mle):
    """Chen & Goodman (1999), equations 24 to 27, with the uniform distribution below the single tokens.

    a(x) is c(x) for n-grams of the greatest length and for those that begin with ``<bos>``, otherwise the number of
    different v with c(vx) > 0; p(w | h) = (a(hw) - D(a(hw))) / a(h.) + (sum of D) / a(h.) * p(w | h').
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[str]],
        order: int,
        words: Sequence[str],
        discount: Sequence[tuple[float, float, float]] | None = None,
    ) -> None:
        super().__init__(sentences, order, words)
        for k in range(order - 1):
            before: defaultdict[NGram, set[str]] = defaultdict(set)
            for x in self.counts[k + 1]:
                before[x[1:]].add(x[0])
            self.counts[k] = Counter({x: c if x[0] == BOS else len(before[x]) for x, c in self.counts[k].items()})
        self.discount = [self.discounts(c) for c in self.counts] if discount is None else discount

    @staticmethod
    def discounts(counts: Counter[NGram]) -> tuple[float, float, float]:
        n1, n2, n3, n4 = (sum(c == i for c in counts.values()) for i in (1, 2, 3, 4))
        if not n1 or not n2:
            return (0.5, 0.5, 0.5)
        y = n1 / (n1 + 2 * n2)
        if n3 and n4:
            three = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
            if min(three) > 0:
                return three
        return (y, y, y)

    def p(self, word: str, prefix: Sequence[str]) -> float:
        return self.interpolated(word, self.context(prefix))

    def interpolated(self, word: str, h: NGram) -> float:
        lower = self.interpolated(word, h[1:]) if h else 1 / self.n_events
        after = {x: c for x in (*self.words, UNK, EOS) if (c := self.counts[len(h)][(*h, x)])}
        total = sum(after.values())
        if not total:
            return lower
        d = self.discount[len(h)]
        taken = sum(d[min(c, 3) - 1] for c in after.values())
        kept = after[word] - d[min(after[word], 3) - 1] if word in after else 0.0
        return kept / total + taken / total * lower


def log_probs(model: Mle, sentence: Sequence[str]) -> list[float]:
    """Of every word and of the end."""
    events = [*(w if w in model.words else UNK for w in sentence), EOS]
    with np.errstate(divide="ignore"):
        return [float(np.log(model.p(w, sentence[:i]))) for i, w in enumerate(events)]
