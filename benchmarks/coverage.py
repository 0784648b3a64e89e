"""How often 95% intervals hold: of sentences, of Zipf-Mandelbrot laws, and of sums over tokenisations by dpf.

    python benchmarks/coverage.py [sentences] [zipf] [dpf] [--replications 400] [--sizes ...] [--only TEXT] [--seed 1]

Every cell draws so many samples of a source whose true value is known, and counts the intervals that hold it. Sentences
are drawn from a large scored sample, which is then the source: the embedded English grammar, 6 to 25 words, and a small
one whose sentences have 1 to some 70 words, each with models of the same rules and other probabilities. Cells whose
coverage is certainly (95%) outside 93 to 97% are marked. Cells do not depend on each other, so several calls with
``--sizes`` and ``--only`` share the work. Differences of models with several seeds have `coverage_models.py`.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.measures.bootstrap import perplexities, resampled_ratio
from truesource.evaluation.measures.correlation import correlations
from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.evaluation.measures.paired import Paired
from truesource.evaluation.measures.zipf_law import log_pmf
from truesource.evaluation.naturalness.zipf_mandelbrot import TrueLaw, fit_corpus
from truesource.evaluation.pplu.compare import END, oracle_unigram
from truesource.evaluation.tendencies.truth import TrueText
from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Estimate, degrees_of, documents, log_interval
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.preparation import require_pieces
from truesource.generator.language_model import ScoringFrame
from truesource.generator.piece_model import TokenisedModel
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.embedded import english
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray

Cell = tuple[Sequence[object], list[bool]]  #: source, size and measure; which intervals hold
Part = Callable[[int, int, Sequence[int], str], Iterator[Cell]]
WANTED = (0.93, 0.97)
#: sentences, or texts, of a sample
SIZES = {"sentences": (20, 50, 200, 1000), "zipf": (200, 1000, 4000, 10_000, 40_000), "dpf": (1, 5, 50)}
SOURCE = 8_000  #: sentences of a source
UNEQUAL = """
S -> A S 0.3 | S S 0.2 | A 0.3 | w 0.2
A -> a 0.5 | B A 0.2 | b 0.2 | c 0.05 | d 0.05
B -> e 0.9 | f 0.09 | g 0.01
"""
LAWS = ((1.1, 2.7), (1.3, 8.0))  #: (alpha, beta)
VOCABULARIES = (1000, 5000)
WORDS = ("abab", "ba", "aba", "ab", "abb", "b", "a", "baba")
TEXTS, RUNS = 12, 120  #: of the source of dpf: texts, and filters of each


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("parts", nargs="*", choices=["sentences", "zipf", "dpf", []], default=[])
    arguments.add_argument("--replications", type=int, default=400)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--sizes", type=int, nargs="*", help="sentences of a sample")
    arguments.add_argument("--only", default="", metavar="TEXT", help="sources in whose name this text is")
    given = arguments.parse_args()
    parts: dict[str, Part] = {"sentences": of_sentences, "zipf": of_laws, "dpf": of_filters}
    print("| part | source | size | measure | holds | 95% of that | |\n|---|---|---|---|---|---|---|")
    for part in given.parts or parts:
        for cell, held in parts[part](given.replications, given.seed, given.sizes or SIZES[part], given.only):
            print(row(part, cell, held), flush=True)


def row(part: str, cell: Sequence[object], held: Sequence[bool]) -> str:
    found = binomtest(sum(held), len(held))
    low, high = found.proportion_ci(method="wilson")
    mark = "" if low <= WANTED[1] and high >= WANTED[0] else "(!)"
    return f"| {part} | {' | '.join(map(str, cell))} | {found.statistic:.3f} | {low:.3f}-{high:.3f} | {mark} |"


# -- sentences --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Scores of all tokens of the sentences of a source."""

    name: str
    paired: Paired
    unigram: FloatArray  #: (T,) nats
    first: IntArray  #: (N,) first token of each sentence
    size: IntArray  #: (N,)

    def drawn(self, n: int, rng: np.random.Generator) -> tuple[Paired, FloatArray]:
        """Some sentences, with repeats, as if from an endless source."""
        rows = rng.integers(0, len(self.size), n)
        size = self.size[rows]
        at = np.repeat(self.first[rows] - np.concatenate([[0], np.cumsum(size)[:-1]]), size) + np.arange(size.sum())
        sentence = np.repeat(np.arange(n, dtype=np.int32), size)
        none = np.empty(0, np.int32)
        paired = Paired(
            model=self.paired.model[at],
            oracle=self.paired.oracle[at],
            sentence=sentence,
            position=sentence,
            impossible_model=none,
            impossible_oracle=none,
            n_sentences=n,
        )
        return paired, self.unigram[at]


