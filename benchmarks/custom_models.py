"""Seconds of a score of custom models with the check that they do not look ahead, and without it.

    python benchmarks/custom_models.py [SENTENCES]

Each model scores sentences of Zipf-distributed words (2 to 30 words, 2,000 types): a trigram model with back-off in
plain Python, a recurrent network in numpy, and full distributions of a recurrent network. ``ours`` is the time of
`truesource.generator.model_checks.checked_scores` with a new model, ``without`` that of the same call with
``unchecked=True``; medians of 3.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from truesource import FunctionModel
from truesource.generator.language_model import ScoringFrame
from truesource.generator.model_checks import checked_scores

WORDS = tuple(f"w{i}" for i in range(2000))
COLUMN = {word: i for i, word in enumerate(WORDS)}
WIDTH, BATCH, TIMES = 256, 32, 3


def text(n: int) -> list[list[str]]:
    """Sentences of Zipf-distributed words."""
    generator = np.random.default_rng(1)
    p = 1.0 / np.arange(1, len(WORDS) + 1)
    return [
        [WORDS[i] for i in generator.choice(len(WORDS), size=n, p=p / p.sum())] for n in generator.integers(2, 31, n)
    ]


def trigrams(sentences: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Arguments of a trigram model with linear interpolation, counted in a text."""
    counts = [Counter[tuple[str, ...]]() for _ in range(4)]
    for words in sentences:
        line = ["<s>", "<s>", *words, "</s>"]
        for i in range(2, len(line)):
            for n in range(4):
                counts[n][tuple(line[i - n + 1 : i + 1])] += 1

    def log_probs(some: list[list[str]]) -> list[Any]:
        rows = []
        for words in some:
            line, row = ["<s>", "<s>", *words, "</s>"], []
            for i in range(2, len(line)):
                p = 0.1 / (len(WORDS) + 2)
                for n in (1, 2, 3):
                    before = counts[n - 1][tuple(line[i - n + 1 : i])]
                    p += 0.3 * counts[n][tuple(line[i - n + 1 : i + 1])] / before if before else 0.0
                row.append(np.log(p))
            rows.append(np.array(row))
        return rows

    return {"log_probs": log_probs}


class Network:
    """A recurrent network with random weights."""

    def __init__(self) -> None:
        generator = np.random.default_rng(2)
        self.words = generator.normal(0, 1, (len(WORDS) + 2, WIDTH)).astype(np.float32)
        self.step = generator.normal(0, WIDTH**-0.5, (WIDTH, WIDTH)).astype(np.float32)
        self.out = generator.normal(0, WIDTH**-0.5, (WIDTH, len(WORDS) + 2)).astype(np.float32)

    def tables(self, some: list[list[str]]) -> list[Any]:
        """Log distributions of sentences, (n+1, V+2) each, in batches."""
        result = []
        for at in range(0, len(some), BATCH):
            batch = some[at : at + BATCH]
            longest = max(map(len, batch))
            state, rows = np.zeros((len(batch), WIDTH), np.float32), []
            for position in range(longest + 1):
                if position:
                    read = [COLUMN.get(w[position - 1], len(WORDS)) if position <= len(w) else 0 for w in batch]
                    state = np.tanh(state @ self.step + self.words[read])
                logits = state @ self.out
                top = logits.max(axis=1, keepdims=True)
                total = np.log(np.exp(logits - top).sum(axis=1, keepdims=True, dtype=np.float64))
                rows.append(logits - top - total)
            result += [np.stack([row[i] for row in rows[: len(words) + 1]]) for i, words in enumerate(batch)]
        return result

    def log_probs(self, some: list[list[str]]) -> list[Any]:
        """Log probabilities of sentences, (n+1,) each."""
        ends = [[*(COLUMN.get(word, len(WORDS)) for word in words), len(WORDS) + 1] for words in some]
        return [table[np.arange(len(e)), e] for table, e in zip(self.tables(some), ends, strict=True)]


def seconds(functions: dict[str, Any], sentences: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Median seconds of a score of a new model, with the check and without it, in turns."""
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(TIMES):
        for unchecked, some in times.items():
            model = FunctionModel(vocabulary=WORDS, unchecked=unchecked, **functions)
            begin = time.process_time()
            checked_scores(model, sentences, ScoringFrame())
            some.append(time.process_time() - begin)
    return float(np.median(times[False])), float(np.median(times[True]))


def main() -> None:
    """Print one table."""
    logging.getLogger("truesource").setLevel(logging.ERROR)
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    sentences, network = text(n), Network()
    kinds: dict[str, dict[str, Any]] = {
        "trigrams": trigrams(sentences),
        "network": {"log_probs": network.log_probs},
        "network, distributions": {"distributions": network.tables},
        "network, both": {"log_probs": network.log_probs, "distributions": network.tables},
    }
    print(f"{'model':24} {'ours, s':>9} {'without, s':>11} {'ratio':>7}   ({n:,} sentences)")
    for name, functions in kinds.items():
        ours, without = seconds(functions, sentences)
        print(f"{name:24} {ours:9.4f} {without:11.4f} {ours / without:7.3f}")


if __name__ == "__main__":
    main()
