"""Comparing models in Python: objects in, comparisons out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from truesource.comparing.scoring import SharedText, comparisons
from truesource.evaluation.comparing import ModelComparison, ModelScores
from truesource.generator.language_model import LanguageModel
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.settings import DEFAULT_SEED


def compare_models(
    models: Mapping[str, LanguageModel | Sequence[LanguageModel]],
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    frame: str = "default",
    baseline: str | None = None,
    seed: int = DEFAULT_SEED,
    exact: int | None = None,
) -> list[ModelComparison]:
    """Compare several models with the truth and with each other, as `truesource compare` does.

    `truesource.comparing.tables.comparison_table` makes the table of a comparison,
    its method ``records`` gives its numbers for JSON, ``to_pandas`` the same as a data frame.

    Args:
        models: by name; several of one name are its training seeds.
        pcfg: the grammar that the corpus was drawn from.
        sentences: evaluation sentences, in the grammar's words.
        lengths: the length condition that the corpus was drawn under.
        frame: positions that count: ``default`` or ``paper``.
        baseline: name of the model that the others are compared with; None: the first.
        seed: of the resampling.
        exact: number of sentences whose full distributions are compared too; None: of none.

    Returns:
        A comparison for each objective, causal models first.

    Raises:
        InputError: there are fewer than two models, or none is called ``baseline``.
        NothingToCompareError: a model, or all models together, can make no sentence.
    """
    text = SharedText(pcfg=pcfg, sentences=sentences, lengths=lengths, frame=frame, seed=seed, exact=exact)
    scored = []
    for name, given in models.items():
        seeds = list(given) if isinstance(given, Sequence) else [given]
        labels = [name] if len(seeds) == 1 else [f"{name} {number}" for number in range(1, len(seeds) + 1)]
        found = [text.score(model, label) for model, label in zip(seeds, labels, strict=True)]
        scored.append(ModelScores(name=name, seeds=found))
    return comparisons(scored, baseline=baseline, seed=seed)[0]