def of_sentences(replications: int, seed: int, sizes: Sequence[int], only: str) -> Iterator[Cell]:
    for name, grammar, lengths, noise in (
        ("unequal lengths", PCFG.from_text(UNEQUAL), LengthRange(1, 200), 0.5),
        ("unequal lengths, bad model", PCFG.from_text(UNEQUAL), LengthRange(1, 200), 2.0),
        ("English", english(), LengthRange(6, 25), 0.5),
        ("English, worse model", english(), LengthRange(6, 25), 1.5),
    ):
        if only not in name:
            continue
        source = scored(name, grammar, lengths, noise, seed)
        whole = {name: found[0] for name, found in measured(source.paired, source.unigram, 0).items()}
        for n in sizes:
            rng, hits = np.random.default_rng([seed, n]), defaultdict(list)
            for replication in range(replications):
                for name, (_, low, high) in measured(*source.drawn(n, rng), replication).items():
                    hits[name].append(low <= whole[name] <= high)
            yield from (((source.name, f"{n:,}", name), held) for name, held in hits.items())


def measured(paired: Paired, unigram: FloatArray, seed: int) -> dict[str, tuple[float, float, float]]:
    """Value and interval of each measure."""
    found = {**perplexities(paired, seed), **correlations(paired, seed)}
    model, _, counts = paired.sums()
    total = np.bincount(paired.sentence, unigram) - model
    low, high = np.exp(resampled_ratio(total, counts, seed=seed))
    return {**found, "pplu": (float(np.exp(total.sum() / counts.sum())), low, high)}  # type: ignore[dict-item]


def scored(name: str, pcfg: PCFG, lengths: LengthRange, noise: float, seed: int) -> Source:
    """Sentences of a grammar, scored by it and by one of the same rules."""
    truth = TrueText(pcfg, lengths)
    (text,) = truth.samples(SOURCE, 1, seed=seed)
    ends = np.cumsum(text.lengths)
    sentences = [[truth.words[i] for i in text.tokens[a:b]] for a, b in zip(ends - text.lengths, ends, strict=True)]
    both = score_both(Oracle(perturbed(pcfg, noise, seed), lengths=lengths), Setting(pcfg, sentences, lengths=lengths))
    u, paired = oracle_unigram(both.oracle, ScoringFrame()), both.paired
    places = zip(paired.sentence.tolist(), paired.position.tolist(), strict=True)
    unigram = u.of([[*sentences[i], END][k] for i, k in places])
    size = np.bincount(paired.sentence)
    return Source(name, paired, unigram, np.cumsum(size) - size, size)


def perturbed(pcfg: PCFG, noise: float, seed: int) -> PCFG:
    """The rules with other probabilities: times the exponential of normal noise."""
    rng = np.random.default_rng(seed)
    rules = (pcfg.binary, pcfg.unary, pcfg.lexical)
    logs = [x + noise * rng.normal(size=len(x)) for x in (pcfg.binary_logp, pcfg.unary_logp, pcfg.lexical_logp)]
    total = np.zeros(len(pcfg.symbols))
    for rule, log in zip(rules, logs, strict=True):
        np.add.at(total, rule[:, 0], np.exp(log))
    binary, unary, lexical = (log - np.log(total[rule[:, 0]]) for rule, log in zip(rules, logs, strict=True))
    heads = pcfg.symbols, pcfg.vocabulary, pcfg.start
    return PCFG(*heads, pcfg.binary, binary, pcfg.unary, unary, pcfg.lexical, lexical, pcfg.labels)


# -- laws -------------------------------------------------------------------------------------------


def of_laws(replications: int, seed: int, sizes: Sequence[int], only: str) -> Iterator[Cell]:
    """Sentences of 5 to 19 independent words of a law; ranks from one half, counts from the other."""
    for law in LAWS:
        for words in VOCABULARIES:
            p, source = np.exp(log_pmf(*law, words)[1]), f"{law[0]}, {law[1]}; {words:,} words"
            for sentences in sizes if only in source else ():
                rng, hits = np.random.default_rng([seed, words, sentences]), defaultdict(list)
                for replication in range(replications):
                    lengths = rng.integers(5, 20, sentences)
                    text = Encoded(rng.choice(words, size=int(lengths.sum()), p=p), lengths, words)
                    fit = fit_corpus(text, np.arange(sentences), seed=replication)
                    if not isinstance(fit.truth, TrueLaw):
                        continue  # no interval: neither right nor wrong, the number of the others is in the table
                    for name, found, true in zip(("alpha", "beta"), fit.truth, law, strict=False):
                        hits[name].append(found.low <= true <= found.high)
                for measure, held in hits.items():
                    given = f"{measure}, {len(held)} intervals"
                    yield (source, f"{sentences:,}", given), held


