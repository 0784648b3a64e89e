"""Two parses of the same sentences: how often they differ, and whether one is better.

The difference of labelled F1 has a 95% interval by resampling sentences, and a p-value by randomisation (Noreen 1989;
Yeh 2000): where both parsers are equally good, the two parses of a sentence may be swapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.measures.bootstrap import DRAWN, Interval, ci_part, ends, resampled_measures
from truesource.evaluation.measures.brackets import BracketScores, compare_brackets
from truesource.evaluation.measures.monte_carlo import ChanceTest, judged
from truesource.evaluation.measures.proportions import proportion
from truesource.evaluation.measures.repetitions import PERMUTATIONS
from truesource.evaluation.measures.tree_brackets import tagged_words
from truesource.evaluation.parsing.lengths import BANDS, SHORT, LengthBand
from truesource.evaluation.parsing.scores import treebank_parts
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree


@dataclass(frozen=True, kw_only=True)
class F1Difference:
    """Labelled F1 of a parser less that of its baseline, on the same treebank."""

    parser: float  #: labelled F1, in [0, 1]
    baseline: float  #: labelled F1, in [0, 1]
    interval: Interval  #: of the difference
    test: ChanceTest  #: of the difference, two-sided


@dataclass(frozen=True, kw_only=True)
class ParseDifference:
    """What `compare_parses` found."""

    parser: str
    baseline: str
    lengths: IntArray = field(repr=False)  #: (N,) words of each sentence, traces left out; 0 where neither has a tree
    differs: BoolArray = field(repr=False)  #: (N,) whether the trees differ in a label, a tag or a bracket
    f1: F1Difference | None  #: None: no treebank was given, or it has no brackets
    parts: Mapping[str, object] = field(repr=False)  #: of the signature
    seed: int  #: of the bootstrap and of the randomisation

    def differing(self, band: LengthBand | None = None) -> Interval | None:
        """Share of the sentences whose trees differ; None where there is no sentence.

        Args:
            band: lengths of the sentences that count; None: all sentences.
        """
        inside = [band is None or length in band for length in self.lengths.tolist()]
        counted = np.array(inside, np.float64)
        return proportion(self.differs * counted, counted)

    def records(self) -> list[dict[str, Any]]:
        """One record a number, for JSON: ``differing_trees`` of all and by length; ``labelled_f1_difference``."""
        head = {"parser": self.parser, "baseline": self.baseline}
        found = []
        for band in (None, SHORT, *BANDS):
            share = self.differing(band)
            if share is None:
                continue
            n = len(self.lengths) if band is None else sum(length in band for length in self.lengths.tolist())
            place = {} if band is None else {"by": "length", "group": str(band)}
            signed = {} if band is None else {"by": "length", "band": str(band)}
            told = signature({**self.parts, **signed, "sentences": n, "ci": ci_part(n, self.seed, method="wilson")})
            score = Score("differing_trees", share.value, told, share.low, share.high)
            found.append({**head, **place, "sentences": n, **score.as_record()})
        if self.f1 is not None:
            n, value = len(self.lengths), self.f1.interval
            null = f"swapped-parses/{self.f1.test.draws}"
            told = signature({**self.parts, "sentences": n, "null": null, "ci": ci_part(n, self.seed)})
            score = Score("labelled_f1_difference", value.value, told, value.low, value.high)
            values = {"labelled_f1": self.f1.parser, "labelled_f1_baseline": self.f1.baseline, "p": self.f1.test.p}
            found.append({**head, "sentences": n, **score.as_record(), **values})
        return found


def compare_parses(
    parsed: Sequence[Tree | None],
    baseline: Sequence[Tree | None],
    gold: Sequence[Tree] | None = None,
    *,
    names: tuple[str, str] = ("parser", "baseline"),
    seed: int = DEFAULT_SEED,
    draws: int = PERMUTATIONS,
) -> ParseDifference:
    """Compare two parses of the same sentences, and their labelled F1 where there is a treebank.

    Args:
        parsed: trees of the one parser; None where there is none.
        baseline: trees of the other.
        gold: trees of the treebank.
        names: of the two, for records and signatures.
        seed: of the bootstrap and of the randomisation.
        draws: number of random swaps.

    Raises:
        InputError: the numbers of sentences differ, there are none, or trees of a sentence have different words.
    """
    if len(parsed) != len(baseline) or not parsed:
        raise InputError(f"there are {len(parsed):,} and {len(baseline):,} parses to compare; give as many of both")
    words = [
        _words(number, one, other) for number, (one, other) in enumerate(zip(parsed, baseline, strict=True), start=1)
    ]
    parts: dict[str, object] = {"parser": names[0], "baseline": names[1]}
    if gold is None:
        parts |= {"data": digest_sentences(words)}
        lengths = [len(sentence) for sentence in words]
        f1 = None
    else:
        of_parser, of_baseline = (compare_brackets(gold, trees) for trees in (parsed, baseline))
        parts |= treebank_parts(gold)
        lengths = [row.length for row in of_parser.by_sentence]
        f1 = f1_difference(of_parser, of_baseline, seed=seed, draws=draws)
    return ParseDifference(
        parser=names[0],
        baseline=names[1],
        lengths=np.array(lengths, np.int64),
        differs=np.array([_text(one) != _text(other) for one, other in zip(parsed, baseline, strict=True)]),
        f1=f1,
        parts=parts,
        seed=seed,
    )


def f1_difference(
    parser: BracketScores, baseline: BracketScores, *, seed: int = DEFAULT_SEED, draws: int = PERMUTATIONS
) -> F1Difference | None:
    """Labelled F1 of a parser less that of another on the same treebank; None where the treebank has no brackets.

    Args:
        parser: scores of the one.
        baseline: scores of the other on the same sentences.
        seed: of the bootstrap and of the randomisation.
        draws: number of random swaps.
    """
    if parser.gold == 0:
        return None
    both = [[(2 * row.matched, row.gold + row.proposed) for row in side.by_sentence] for side in (parser, baseline)]
    sums = np.concatenate([np.array(side, np.float64) for side in both], axis=1)
    value = parser.f1 - baseline.f1
    low, high = ends(*resampled_measures(_difference, sums, seed=seed)[:, 0])
    test = judged(value, _swapped(sums, seed=seed, draws=draws), "both", centre=0.0)
    return F1Difference(parser=parser.f1, baseline=baseline.f1, interval=Interval(value, low, high), test=test)


def _difference(sums: NDArray[Any]) -> NDArray[Any]:
    """Difference of F1 (R, 1) from sums (R, 4): twice the matched brackets and all brackets, of both sides."""
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample may have no brackets at all
        return np.asarray(sums[:, :1] / sums[:, 1:2] - sums[:, 2:3] / sums[:, 3:])


def _swapped(sums: FloatArray, *, seed: int, draws: int) -> FloatArray:
    """Differences of F1 where the two parses of each sentence are swapped at random, (draws,)."""
    whole = sums.sum(axis=0)
    change = sums[:, 2:] - sums[:, :2]
    change = change[change.any(axis=1)]  # other sentences are the same swapped
    rng = np.random.default_rng(seed)
    step = max(1, DRAWN // max(1, len(change)))
    found = []
    for start in range(0, draws, step):
        swaps = rng.integers(0, 2, (min(step, draws - start), len(change))).astype(np.float64)
        moved = swaps @ change
        found.append(_difference(np.concatenate([whole[:2] + moved, whole[2:] - moved], axis=1))[:, 0])
    return np.concatenate(found)


def _words(number: int, one: Tree | None, other: Tree | None) -> list[str]:
    """The words of a sentence, traces left out; none where neither has a tree."""
    found = [[word for _, word in tagged_words(tree)] for tree in (one, other) if tree is not None]
    if len(found) == 2 and found[0] != found[1]:
        raise InputError(f"the two parses of sentence {number:,} have different words")
    return found[0] if found else []


def _text(tree: Tree | None) -> str | None:
    return None if tree is None else str(tree)  # comparing deep trees themselves recurs
