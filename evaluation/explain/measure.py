"""Effects of levers on a model, and references for it, on the same sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.vocabulary import ComparisonVocabulary, in_vocabulary
from truesource.evaluation.core.windows import BestWithin
from truesource.evaluation.measures.contrast import CHANCE, Contrast, SeedSums, mean_over_seeds
from truesource.evaluation.measures.monte_carlo import holm
from truesource.generator.abilities import offers
from truesource.generator.language_model import LanguageModel
from truesource.grammar.diagnostics import has_endings
from truesource.grammar.estimate.data_floor import SMOOTHING, data_floor
from truesource.grammar.estimate.inside_outside import inside_outside, random_start
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.settings import DEFAULT_SEED

Kind = Literal["window", "ngram", "marginal", "floor", "em"]
ITERATIONS = 40  #: of EM, at most
GAIN = 1e-6  #: nats a token that an iteration of EM gains at least


@dataclass(frozen=True, eq=False)
class Rung:
    """One reference."""

    kind: Kind
    #: words that are seen: k of the best predictor, n-1 of an n-gram model; None: all
    seen: int | None
    table: FloatArray | None  #: (3, N) as `truesource.evaluation.measures.paired.Paired.table`; None: only a mean
    value: float | None = None  #: KL in nats a token, if there is no table


def window_rungs(
    model: LanguageModel, setting: Setting, number: int, vocabulary: ComparisonVocabulary | None = None
) -> Iterator[Rung]:
    """Yield the best predictors that see 0, 1, 2, ... words, ``number`` of them, in one vocabulary; exact.

    Without ``vocabulary``, it is the model's own. There are no predictors for a masked model, a transformed text, or a
    truth without rules.
    """
    if model.objective != "causal" or setting.transform is not None or not offers(setting.known, "windows"):
        return
    words = model.vocabulary if vocabulary is None else None
    first = BestWithin(setting.grammar, 0, lengths=setting.lengths, vocabulary=words)
    for seen in range(number):
        best = in_vocabulary(first.with_words(seen), vocabulary)
        yield Rung("window", seen, score_both(best, setting).paired.table())


def floor_rung(setting: Setting, sentences: int, tokens: float) -> Rung | None:
    """Return the floor of the data: a learner that knows the rules, and counts them in the trees of the train split.

    In closed form, see `truesource.grammar.estimate.data_floor.data_floor`: a bound of the expected divergence of such
    a learner, to leading order if there is a condition on length. None for a truth without rules, or if
    derivations may not end.

    Args:
        setting: the truth.
        sentences: N, trees of the train split.
        tokens: of a sentence on average, its end included.
    """
    pcfg = setting.known
    if not isinstance(pcfg, PCFG) or (setting.lengths is None and not has_endings(pcfg)):
        return None
    return Rung("floor", None, None, data_floor(pcfg, sentences, lengths=setting.lengths) / tokens)


def em_rung(
    model: LanguageModel,
    setting: Setting,
    sentences: Sequence[Sequence[str]],
    starts: int,
    vocabulary: ComparisonVocabulary | None = None,
) -> Rung | None:
    """Return the floor of the data without trees: a learner that knows the rules fits probabilities by EM.

    Of several random starts the one with the largest posterior probability counts, as a learner would choose it. None
    for a masked model, a transformed text, and a truth without rules.

    Args:
        model: whose vocabulary counts.
        setting: text and truth to compare on.
        sentences: to fit to.
        starts: number of random starts, 1 or more.
        vocabulary: of the comparison; None: the model's own.
    """
    pcfg = setting.known
    if model.objective != "causal" or setting.transform is not None or not isinstance(pcfg, PCFG):
        return None
    rng = np.random.default_rng(setting.seed)
    learned = [
        inside_outside(random_start(pcfg, rng), sentences, iterations=ITERATIONS, tolerance=GAIN, prior=SMOOTHING)
        for _ in range(starts)
    ]
    best = max(learned, key=lambda each: each.trace[-1]["objective"])
    words = model.vocabulary if vocabulary is None else None
    guess = in_vocabulary(Oracle(best.pcfg, "causal", lengths=setting.lengths, vocabulary=words), vocabulary)
    return Rung("em", None, score_both(guess, setting).paired.table())


@dataclass(frozen=True)
class LeverChange:
    """Change of the divergence from the truth by a lever, nats a token; below 0 it helps."""

    contrast: Contrast
    p_adjusted: float | None  #: by Holm's method, for all levers; None: there is no interval

    @property
    def helps(self) -> bool:
        """True if the model is significantly nearer to the truth."""
        return self.contrast.value < 0.0 and self.p_adjusted is not None and self.p_adjusted < CHANCE


def changes(base: SeedSums, levers: Mapping[str, SeedSums], *, seed: int = DEFAULT_SEED) -> dict[str, LeverChange]:
    """Compare each lever with the model, on the same sentences and with the same seeds, seed by seed.

    Args:
        base: sums of ln P - ln Q and of tokens, of each seed of the model.
        levers: the same of the trainings, by lever; the same tokens and seeds.
        seed: of the resampling.

    Raises:
        ValueError: a lever was scored on other tokens, or has other seeds.
    """
    if any(not np.array_equal(sums.count, base.count) for sums in levers.values()):
        raise ValueError("levers are compared seed by seed, on the same tokens as the model")
    contrasts = {
        name: mean_over_seeds(SeedSums(sums.total - base.total, base.count), seed=seed) for name, sums in levers.items()
    }
    adjusted = iter(holm([contrast.p for contrast in contrasts.values() if contrast.p is not None]))
    return {
        name: LeverChange(contrast, None if contrast.p is None else next(adjusted))
        for name, contrast in contrasts.items()
    }


def first_of(found: Mapping[str, LeverChange]) -> str | None:
    """Return the lever that helps most, and surely; None if none does.

    Exact targets are named only if nothing else helps: they measure the cost of sampling noise in words, but are
    unavailable for an unknown truth.
    """
    helping = {name: change.contrast.value for name, change in found.items() if change.helps}
    pulled = {name: value for name, value in helping.items() if name != "targets"} or helping
    return min(pulled, key=lambda name: pulled[name]) if pulled else None
