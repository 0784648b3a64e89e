"""`truesource evaluate dynamics`: what a model learns when, against the exact truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truesource.chain.lengths import length_condition
from truesource.cli.console import echo
from truesource.cli.options import (
    Condition,
    Figure,
    Force,
    FrameName,
    Json,
    Model,
    OracleGrammar,
    Seed,
    SplitName,
    TextOrCorpus,
)
from truesource.cli.settings import with_options
from truesource.evaluators.dynamics import DynamicsSettings
from truesource.grammar.support.settings import DEFAULT_SEED

if TYPE_CHECKING:
    from truesource.evaluation.dynamics.table import Dynamics


@with_options(DynamicsSettings)
def command(
    model: Model,
    corpus: TextOrCorpus,
    oracle: OracleGrammar,
    settings: DynamicsSettings,
    split: SplitName = "eval",
    frame: FrameName = "default",
    lengths: Condition = None,
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Compare every snapshot of a model with the exact truth: what it learns first, and where it still fails.

    The measure is ln Q - ln P of each token; 0 is perfect. `--set training.snapshots=log` in training keeps snapshots.

    Example: truesource evaluate dynamics model/ corpus/ --oracle grammar.npz --figure dynamics.svg
    """
    from truesource.cli.output import OutputFiles, figure_of, json_of, show
    from truesource.grammar.support.errors import require_extras
    from truesource.lmtrain.references import model_reference
    from truesource.lmtrain.snapshots import checkpoints

    files = OutputFiles(json=json, figure=figure, force=force)
    named = model_reference(model)
    if named.folder is not None:
        require_extras("`truesource evaluate dynamics`", "lm")
        checkpoints(named.folder)  # refused before anything is computed
    from truesource.cli.inputs import grammar_of_text, read_sentences, say_left_out, truth_of
    from truesource.evaluation.core.transformed import require_order
    from truesource.evaluators.dynamics.section import dynamics_figure, groups_table
    from truesource.evaluators.dynamics.stage import measure, report_record

    text, drawn = read_sentences(corpus, split)
    pcfg, transform = grammar_of_text(corpus, oracle)
    require_order(transform, "evaluate dynamics")
    condition = length_condition(lengths, drawn)
    exact = "exact divergences (kl)" if settings.contexts and frame == "default" else ""
    excluded = truth_of(corpus, split, pcfg, drawn, condition, uncorrected=exact)
    found = measure(
        model,
        pcfg,
        corpus,
        split,
        text,
        settings,
        name=named.title,
        lengths=condition,
        frame=frame,
        seed=seed,
        excluded=excluded,
    )
    say_left_out(text[: settings.sentences], pcfg, found.impossible_model, found.impossible_truth)
    if settings.contexts and frame != "default":
        echo(f"No exact KL divergence: the frame {frame} leaves out positions", err=True)
    record = report_record(found, settings)
    for by in [by for by in record["curves"] if by != "all"] or ["all"]:
        show(groups_table(record, by))
    _say(found, record["findings"])
    files.finish(
        f"truesource evaluate divergence {model} {corpus} --oracle {oracle} --by class",
        json=json_of(found.records()),
        figure=figure_of(lambda: dynamics_figure(record)),
    )


def _say(found: Dynamics, findings: list[str]) -> None:
    for sentence in findings:
        echo(sentence)
    echo(f"{found.score('all', 0, len(found.steps) - 1, 'log_ratio')}")
