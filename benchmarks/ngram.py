"""Training and scoring n-gram models, against `nltk.lm`, in one run on one machine.

``python benchmarks/ngram.py [--sentences 1000000] [--peer 5000] [--order 3]``. The text is sampled from the embedded
English grammar. Every row is a process of its own; memory is its peak while it trains and scores, less what it held
with the text in memory (Linux only). Ours reads lists of words, as the peer does; all of its training is timed but
writing the files: vocabulary, counts, probabilities. Both score whole sentences with their ends; the peer's unsmoothed
scores of sentences it has seen must be ours.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
HELD_OUT = 20_000  #: sentences to score
PEER_HELD_OUT = 50  #: of which the peer scores so many; its Kneser-Ney reads all its counts for every token


def sentences(n: int, seed: int) -> list[list[str]]:
    from truesource.generator.sampler import Sampler
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.embedded import english
    from truesource.grammar.support.arrays import random_state

    sampler = Sampler(english(), LengthRange(6, 25))
    return sampler.sentences(sampler.draw(n, random_state(seed)))


def forget_peak() -> float:
    """Memory held now, MiB; what was held before no longer counts for `peak_mib`."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_mib()


def peak_mib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def ours(n: int, order: int, smoothing: Any) -> Row:
    from truesource.lmtrain.architectures.ngram.models import NgramModel, NgramPieceModel, make_ngram
    from truesource.lmtrain.architectures.ngram.trie import adjust, count_ngrams, read_stream
    from truesource.lmtrain.tokenizer import build_tokenizer
    from truesource.lmtrain.word_vocabulary import WordVocabulary

    def make(text: list[list[str]]) -> NgramModel | NgramPieceModel:
        tokenizer = build_tokenizer(text)
        v = WordVocabulary(tokenizer)
        stream = read_stream(text, v)
        trie = count_ngrams(stream, order, n_tokens=len(v), bos=v.bos, eos=v.eos)
        return make_ngram(adjust(trie, smoothing), smoothing, tokenizer, "ours")

    from truesource.generator.language_model import ScoringFrame

    text, held_out = sentences(n, 1), sentences(HELD_OUT, 2)
    make(text[:100]).score(held_out[:10], ScoringFrame())  # compiled before the clock runs
    before = forget_peak()
    start = time.perf_counter()
    model = make(text)
    trained = time.perf_counter()
    model.score(held_out, ScoringFrame())
    scored = time.perf_counter()
    return {
        "model": f"ours, {smoothing}",
        "tokens": sum(map(len, text)) + len(text),
        "ngrams": model.n_ngrams,
        "train": trained - start,
        "memory": peak_mib() - before,
        "speed": (sum(map(len, held_out)) + HELD_OUT) / (scored - trained),
        "seen": model.score(text[:PEER_HELD_OUT], ScoringFrame()).log_prob,
    }


def peer(n: int, order: int, smoothing: str) -> Row:
    from nltk.lm import MLE, KneserNeyInterpolated
    from nltk.lm.preprocessing import pad_both_ends, padded_everygram_pipeline

    text, held_out = sentences(n, 1), sentences(PEER_HELD_OUT, 2)
    before = forget_peak()
    start = time.perf_counter()
    model = MLE(order) if smoothing == "mle" else KneserNeyInterpolated(order)
    model.fit(*padded_everygram_pipeline(order, text))
    trained = time.perf_counter()

    def score(some: list[list[str]]) -> list[float]:
        found = []
        for sentence in some:
            marked = list(pad_both_ends(sentence, n=order))
            for i in range(order - 1, order + len(sentence)):
                found.append(model.score(marked[i], tuple(marked[i - order + 1 : i])))
        return found

    score(held_out)
    scored = time.perf_counter()
    return {
        "model": f"nltk.lm, {smoothing}",
        "tokens": sum(map(len, text)) + len(text),
        "ngrams": model.counts.N(),
        "train": trained - start,
        "memory": peak_mib() - before,
        "speed": (sum(map(len, held_out)) + PEER_HELD_OUT) / (scored - trained),
        "seen": np.log(score(text[:PEER_HELD_OUT])) if smoothing == "mle" else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=1_000_000)
    parser.add_argument("--peer", type=int, default=5000, help="sentences that the peer trains on")
    parser.add_argument("--order", type=int, default=3)
    args = parser.parse_args()
    jobs: list[tuple[Any, ...]] = [
        (measure, n, args.order, smoothing)
        for n, measures in ((args.peer, (ours, peer)), (args.sentences, (ours,)))
        for smoothing in ("mle", "kneser_ney")
        for measure in measures
    ]
    rows = []
    for measure, *arguments in jobs:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(measure, arguments))
    print(f"order {args.order}\n{'model':22}{'tokens':>12}{'train, s':>10}{'tokens/s':>12}{'MiB':>8}{'scored/s':>12}")
    for row in rows:
        rate = row["tokens"] / row["train"]
        print(
            f"{row['model']:22}{row['tokens']:12,}{row['train']:10.2f}{rate:12,.0f}{row['memory']:8.0f}"
            f"{row['speed']:12,.0f}"
        )
    print(f"largest difference of unsmoothed log probabilities: {np.abs(rows[0]['seen'] - rows[1]['seen']).max():.1e}")


if __name__ == "__main__":
    main()
