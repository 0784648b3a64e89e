"""Evaluators in one call: `evaluate` measures a model on a text by the name of an evaluator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.differences import notes_on
from truesource.evaluation.core.given import as_setting, require_truth
from truesource.evaluation.evaluators import EVALUATORS
from truesource.evaluation.show.declared import measures_table, record_of
from truesource.evaluation.show.result import Result
from truesource.generator.abilities import offers, require
from truesource.grammar.support.call_arguments import seed_number
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import listed
from truesource.grammar.support.records import made_settings
from truesource.grammar.support.settings import DEFAULT_SEED, Settings, did_you_mean

#: calls for evaluators of runs that take other inputs
OTHER_CALLS = {
    "explain": "truesource.explain",
    "treebank_baseline": "the command truesource compare",
}

if TYPE_CHECKING:
    from truesource.evaluation.core.evaluator import Evaluator
    from truesource.evaluation.core.setting import Setting
    from truesource.evaluation.show.table import ReportTable
    from truesource.generator.language_model import LanguageModel, ScoringFrame
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.truth import Truth


def evaluate(
    name: str,
    model: LanguageModel | str | Path,
    text: Any,
    oracle: Truth | str | Path | bool = True,
    *,
    split: str | None = None,
    sentences: int | None = None,
    lengths: LengthRange | tuple[int, int] | str | None = None,
    frame: ScoringFrame | str = "default",
    seed: int = DEFAULT_SEED,
    **settings: Any,
) -> Result:
    """Measure a model on a text, as `truesource evaluate NAME` does.

    Four evaluators measure something else: ``pairs`` a model and a grammar, ``tokenisation`` a model of pieces and a
    text, ``tendencies`` samples and a grammar or text, ``naturalness`` texts and a treebank. See the functions
    ``evaluate`` in `truesource.evaluation.pairs.call` and its kin.

    Args:
        name: of the evaluator, such as ``pplu`` or ``divergence``.
        model: to measure, or its reference: a folder, or code such as ``file.py:name``.
        text: a corpus, its folder, a text file, sentences, or a `Setting` with its own truth and frame.
        oracle: grammar or process that the text was sampled from, its file, or a language; True: the one in the corpus
            folder; False: the truth is unknown.
        split: of a corpus; None: ``eval``; for naturalness ``train``, for tendencies ``test``.
        sentences: number of sentences, from the first; None: as many as the evaluator takes by itself.
        lengths: the condition of the truth, such as ``6..25``, ``(6, 25)`` or ``none``; None: as the corpus.
        frame: which positions count.
        seed: of random numbers, such as for intervals.
        settings: of the evaluator, as in a configuration; further arguments of the four.

    Returns:
        Numbers with intervals and signatures, tables, and a figure of evaluators that draw one; ``detail`` is the
        `truesource.evaluation.core.evaluator.EvaluatorOutput`.

    Raises:
        InputError: there is no such evaluator or setting, the truth of the text is unknown, or it cannot be measured.
        NothingToMeasureError: there is nothing to measure.
    """
    evaluator, seed = evaluator_named(name), seed_number(seed)
    if not evaluator.declared:
        inputs: dict[str, object] = {"split": split, "lengths": lengths, "sentences": sentences, "frame": frame}
        return _call(evaluator, (model, text, oracle), inputs, settings, seed)
    if split is None:
        split = "eval"
    if sentences is not None and "sentences" in evaluator.settings.model_fields:
        settings["sentences"], sentences = sentences, None
    chosen = made_settings(evaluator.settings, f"evaluate {name}", settings)
    setting = as_setting(
        text,
        oracle,
        split=split,
        sentences=sentences,
        lengths=lengths,
        frame=frame,
        seed=seed,
        scored=evaluator.corrected,
    )
    if evaluator.needs_truth(chosen):
        require_truth(setting)
    uncorrected = evaluator.beside_settings("uncorrected")
    without = "" if uncorrected is None else uncorrected(chosen, setting.frame)
    result = measure(evaluator, loaded(evaluator, model, chosen), setting, chosen)
    return replace(result, notes=(*notes_on(setting, without), *result.notes))


def _call(
    evaluator: Evaluator,
    measured: tuple[Any, Any, Truth | str | Path | bool],
    inputs: dict[str, object],
    arguments: dict[str, object],
    seed: int,
) -> Result:
    """Call an evaluator that takes other inputs than a model and a text.

    Raises:
        InputError: as the call; or an argument that it does not take.
    """
    call = import_module(f"{evaluator.settings.__module__.removesuffix('.evaluator')}.call").evaluate
    taken = signature(call).parameters
    if inputs["sentences"] is not None and "sentences" in evaluator.settings.model_fields:
        arguments["sentences"] = inputs.pop("sentences")
    further = {name: arguments.pop(name) for name in [*arguments] if name in taken and name not in ("settings", "seed")}
    for name, value in inputs.items():
        if value is None or (name == "frame" and value == "default"):
            continue
        if name not in taken:
            raise InputError(f"{evaluator.name} takes no {name}; remove it", code="other-inputs")
        further[name] = value
    settings = made_settings(evaluator.settings, f"evaluate {evaluator.name}", arguments)
    result: Result = call(*measured, settings=settings, seed=seed, **further)
    return result


def evaluator_named(name: object) -> Evaluator:
    """Return the evaluator of a name.

    Raises:
        InputError: no evaluator has the name (code ``unknown-evaluator``), or it takes no model and text
            (``other-inputs``).
    """
    if not isinstance(name, str):
        reason = (
            f'the name of the evaluator comes first, as in evaluate("pplu", model, text), not {type(name).__name__}'
        )
        raise InputError(reason, code="unknown-evaluator")
    evaluators = {each.name: each for each in EVALUATORS}
    if name not in evaluators:
        names = [each for each in evaluators if each not in OTHER_CALLS]
        raise InputError(
            f"there is no evaluator {name!r}{did_you_mean(name, evaluators)}; there are {listed(names)}",
            code="unknown-evaluator",
        )
    if (elsewhere := OTHER_CALLS.get(name)) is not None:
        raise InputError(f"{name} takes other inputs than a model and a text; call {elsewhere}", code="other-inputs")
    return evaluators[name]


def loaded(evaluator: Evaluator, model: LanguageModel | str | Path, settings: Settings) -> Any:
    """Load a model by its reference, or find the folder of snapshots if the evaluator measures these.

    Raises:
        InputError: there is no such model, or it lacks an ability that the settings need.
    """
    if not evaluator.whole_models:
        from truesource.lmtrain.references import model_reference

        if not isinstance(model, str | Path):
            raise InputError(f"{evaluator.name} reads the snapshots of a training; name the folder of the model")
        return model_reference(model)
    from truesource.lmtrain.models import as_loaded  # torch

    model = as_loaded(model)
    needed = evaluator.beside_settings("needed")
    for ability, option in ({} if needed is None else needed(settings)).items():
        if not (ability in ("words", "distributions") and offers(model, "tokens")):  # then it has these of its pieces
            require(model, ability, option)
    return model


def measure(evaluator: Evaluator, model: Any, setting: Setting, settings: Settings) -> Result:
    """Measure a loaded model; for arguments and errors see `Evaluator.measure`."""
    output = evaluator.measure(model, setting, settings)
    record = record_of(output)
    title = output.title or f"{record['model']} ({record['objective']})"
    tables: Callable[..., list[ReportTable]] = evaluator.function("tables") or (
        lambda *_: [measures_table(evaluator, {f"{record['model']}": record}, title)]
    )
    first, *others = tables(record, title)
    return Result(
        kind=f"evaluate {evaluator.name}",
        scores=output.scores,
        tables=[with_extent(first, evaluator.extent(settings, len(setting.sentences))), *others],
        notes=tuple(output.notes),
        draw=_figure(evaluator, record),
        detail=output,
    )


def _figure(evaluator: Evaluator, record: Any) -> Callable[[], str | None] | None:
    draw = evaluator.function("figure")
    return None if draw is None else lambda: draw(record, evaluator.name)


def with_extent(table: ReportTable, extent: str) -> ReportTable:
    """Add the measured sentences to the title of a table, unless the extent is empty."""
    return replace(table, title=f"{table.title}; {extent}" if table.title else extent) if extent else table
