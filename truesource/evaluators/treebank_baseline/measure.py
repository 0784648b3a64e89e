"""What the verb and the stage measure: models on real and on sampled text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from truesource.evaluation.baseline.compare import Kind, TextScores, score_on_text
from truesource.generator.language_model import preset_frame

if TYPE_CHECKING:
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.generator.language_model import LanguageModel
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG


@dataclass(frozen=True)
class TextToMeasure:
    """Sentences, and what they are conditioned on."""

    sentences: Sequence[Sequence[str]]
    lengths: LengthRange | None
    excluded: Exclusion | None = None


def measure(
    models: Mapping[str, LanguageModel],
    pcfg: PCFG | None,
    texts: Mapping[Kind, TextToMeasure],
    *,
    frame: Literal["default", "paper"],
    seed: int,
) -> dict[Kind, TextScores]:
    """Scores of all models on each text; see `truesource.evaluation.baseline.compare.score_on_text`."""
    objective = next(iter(models.values())).objective
    return {
        kind: score_on_text(
            models,
            pcfg,
            text.sentences,
            kind=kind,
            lengths=text.lengths,
            frame=preset_frame(frame, objective),
            seed=seed,
            excluded=text.excluded,
        )
        for kind, text in texts.items()
    }


def records_of(found: Mapping[Kind, TextScores]) -> list[dict[str, Any]]:
    """The records of all texts."""
    return [record for scores in found.values() for record in scores.records]
