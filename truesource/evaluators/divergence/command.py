"""`truesource evaluate divergence`: what a model expects against what the truth expects, word by word."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.chain.lengths import length_condition
from truesource.cli.console import echo
from truesource.cli.options import Condition, Figure, Force, Json, Model, OracleGrammar, Seed, SplitName, TextOrCorpus
from truesource.cli.settings import with_options
from truesource.evaluators.divergence import DivergenceSettings
from truesource.grammar.support.settings import DEFAULT_SEED

if TYPE_CHECKING:
    from truesource.evaluation.divergence.compare import ModelDivergence


@with_options(DivergenceSettings)
def command(
    model: Model,
    corpus: TextOrCorpus,
    oracle: OracleGrammar,
    settings: DivergenceSettings,
    split: SplitName = "eval",
    model_samples: Annotated[
        Path | None,
        typer.Option("--model-samples", help="Sentences sampled from the model (folder or text), for KL(Q‖P)."),
    ] = None,
    lengths: Condition = None,
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Compare all next-token probabilities of a model with the true ones, in every context of a corpus.

    The result does not depend on which words were sampled. Intervals are for other sentences from the same source.

    Example: truesource evaluate divergence model/ corpus/ --oracle grammar.npz --json divergence.json
    """
    from truesource.cli.inputs import grammar_of_text, read_sentences, say_left_out, truth_of
    from truesource.cli.output import OutputFiles, figure_of, json_of, show
    from truesource.evaluation.core.transformed import require_tokens
    from truesource.evaluation.divergence.compare import reverse_divergence
    from truesource.evaluators.divergence.section import OF_SAMPLES, measures_table
    from truesource.evaluators.divergence.stage import measure
    from truesource.generator.abilities import require

    files = OutputFiles(json=json, figure=figure, force=force)
    text, drawn = read_sentences(corpus, split)
    own = None if model_samples is None else read_samples(model_samples)
    condition = length_condition(lengths, drawn)
    pcfg, transform = grammar_of_text(corpus, oracle)
    excluded = truth_of(corpus, split, pcfg, drawn, condition, scores=False)
    from truesource.lmtrain.models import load_model  # torch, after the quick checks

    trained = require(load_model(model), "distributions", "evaluate divergence")
    require_tokens(transform, trained.objective, "a divergence from the truth")
    reverse = {} if own is None else reverse_divergence(trained, pcfg, own, lengths=condition, seed=seed)
    found = measure(trained, pcfg, text, settings, lengths=condition, seed=seed, excluded=excluded, transform=transform)
    say_left_out(text[: settings.sentences], pcfg, [], found.impossible.tolist())
    of_samples = [
        {"model": found.model, "objective": found.objective, **score.as_record()} for score in reverse.values()
    ]
    _show(found, settings)
    if own is not None:
        show(measures_table({found.model: of_samples}, OF_SAMPLES, f"{len(own):,} sentences of {found.model}"))
    main = found.scores.get("kl") or found.scores["kl_infinite"]
    echo(f"{main.name}|{main.signature}")
    files.finish(
        _next(model, found, own is not None),
        json=json_of([*found.records(), *of_samples]),
        figure=figure_of(lambda: _figure(found)),
    )


def read_samples(path: Path) -> list[list[str]]:
    """Sentences of a model: a folder that `truesource generate` made, or text with one tokenised sentence a line.

    Sentences of a folder that were cut before the model ended them are left out, and said so.

    Raises:
        InputError: the folder has no samples, no finished sentence, or samples by another decoding scheme.
    """
    from truesource.grammar.support.errors import InputError

    if not path.is_dir():
        from truesource.generator.text import read_sentences

        return read_sentences(path)
    from truesource.lmtrain.decoding.folder import SampleFolder

    folder = SampleFolder.load(path)
    how = folder.decoding
    if how.scheme != "ancestral" or how.temperature not in (None, 1.0):
        raise InputError(f"these were drawn by {how}, not from the model's own distribution: use ancestral ones", path)
    cut = folder.n_sentences - folder.n_finished
    if cut:
        echo(f"{cut:,} of {folder.n_sentences:,} sentences of the model were cut and are left out", err=True)
    found = folder.sentences(cut=False)
    if not found:
        raise InputError("the model ended none of these sentences, so there is nothing to compare", path)
    return found


def _show(found: ModelDivergence, settings: DivergenceSettings) -> None:
    from truesource.cli.output import show
    from truesource.evaluators.divergence.section import group_table, measures_table

    column = {found.model: found.records()}
    show(measures_table(column, title=f"{found.model} ({found.objective}), {found.contexts:,} contexts"))
    for by in settings.by:
        show(group_table(by, column))


def _figure(found: ModelDivergence) -> str:
    from truesource.evaluators.divergence.section import divergence_figure

    return divergence_figure(found)


def _next(model: str, found: ModelDivergence, sampled: bool) -> str:
    if sampled or found.objective != "causal":
        return "truesource cite"
    return f"truesource generate {model} -o samples/, then --samples samples/"
