"""Coverage of 95% intervals, and size of tests, of comparisons of models with different vocabularies.

    python benchmarks/coverage_vocabulary.py [--replications 200] [--sizes 100 1000]

The truth is a grammar under a length condition whose sentences are enumerated, so that the KL of a model, and the
difference of two, are known exactly in the vocabularies ``common`` and ``full``. Models are tables of the word before,
with vocabularies of their own. The second model of the size is the first with the words c and d exchanged; the truth
treats the two alike, so both models have one KL.

Holds: share of intervals with the true value. Size: share of tests at 0.05 that find a difference where there is none.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.vocabulary import ComparisonVocabulary
from truesource.evaluation.measures.contrast import SeedSums, difference, mean_over_seeds
from truesource.generator.language_model import LanguageModel, LogDistributions, ScoringFrame, TokenScores
from truesource.generator.language_model import assemble_scores as assemble
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray

TRUTH = PCFG.from_text(
    "S -> S S 0.3 | A S 0.3 | 'a' 0.2 | 'b' 0.1 | 'c' 0.05 | 'd' 0.05\nA -> A A 0.1 | 'c' 0.3 | 'd' 0.3 | 'e' 0.3"
)
LENGTHS = LengthRange(1, 6)
SWAP = {"c": "d", "d": "c"}


class Bigrams:
    """A model of the word before it, from weights drawn at random; ``swapped`` exchanges two words."""

    objective = "causal"

    def __init__(self, name: str, vocabulary: Sequence[str], seed: int, swapped: bool = False) -> None:
        self.name, self.vocabulary, self._swapped = name, tuple(vocabulary), swapped
        rng = np.random.default_rng(seed)
        size = len(vocabulary) + 2
        self._table: FloatArray = np.log(rng.dirichlet(np.full(size, 2.0), size=size))
        self._place = {word: i for i, word in enumerate(vocabulary)}

    def _columns(self, sentence: Sequence[str]) -> list[int]:
        words = [SWAP.get(word, word) for word in sentence] if self._swapped else sentence
        return [self._place.get(word, len(self._place)) for word in words]

    def _rows(self, sentence: Sequence[str]) -> FloatArray:
        table = self._table[[len(self._place) + 1, *self._columns(sentence)]]
        if not self._swapped:
            return table
        words = [SWAP.get(word, word) for word in self.vocabulary]
        order = [self._place[word] for word in words]
        return table[:, [*order, len(self._place), len(self._place) + 1]]

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Rows of the table."""
        tables = np.stack([self._rows(sentence) for sentence in sentences])
        for position in range(tables.shape[1]):
            yield LogDistributions(position, tables[:, position])

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Entries of the table."""
        end, rows, unknown = len(self._place) + 1, [], []
        for sentence in sentences:
            own = [self._place.get(word, len(self._place)) for word in sentence]
            rows.append(self._rows(sentence)[np.arange(len(sentence) + 1), [*own, end]])
            unknown.append(np.array([column == len(self._place) for column in own]))
        return assemble(rows, unknown, frame)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    strings = [list(s) for n in range(1, LENGTHS.high + 1) for s in itertools.product("abcde", repeat=n)]
    law = np.exp(TRUTH.exact.string_log_probs(strings, LENGTHS))
    kept = law > 0.0
    sentences, law = [s for s, keep in zip(strings, kept, strict=True) if keep], law[kept] / law[kept].sum()
    setting = Setting(TRUTH, sentences, LENGTHS, counts={"a": 400, "b": 150, "c": 200, "d": 200, "e": 60})
    fine, coarse = Bigrams("fine", "abcd", 3), Bigrams("coarse", "cda", 5)
    twin = Bigrams("twin", "abcd", 3, swapped=True)
    vocabularies = {
        "common": ComparisonVocabulary("common", TRUTH, ("a", "c", "d")),
        "full": ComparisonVocabulary("full", TRUTH, tuple("abcde"), setting.training_counts),
    }
    print(f"{len(sentences):,} sentences enumerated; {asked.replications} replications")
    print(f"{'vocabulary':12}{'sentences':>10}{'KL holds':>10}{'difference holds':>18}{'size':>8}")
    for name, vocabulary in vocabularies.items():

        def table(model: LanguageModel, vocabulary: ComparisonVocabulary = vocabulary) -> FloatArray:
            return score_both(vocabulary.adapt(model), setting).paired.table()

        gaps = {model.name: table(model) for model in (fine, coarse, twin)}  # type: ignore[arg-type]
        true = {key: float(law @ each[0] / (law @ each[2])) for key, each in gaps.items()}
        assert abs(true["fine"] - true["twin"]) < 1e-12
        for size in asked.sizes:
            rng = np.random.default_rng([asked.seed, size])
            held = differs = found = 0
            for _ in range(asked.replications):
                drawn = rng.choice(len(law), size=size, p=law)
                one, two, same = (SeedSums(gaps[key][0][None, drawn], gaps[key][2][None, drawn]) for key in gaps)
                kl, apart, alike = mean_over_seeds(one), difference(two, one), difference(same, one)
                held += kl.low <= true["fine"] <= kl.high  # type: ignore[operator]
                differs += apart.low <= true["coarse"] - true["fine"] <= apart.high  # type: ignore[operator]
                found += alike.p is not None and alike.p < 0.05
            n = asked.replications
            print(f"{name:12}{size:>10,}{held / n:>10.3f}{differs / n:>18.3f}{found / n:>8.3f}")


if __name__ == "__main__":
    main()
