"""Full next-piece distributions beside full next-word distributions of the same sentences: one table.

    python benchmarks/pieces.py [--sentences 1000] [--language english] [--pieces 1000,8000]

Each time is the median of three on one thread after a warm-up. ``beside`` counts the contexts in which a word of the
language is complete where the text continues with a longer one; the possible ones are computed in addition. ``agree``
counts the sentences, of 10,000 others, that the `tokenizers` library cuts into the same pieces.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from truesource import language
from truesource.generator.process_sampler import sampler_of
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.distributions import next_token_distributions
from truesource.grammar.pieces.reading import read_pieces
from truesource.grammar.pieces.truth import TokenisedTruth, by_bytes, by_characters
from truesource.grammar.support.arrays import random_state
from truesource.lmtrain.device import computing
from truesource.lmtrain.pieces.segmentation import PieceCutter
from truesource.lmtrain.subwords import build_subword_tokenizer

LENGTHS = LengthRange(6, 25)


def median(work: Callable[[], object]) -> float:
    """Seconds of some work, the median of three after one that warms up."""
    work()
    times = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def distributions(truth: Any, sentences: Sequence[Sequence[str]]) -> Callable[[], object]:
    """Work that computes all distributions and keeps none."""
    return lambda: list(next_token_distributions(truth.exact, sentences, lambda block: None, LENGTHS))


def beside(truth: TokenisedTruth, sentences: Sequence[Sequence[str]]) -> int:
    """Number of distinct contexts beside the texts."""
    contexts = set()
    for sentence in {tuple(sentence) for sentence in sentences}:
        reading = read_pieces(truth.segmentation, [truth.encode(sentence)])
        for state in np.flatnonzero((reading.word >= 0) & ~reading.on_text).tolist():
            contexts.add((*reading.texts[0][: reading.words[state]], int(reading.word[state])))
    return len(contexts)


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--sentences", type=int, default=1000)
    arguments.add_argument("--language", default="english")
    arguments.add_argument("--pieces", default="1000,8000")
    options = arguments.parse_args()
    truth = language(options.language)
    sampler = sampler_of(truth, LENGTHS)
    sentences = sampler.sentences(sampler.draw(options.sentences, random_state(1)))
    others = sampler.sentences(sampler.draw(10_000, random_state(2)))
    truths: dict[str, tuple[TokenisedTruth, Any]] = {}
    for size in map(int, options.pieces.split(",")):
        for kind in ("bpe", "unigram"):
            tokenizer = build_subword_tokenizer(others, kind, size)  # type: ignore[arg-type]
            truths[f"{kind} {size:,}"] = PieceCutter(tokenizer).language(truth), tokenizer
    truths["characters"], truths["bytes"] = (by_characters(truth), None), (by_bytes(truth), None)
    with computing(threads=1):
        words = median(distributions(truth, sentences))
        print(f"{truth!r}; {len(sentences):,} sentences of {LENGTHS} words; words: {words:.2f} s")
        print(f"{'tokeniser':>14} {'used':>7} {'a word':>7} {'s':>7} {'ratio':>6} {'beside':>7} {'agree':>7}")
        for name, (pieces, tokenizer) in truths.items():
            cut = [pieces.pieces_of(sentence) for sentence in sentences]
            seconds = median(distributions(pieces, cut))
            rate = sum(map(len, cut)) / sum(map(len, sentences))
            same = "-" if tokenizer is None else f"{agreeing(pieces, tokenizer, others):,}"
            row = f"{len(pieces.vocabulary):7,} {rate:7.2f} {seconds:7.2f} {seconds / words:6.2f}"
            print(f"{name:>14} {row} {beside(pieces, cut):7,} {same:>7}", flush=True)


def agreeing(truth: TokenisedTruth, tokenizer: Any, sentences: Sequence[Sequence[str]]) -> int:
    """Number of sentences that the library cuts into the same pieces."""
    encode = tokenizer.backend_tokenizer.encode
    return sum(
        truth.pieces_of(sentence) == encode(" ".join(sentence), add_special_tokens=False).tokens
        for sentence in sentences
    )


if __name__ == "__main__":
    main()
