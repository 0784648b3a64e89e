"""Comparing models of parallel languages, each with its own truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from truesource.evaluation.comparing import ModelComparison
from truesource.evaluation.comparing import compare_models as compare_scores
from truesource.evaluation.core.setting import Setting
from truesource.generator.arguments import as_lengths
from truesource.generator.language_model import LanguageModel
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import brief
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth
from truesource.studies.compare.scoring import parallel_kind, score_seeds


@dataclass(frozen=True, kw_only=True)
class ParallelText:
    """One of several texts whose sentences correspond, its truth, and the models that learned its language."""

    language: Truth
    sentences: Sequence[Sequence[str]]
    models: Sequence[LanguageModel]  #: one, or its training seeds

    def __repr__(self) -> str:
        names = ", ".join(model.name for model in self.models)
        return brief(f"ParallelText({len(self.sentences):,} sentences of {self.language!r}, models: {names})")


def compare_parallel(
    texts: Mapping[str, ParallelText],
    *,
    lengths: LengthRange | tuple[int, int] | str | None,
    frame: str = "default",
    baseline: str | None = None,
    seed: int = DEFAULT_SEED,
    exact: int | None = None,
) -> ModelComparison:
    """Compare models of parallel languages, each with its own truth, in pairs of sentences.

    The texts come from `truesource sample --variant`, with as many words in corresponding sentences: in another order
    (``head-final``, ``mirror``) or with other words in the same trees (``zipf``). Corresponding sentences are similarly
    hard, so the difference of KL has less noise than between independent texts.

    Args:
        texts: by name, two or more.
        lengths: the length condition that the corpora were drawn under.
        frame: positions that count: ``default`` or ``paper``.
        baseline: name of the text that the others are compared with; None: the first.
        seed: of the resampling.
        exact: number of sentences whose full distributions are compared too; None: of none.

    Returns:
        A row a text; differences of KL, nats a token, to the baseline. Intervals and p-values are also over training
        seeds, if there are several.

    Raises:
        InputError: there are fewer than two texts, they are not parallel, a text has no model, models have different
            objectives, or none is called ``baseline``.
        NothingToCompareError: a model, or all models together, can make no sentence.
    """
    if len(texts) < 2:
        raise InputError("a comparison takes two texts or more; name another", code="too-few-models")
    if alone := [name for name, text in texts.items() if not text.models]:
        raise InputError(f"the text {alone[0]} has no model; give one or more", code="too-few-models")
    kind = parallel_kind([(text.language, model) for text in texts.values() for model in text.models])
    scored = []
    for name, text in texts.items():
        setting = Setting(text.language, text.sentences, as_lengths(lengths), frame, seed)
        scored.append(score_seeds(name, text.models, setting, exact, setting.vocabularies(text.models, kind)))
    return compare_scores(scored, baseline=baseline, seed=seed, parallel=True)
