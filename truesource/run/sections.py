"""Sections of the report of a run: sections of its steps, then of its evaluators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from truesource.evaluation.show import words
from truesource.evaluation.show.declared import section_of, template_of
from truesource.evaluation.show.words import nothing_to_measure
from truesource.report.environment import FOLDER
from truesource.report.finished_run import FinishedRun, Part, evaluated, shown_split, whole_sentences
from truesource.report.page import Contents, files_and_works
from truesource.run.corpus.section import section as corpus
from truesource.run.grammar.section import section as grammar
from truesource.run.models.section import section as training
from truesource.run.scores.section import nearer_test, result_table
from truesource.run.scores.section import section as scores
from truesource.run.scores.token_view import tokens

if TYPE_CHECKING:
    from truesource.evaluation.core.evaluator import Evaluator


def contents(run: FinishedRun, evaluators: Sequence[Evaluator]) -> Contents:
    """Build the contents of the page and draw its figures."""
    return Contents(parts_of(run, evaluators), words.answer(run.models, partial(nearer_test, run)))


def parts_of(run: FinishedRun, evaluators: Sequence[Evaluator]) -> list[Part]:
    """Build all sections, in order."""
    overview = {
        "sizes": run.truth.sizes(),
        "table": result_table(run),
        "ends": whole_sentences(run),
        "evaluated": evaluated(run),
    }
    chain = [make(run) for make in (grammar, corpus, training, scores, tokens)]
    notes = unmeasured(run, evaluators)
    measured = [
        Part(
            each.name, each.title, template_of(each), section_of(each, run), notes.get(each.name, ()), extent(run, each)
        )
        for each in evaluators
        if run.asks(each.name)
    ]
    return [
        Part("run", "What was run", FOLDER / "overview.html.j2", overview),
        *chain,
        *(part for part in measured if part.content or part.notes),
        Part("provenance", "Provenance", FOLDER / "provenance.html.j2", files_and_works(run)),
    ]


def extent(run: FinishedRun, evaluator: Evaluator) -> str:
    """Describe the sentences of the evaluated split that an evaluator uses, if not all."""
    settings = run.config["evaluation"][evaluator.name]
    if not evaluator.of_corpus or not isinstance(settings, Mapping):
        return ""
    split = shown_split(run)
    used = evaluator.extent(evaluator.settings.model_validate(settings), run.corpus.n_sentences(split))
    return f"{used} of the split {split}" if used else ""


def unmeasured(run: FinishedRun, evaluators: Sequence[Evaluator]) -> dict[str, list[str]]:
    """Return why nothing was measured, by evaluator: a sentence for each reason, with its models."""
    sections = {kind: each.name for each in evaluators for kind in (each.name, *each.kinds)}
    models_by_reason: dict[str, dict[str, list[str]]] = {}
    for name, stage in run.stages.items():
        kind, _, model = name.partition(":")
        note = stage["unmeasured"]
        if note is not None and kind in sections:
            models_by_reason.setdefault(sections[kind], {}).setdefault(note["reason"], []).append(model)
    return {part: [nothing_to_measure(*each) for each in notes.items()] for part, notes in models_by_reason.items()}
