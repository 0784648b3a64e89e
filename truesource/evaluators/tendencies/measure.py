"""What the verb and the stage share."""

from __future__ import annotations

from collections.abc import Sequence

from truesource.embedded import read_stopwords
from truesource.evaluation.tendencies.decoding_schemes import classes_for
from truesource.evaluation.tendencies.settings import TendencySettings
from truesource.evaluators.tendencies.settings import TendenciesSettings


def engine_settings(
    settings: TendenciesSettings, texts: Sequence[list[list[str]]], words: Sequence[str], seed: int
) -> TendencySettings:
    """Settings of the comparison; it has a class of stopwords only where the texts or the grammar have some.

    Args:
        settings: of the evaluator.
        texts: that are compared.
        words: of the grammar; none where it is not known.
        seed: of all that is random.
    """
    return TendencySettings(
        classes_for(read_stopwords(settings.stopwords, settings.definitions), [*texts, [list(words)]]),
        chance=settings.chance,
        permutations=settings.permutations,
        variant=settings.definitions,
        seed=seed,
    )
