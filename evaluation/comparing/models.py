"""The models of a comparison: each a name with the scores of one or more seeds, and which of them compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.measures.bootstrap import ci_part
from truesource.evaluation.measures.contrast import SeedSums
from truesource.evaluation.measures.paired import Paired
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.support.arrays import BoolArray, FloatArray

#: parts of signatures that say what is predicted, of which text, and with which truth; models that differ in one of
#: them do not compare
SAME = ("objective", "data", "grammar", "given", "transform", "disjoint", "eos", "first", "unk", "longest", "longer")


@dataclass(frozen=True, kw_only=True)
class SeedScores:
    """A trained model beside the truth."""

    label: str  #: what this very model is called: its reference, or its name in a run
    paired: Paired
    parts: Mapping[str, object]  #: of the signature of its scores
    resampling: int = DEFAULT_SEED  #: seed of the intervals of these scores
    seed: int | None = None  #: that it was trained with, where that is known
    exact: Score | None = None  #: from full distributions: ``kl``, nats a token, or ``kl_infinite``, a share

    @cached_property
    def table(self) -> FloatArray:
        """`Paired.table`."""
        return self.paired.table()

    def resampled(self, seed: int) -> SeedScores:
        """The same scores with intervals by another seed."""
        made = self.paired.n_sentences - len(self.paired.excluded)
        return replace(self, resampling=seed, parts={**self.parts, "ci": ci_part(made, seed)})


@dataclass(frozen=True, kw_only=True)
class ModelScores:
    """A model of a comparison: one seed, or several that differ in nothing else."""

    name: str
    seeds: Sequence[SeedScores]  #: one or more, of one key

    @property
    def parts(self) -> Mapping[str, object]:
        """Parts of the signature of the first seed."""
        return self.seeds[0].parts

    @property
    def key(self) -> tuple[str, ...]:
        """What models have in common that compare: the values of `SAME`."""
        values = {name: str(self.parts.get(name, "")) for name in SAME}
        values["grammar"] = values["grammar"].split(" ")[-1]  # the digest, without the name of a language
        return tuple(values.values())

    @property
    def asked(self) -> tuple[str, ...]:
        """`key` without the text and its truth, which parallel texts have of their own."""
        return tuple(value for name, value in zip(SAME, self.key, strict=True) if name not in ("data", "grammar"))

    @property
    def objective(self) -> str:
        """Causal or masked."""
        return str(self.parts["objective"])

    @property
    def made(self) -> BoolArray:
        """Sentences in which all seeds and the oracle count a position, (N,)."""
        return np.asarray(np.all([seed.table[2] > 0.0 for seed in self.seeds], axis=0))

    def resampled(self, seed: int) -> ModelScores:
        """The same scores with intervals by another seed."""
        return replace(self, seeds=[scores.resampled(seed) for scores in self.seeds])

    def sums(self, measure: str, sentences: BoolArray) -> SeedSums:
        """What the ratio of a measure is made of, on some of the sentences.

        Args:
            measure: ``kl``, ``bound`` (-ln P) or ``ppl`` (-ln Q), each a token, in nats.
            sentences: (N,) which of them.
        """
        gap, bound, count = np.stack([seed.table[:, sentences] for seed in self.seeds], axis=1)
        return SeedSums({"kl": gap, "bound": bound, "ppl": gap + bound}[measure], count)


def grouped(models: Sequence[ModelScores]) -> list[list[ModelScores]]:
    """The models in groups that compare: one text, one truth, one objective; each in the order given."""
    groups: dict[tuple[str, ...], list[ModelScores]] = {}
    for model in models:
        groups.setdefault(model.key, []).append(model)
    return list(groups.values())
