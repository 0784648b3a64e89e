"""Writes the page: the sections of the chain, those of the evaluators, and where it all comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.chain.corpus.section import section as corpus
from truesource.chain.grammar.section import section as grammar
from truesource.chain.models.section import section as training
from truesource.chain.scores.section import result_table, tokens
from truesource.chain.scores.section import section as scores
from truesource.grammar.support.extras import require_extras
from truesource.grammar.support.files import write_text
from truesource.report import words
from truesource.report.environment import FOLDER, render
from truesource.report.finished_run import FinishedRun, read_run, whole_sentences
from truesource.report.part import Part
from truesource.report.unmeasured import unmeasured

if TYPE_CHECKING:
    from truesource.run.evaluator import Evaluator


def write_page(run: Path, evaluators: Sequence[Evaluator]) -> Path:
    """Write ``report.html`` into a run folder, atomically: one file without anything outside it.

    Args:
        run: a folder that `truesource run` made.
        evaluators: whose sections follow, in order, where the run asked for them.

    Returns:
        The path of the page.

    Raises:
        InputError: the extra report is not installed, a required file of the run is missing or damaged, or the page
            cannot be written.
    """
    require_extras("a report", "report")
    run = Path(run)
    target = run / "report.html"
    found = read_run(run)
    name = found.config.get("name") or run.name
    parts = _parts(found, evaluators)
    page = render(
        FOLDER / "page.html.j2",
        run,
        templates={part.name: part.template for part in parts},
        run=found,
        name=name,
        title=found.config.get("title") or f"Report of the run {name}",
        answer=words.answer(found.models),
        verdict=words.verdict(found.models),
        alarms=words.below_bound(found.models),
        parts=parts,
    )
    write_text(target, page)
    return target


def _parts(run: FinishedRun, evaluators: Sequence[Evaluator]) -> list[Part]:
    overview = {"sizes": run.pcfg.sizes(), "table": result_table(run), "ends": whole_sentences(run)}
    chain = [make(run) for make in (grammar, corpus, training, scores, tokens)]
    notes = unmeasured(run, evaluators)
    measured = [
        Part(each.name, each.title, each.template, each.section(run), notes.get(each.name, ()))
        for each in evaluators
        if run.asks(each.name, each.formerly)
    ]
    return [
        Part("run", "What was run", FOLDER / "overview.html.j2", overview),
        *chain,
        *(part for part in measured if part.content or part.notes),
        Part("provenance", "Provenance", FOLDER / "provenance.html.j2", True),
    ]
