"""Comparisons of scored models, a group for each objective, text, truth and vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

from truesource.evaluation.comparing import SAME, ModelComparison, ModelScores, grouped
from truesource.evaluation.comparing import compare_models as compare_scores
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import listed
from truesource.grammar.support.settings import DEFAULT_SEED

#: why models are set apart, by the first part of their signatures that differs
REASONS = {
    "data": "sentences",
    "grammar": "grammars",
    "given": "length conditions",
    "vocab": "vocabularies",
    **dict.fromkeys(("eos", "first", "unk"), "scoring frames"),
}


def comparisons(
    models: Sequence[ModelScores], *, baseline: str | None = None, seed: int | None = None, own: bool = False
) -> tuple[list[ModelComparison], list[str]]:
    """Compare models of the same objective, text, truth and vocabulary, causal first; explain groups set apart.

    Args:
        models: of one call or of some runs.
        own: vocabularies are the models' own on request, so that no two models need to compare.
        baseline: name of a model; None, and in groups without it: the first model.
        seed: of the resampling; None: the seed of the scores if they share one, else the default.

    Raises:
        InputError: there are fewer than two models, several have one objective and no two of all compare, or none is
            called ``baseline``.
        NothingToCompareError: a group has no sentence in common.
    """
    names = [model.name for model in models]
    if len(models) < 2:
        number = f"there is only {names[0]}" if names else "none was named"
        raise InputError(f"a comparison takes two models or more, but {number}; name another", code="too-few-models")
    if baseline is not None and baseline not in names:
        raise InputError(
            f"there is no model {baseline!r} to be the baseline; there are {listed(names)}", code="unknown-baseline"
        )
    groups = sorted(grouped(models), key=lambda group: group[0].objective)
    apart = _apart(groups)
    if apart and not own and all(len(group) == 1 for group in groups):
        those = apart[0]
        raise InputError(
            f"{listed([group[0].name for group in those])} do not compare: they have different {_reason(those)}"
            f"{_remedy(those)}",
            code="different-texts",
        )
    found_in = [baseline if any(model.name == baseline for model in group) else None for group in groups]
    notes = [
        f"the {those[0][0].objective} models have different {_reason(those)}, so they are compared in {len(those)}"
        f" groups: {'; '.join(listed([model.name for model in group]) for group in those)}"
        f"{'' if own else _remedy(those)}"
        for those in apart
    ]
    common = _seed_of_scores(models) if seed is None else seed
    return [
        compare_scores(group, baseline=against, seed=common) for group, against in zip(groups, found_in, strict=True)
    ], notes


def _seed_of_scores(models: Sequence[ModelScores]) -> int:
    seeds = {scores.resampling for model in models for scores in model.seeds}
    return seeds.pop() if len(seeds) == 1 else DEFAULT_SEED


def _differing(groups: Sequence[Sequence[ModelScores]]) -> list[str]:
    """Return the parts of signatures, of `SAME`, in which groups differ."""
    keys = [group[0].key for group in groups]
    return [name for name, values in zip(SAME, zip(*keys, strict=True), strict=True) if len(set(values)) > 1]


def _reason(groups: Sequence[Sequence[ModelScores]]) -> str:
    return listed(list(dict.fromkeys(REASONS.get(name, "texts") for name in _differing(groups))))


def _remedy(groups: Sequence[Sequence[ModelScores]]) -> str:
    """Return the command for models that differ only in their vocabularies, as a part of a message."""
    if _differing(groups) != ["vocab"]:
        return ""
    return "; truesource compare MODEL MODEL CORPUS --oracle GRAMMAR compares models in one vocabulary"


def _apart(groups: Sequence[Sequence[ModelScores]]) -> list[list[Sequence[ModelScores]]]:
    """Return the groups of each objective that has several."""
    objectives = dict.fromkeys(group[0].objective for group in groups)
    by_objective = [[group for group in groups if group[0].objective == objective] for objective in objectives]
    return [those for those in by_objective if len(those) > 1]
