"""Verbs of declared evaluators: `truesource evaluate NAME`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import (
    Condition,
    Figure,
    FirstSentences,
    Force,
    FrameName,
    Json,
    Model,
    NoOracle,
    Oracle,
    Seed,
    SplitName,
    TextOrCorpus,
)
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.evaluation.core.evaluator import Evaluator
    from truesource.evaluation.core.setting import Setting


def verb_of(evaluator: Evaluator) -> Callable[..., None]:
    """Return the verb of an evaluator: built from its declaration, or from the module of the same name."""
    if evaluator.declared:
        return command_of(evaluator)
    verb: Callable[..., None] = import_module(f"{__package__}.{evaluator.name}").command
    return verb


def command_of(evaluator: Evaluator) -> Callable[..., None]:
    """Return the verb `truesource evaluate <name>` with the options of its settings and declaration."""

    def command(
        model: Model,
        corpus: TextOrCorpus,
        settings: Any,
        oracle: Oracle = None,
        no_oracle: NoOracle = False,
        split: SplitName = "eval",
        sentences: FirstSentences = None,
        frame: FrameName = "default",
        lengths: Condition = None,
        seed: Seed = DEFAULT_SEED,
        json: Json = None,
        figure: Figure = None,
        force: Force = False,
    ) -> None:
        from truesource.evaluation.calls import loaded, measure
        from truesource.terminal.inputs import read_setting, requested_truth, require_truth, say_left_out, warn
        from truesource.terminal.output import OutputFiles, figure_of, json_of
        from truesource.terminal.tables import show

        check = evaluator.beside_settings("check_call")
        if check is not None:
            check(settings, model=model, frame=frame, figure=figure is not None)
        files = OutputFiles(json=json, figure=figure, force=force)
        uncorrected = evaluator.beside_settings("uncorrected")
        numbers = "" if uncorrected is None else uncorrected(settings, frame)
        read = partial(read_setting, frame=frame, seed=seed, first=sentences, scores=evaluator.corrected)
        setting = read(corpus, split, requested_truth(oracle, no_oracle), lengths, uncorrected=numbers)
        if evaluator.needs_truth(settings):
            require_truth(setting, corpus)
        trained = loaded(evaluator, model, settings)
        result = measure(evaluator, trained, setting, settings)
        say_left_out(setting.first(getattr(settings, "sentences", None)), *result.detail.impossible)
        warn(result.notes)
        for table in result.tables:
            show(table, evaluator.width)
        if result.detail.line:
            echo(result.detail.line, grey=True)
        files.finish(
            _then(evaluator, trained, setting, model, corpus, oracle),
            json=json_of(result.records()),
            figure=figure_of(result.drawn),
        )

    command.__doc__ = evaluator.help or evaluator.summary
    signature = inspect.signature(command, eval_str=True)
    left_out = {*(() if evaluator.frame else ("sentences", "frame")), *(() if evaluator.draws else ("figure",))}
    left_out |= {"no_oracle"} if evaluator.oracle else set()
    left_out |= {"sentences"} & set(evaluator.settings.model_fields)  # the settings have this option
    parameters = [parameter for name, parameter in signature.parameters.items() if name not in left_out]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return with_options(evaluator.settings)(command)


def _then(evaluator: Evaluator, trained: Any, setting: Setting, model: str, corpus: Path, oracle: Path | None) -> str:
    """Return the next command: a closer look at the same model if truth and model allow it, else cite."""
    from truesource.generator.abilities import offers
    from truesource.terminal.inputs import grammar_inside, oracle_option

    if not evaluator.then or setting.language is None:
        return "truesource cite"
    if evaluator.whole_models and not offers(trained, "distributions"):
        return "truesource cite"
    option, grammar = oracle_option(oracle, corpus), oracle or grammar_inside(corpus)
    return f"truesource {evaluator.then.format(model=model, corpus=corpus, oracle=option, grammar=grammar)}"
