"""`truesource evaluate pplu`: perplexity over that of word frequencies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.chain.lengths import length_condition
from truesource.cli.console import echo
from truesource.cli.options import (
    Condition,
    Figure,
    FirstSentences,
    Force,
    FrameName,
    Json,
    Model,
    Seed,
    SplitName,
    TextOrCorpus,
)
from truesource.cli.settings import with_options
from truesource.evaluators.pplu import PpluSettings
from truesource.grammar.support.settings import DEFAULT_SEED

if TYPE_CHECKING:
    from truesource.evaluators.pplu.stage import PpluResult


@with_options(PpluSettings)
def command(
    model: Model,
    corpus: TextOrCorpus,
    settings: PpluSettings,
    oracle: Annotated[
        Path | None, typer.Option("--oracle", help="Grammar that the corpus was sampled from: a file, or a language.")
    ] = None,
    split: SplitName = "eval",
    sentences: FirstSentences = None,
    frame: FrameName = "default",
    lengths: Condition = None,
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Measure what a model knows of context: its perplexity over the perplexity of word frequencies (PPLu).

    For the truth, -ln PPLu is the mutual information of a token and its context. With --oracle the share that a model
    has learned is exact.

    Example: truesource evaluate pplu model/ corpus/ --oracle grammar.npz --json pplu.json
    """
    from truesource.cli.inputs import grammar_of_text, read_sentences, say_left_out, truth_of
    from truesource.cli.output import OutputFiles, figure_of, json_of
    from truesource.evaluation.core.transformed import require_tokens, require_whole
    from truesource.evaluators.pplu.stage import measure
    from truesource.generator.abilities import require
    from truesource.generator.language_model import preset_frame

    _check(settings, oracle=oracle is not None, frame=frame, figure=figure is not None)
    files = OutputFiles(json=json, figure=figure, force=force)
    text, drawn = read_sentences(corpus, split)
    text = text[:sentences]
    counted = _counted(settings, corpus)
    condition = length_condition(lengths, drawn)
    pcfg = excluded = transform = None
    if oracle is not None:
        pcfg, transform = grammar_of_text(corpus, oracle)
        smaller = "smaller vocabularies of the truth" if settings.reduce else ""
        excluded = truth_of(corpus, split, pcfg, drawn, condition, uncorrected=smaller)
    from truesource.lmtrain.models import load_model  # torch, after the quick checks

    trained = load_model(model)
    if settings.reduce:
        require(require(trained, "words", "--reduce"), "distributions", "--reduce")
    require_whole(transform, trained.objective, preset_frame(frame, trained.objective))
    if settings.reduce:
        require_tokens(transform, trained.objective, "--reduce")
    result = measure(
        *(trained, pcfg, text, settings),
        frame=frame,
        lengths=condition,
        seed=seed,
        counted=counted,
        excluded=excluded,
        transform=transform,
    )
    say_left_out(text, pcfg, result.scores.impossible_model, result.scores.impossible_truth)
    _show(result)
    whole_words = oracle is not None and trained.vocabulary is not None
    files.finish(
        f"truesource evaluate divergence {model} {corpus} --oracle {oracle}" if whole_words else "truesource cite",
        json=json_of(result.records),
        figure=figure_of(lambda: _figure(result)),
    )


def _check(settings: PpluSettings, *, oracle: bool, frame: str, figure: bool) -> None:
    """Refuse options that do not go together.

    Raises:
        InputError: which.
    """
    from truesource.grammar.support.errors import InputError

    if settings.senses and not oracle:
        raise InputError("--senses needs the grammar: --oracle GRAMMAR")
    if settings.reduce and frame == "paper":
        raise InputError("--reduce counts every position; leave --frame paper out")
    if figure and not settings.reduce:
        raise InputError("--figure draws the curves of --reduce; give both")


def _counted(settings: PpluSettings, corpus: Path) -> list[list[str]]:
    """The text that word frequencies are counted in; none where they are not counted, or in the scored text.

    Raises:
        InputError: that of training is to be counted, and the corpus is a text file.
    """
    from truesource.cli.inputs import read_sentences
    from truesource.grammar.support.errors import InputError

    if settings.unigram == "train" and settings.counted is None and not corpus.is_dir():
        raise InputError("--unigram train counts a text of training; name it: --counted TEXT")
    text = settings.counted or (corpus if settings.unigram == "train" else None)
    return [] if text is None else read_sentences(text, "train")[0]


def _show(result: PpluResult) -> None:
    from truesource.cli.output import show
    from truesource.evaluators.pplu.section import further_tables, scores_table

    scores = result.scores
    n = len(set(scores.sentence.tolist()))
    title = f"{scores.model} ({scores.objective}), {len(scores.tokens):,} tokens of {n:,} sentences"
    show(scores_table({scores.model: result.records}, scores.unigram.source, title), 140)
    echo(str(scores.scores["pplu"]))
    for table in further_tables(result.records):
        show(table, 140)


def _figure(result: PpluResult) -> str:
    from truesource.evaluators.pplu.section import reduction_figure

    return reduction_figure(result.curves)