# -- filters ----------------------------------------------------------------------------------------


def of_filters(replications: int, seed: int, sizes: Sequence[int], only: str) -> Iterator[Cell]:
    """Texts whose ln P is known, of short toy words under a 4-gram and of English words under a trigram; totals too."""
    for name, candidates, particles in (
        *(("toy", EstimatorSettings.candidates, particles) for particles in (4, 8, 16, 32)),
        *(("English", candidates, 32) for candidates in (8, 16, EstimatorSettings.candidates)),
        ("English", EstimatorSettings.candidates, 16),
    ):
        source = f"{name}, {candidates} candidates, {particles} particles"
        if only not in source:
            continue
        one = single_filters(*(toy_texts(seed) if name == "toy" else english_texts(seed)), candidates, particles)
        rng = np.random.default_rng([seed, candidates, particles])
        for filters in (2, 4, 8):
            for texts in sizes:
                held, refused = [], 0
                for _ in range(10 * replications):
                    which = rng.integers(0, len(one.relative), texts)
                    drawn = one.relative[which[:, None], rng.integers(0, RUNS, (texts, filters))]
                    found = [
                        Estimate(
                            estimator="dpf",
                            log_p=float(np.log(weights.mean())),
                            bound="unbiased",
                            relative_variance=float(weights.var(ddof=1) / filters / weights.mean() ** 2),
                            log_lower=0.0,
                            steps=0,
                            cuts=0,
                            degrees=filters - 1,
                            unlisted=unlisted,
                        )
                        for weights, unlisted in zip(drawn, one.unlisted[which].tolist(), strict=True)
                    ]
                    variances = [each.variance for each in found if each.variance is not None]
                    if len(variances) < texts:
                        refused += 1
                        continue
                    total = math.fsum(each.log_p for each in found)
                    low, high = log_interval(total, math.fsum(variances), degrees_of(found))
                    held.append(low - 1e-9 <= 0.0 <= high + 1e-9)
                if held:
                    measure = f"ln P, {refused / (10 * replications):.0%} without a bar"
                    yield ((f"{source}, {filters} filters", f"{texts} texts", measure), held)


class Filters(NamedTuple):
    """Single filters of some texts, T of them."""

    relative: FloatArray  #: (T, RUNS) estimates of P over the exact one
    unlisted: FloatArray  #: (T,) `Estimate.unlisted`


def single_filters(model: TokenisedModel, texts: Sequence[str], candidates: int, particles: int) -> Filters:
    """`RUNS` filters of each text; texts that are exact are left out."""
    settings = EstimatorSettings(candidates=candidates, particles=particles, replicates=1)
    rows, unlisted = [], []
    for document in documents(model, texts, LatticeBuilder(model.pieces.inventory)).documents:
        truth = ESTIMATORS["exact"].run(model, document, settings).log_p
        found = [ESTIMATORS["dpf"].run(model, document, replace(settings, seed=i)) for i in range(RUNS)]
        if found[0].bound != "exact":
            rows.append(np.exp([each.log_p - truth for each in found]))
            unlisted.append(found[0].unlisted)
    return Filters(np.stack(rows), np.array(unlisted))


def toy_texts(seed: int) -> tuple[TokenisedModel, list[str]]:
    """Texts of 3 to 8 words of at most 4 letters, under a 4-gram of pieces."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))
    from guided_estimates import AB
    from piece_models import ToyPieceModel

    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, rng.integers(3, 9))) for _ in range(TEXTS)]
    return ToyPieceModel(AB, order=4, seed=5, spread=1.0), texts


def english_texts(seed: int) -> tuple[TokenisedModel, list[str]]:
    """Texts of about 60 words of up to 13 letters, some of which have 100 segmentations and more, under a trigram.

    The embedded grammar makes the words; 400 unigram pieces and the trigram are trained on 1,000 of its sentences.
    """
    from truesource import Corpus, load_model, model_settings, train

    with tempfile.TemporaryDirectory() as folder:
        splits = {"train": 1000, "eval": 4 * TEXTS}
        corpus = Corpus.sample(english(), splits, seed=seed, lengths=LengthRange(12, 18), path=Path(folder) / "corpus")
        settings = model_settings("ngram", order=3, tokenizer="unigram", vocab_size=400)
        train(corpus, settings, None, Path(folder) / "model", seed=seed)
        sentences = [" ".join(sentence) for sentence in corpus.sentences("eval")]
        model = require_pieces(load_model(Path(folder) / "model"), "trigram")
    return model, [" ".join(sentences[i : i + 4]) for i in range(0, len(sentences), 4)]


if __name__ == "__main__":
    main()
