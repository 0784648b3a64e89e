"""What is measured of one trained model on one language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truesource.benchmark.results import Divergences
from truesource.benchmark.truth import LanguageTruth, Part
from truesource.generator.abilities import require
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.evaluation.divergence.contexts import Contexts
    from truesource.generator.language_model import DistributionModel, LanguageModel


class MeasuredModel:
    """A model in the contexts of the test strings, and of longer ones.

    Args:
        model: with full distributions.
        truth: about the language.
        longest: most tokens that the model reads, its marks included; None: any number.

    Raises:
        InputError: the model has no full distributions, or gives probability 0 to what may follow.
    """

    def __init__(self, model: LanguageModel, truth: LanguageTruth, longest: int | None) -> None:
        self._truth = truth
        distributed = require(model, "distributions", "benchmark")
        found = truth.measured(distributed, "test")
        self.test = self._divergences(distributed, found, "test")
        self.calibration = found.reliability.error
        self.longer: Divergences | None = None
        self.longer_refused: str | None = None
        needed = truth.language.longest + 2
        if "longer" not in truth.parts:
            return
        if longest is not None and longest < needed:
            self.longer_refused = (
                f"the model reads {longest} tokens at most, and the longer strings have up to {needed}"
            )
            return
        self.longer = self._divergences(distributed, truth.measured(distributed, "longer"), "longer")

    def _divergences(self, model: DistributionModel, found: Contexts, part: Part) -> Divergences:
        kept = self._truth.counted(found, part)
        kl = self._truth.blocks(found, part, found.column("kl"))
        if not all(value < float("inf") for value in kl):
            raise InputError(
                f"{model.name} gives probability 0 to something that may follow, so that its divergence from the truth"
                " is infinite; smooth it",
                code="infinite-divergence",
            )
        wrong = found.column("impossible_mass") + found.column("special_mass")
        return {"kl": kl, "wrong": min(1.0, float(wrong[kept].mean()))}
