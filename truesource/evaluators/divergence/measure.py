"""What the verb and the stage measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from truesource.evaluation.divergence.blocks import PENN, read_classes
from truesource.evaluation.divergence.compare import ModelDivergence, compare_distributions
from truesource.evaluators.divergence.settings import DivergenceSettings

if TYPE_CHECKING:
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.generator.interface.language_model import DistributionModel
    from truesource.generator.transforms import Transform
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG


def measure(
    model: DistributionModel,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    settings: DivergenceSettings,
    *,
    lengths: LengthRange | None,
    seed: int,
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
) -> ModelDivergence:
    """Compare the first sentences; see `truesource.evaluation.divergence.compare.compare_distributions`."""
    return compare_distributions(
        model,
        pcfg,
        sentences[: settings.sentences],
        lengths=lengths,
        top=settings.top_k,
        by=settings.by,
        classes=PENN if settings.classes is None else read_classes(settings.classes),
        seed=seed,
        excluded=excluded,
        transform=transform,
    )
