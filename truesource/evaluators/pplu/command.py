"""`truesource evaluate pplu`: perplexity over that of word frequencies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from truesource.cli.console import echo
from truesource.cli.options import Force, Json, Seed, SplitName

if TYPE_CHECKING:
    from truesource.evaluation.pplu.compare import UnigramPerplexity
    from truesource.evaluation.pplu.reduction import ReducedVocabulary
    from truesource.evaluation.pplu.splitting import Knowledge, SplitPerplexities
    from truesource.generator.language_model import DistributionModel, LanguageModel
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG

NAME = "pplu"


def command(
    model: Annotated[Path, typer.Argument(help="Folder of a trained model.")],
    corpus: Annotated[Path, typer.Argument(help="Sentences to score: corpus folder, or text, one a line.")],
    oracle: Annotated[Path | None, typer.Option("--oracle", help="The grammar they were drawn from.")] = None,
    unigram: Annotated[
        Literal["oracle", "train", "test", "model"] | None,
        typer.Option(
            help="Word frequencies: oracle: exact (default with --oracle); train, model: counts of --reference; test:"
            " counts of what is scored (default without)."
        ),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", help="Text to count: of the train split, or samples of the model.")
    ] = None,
    smoothing: Annotated[
        float | None, typer.Option(help="Added to every count; default 0.5 for train and model, 0 for test.")
    ] = None,
    split: SplitName = "eval",
    lengths: Annotated[
        str | None,
        typer.Option("--lengths", help="Length condition of a text file, such as 6..25; a corpus has its own."),
    ] = None,
    frame: Annotated[
        Literal["default", "paper"], typer.Option(help="Which positions count; paper: no end, no first word, no <unk>.")
    ] = "default",
    sentences: Annotated[int | None, typer.Option(min=2, help="Only the first so many.")] = None,
    reduce: Annotated[
        bool, typer.Option("--reduce", help="Also with smaller vocabularies: skip, merge and renormalise rare words.")
    ] = False,
    split_words: Annotated[
        str | None,
        typer.Option("--split-words", help="Also split these words at random, by commas; all: every word."),
    ] = None,
    beta: Annotated[float, typer.Option(help="--split-words: probability of the first half.")] = 0.5,
    senses: Annotated[
        int, typer.Option(min=0, help="With --oracle: draw so many sentences, and split words by their tags.")
    ] = 0,
    rank: Annotated[int, typer.Option(min=0, help="List so many first and last sentences by PPL and by PPLu.")] = 0,
    seed: Seed = 1,
    json: Json = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw the curves of --reduce to this SVG file.")
    ] = None,
    force: Force = False,
) -> None:
    """Divide a model's perplexity by that of word frequencies: what it knows of context.

    For the truth, -ln PPLu is the mutual information of a token and its context, so the share that a model has learned
    is exact with --oracle.
    """
    from truesource.cli.claims import claim_files
    from truesource.cli.inputs import read_sentences, say_left_out, truth_of
    from truesource.evaluation.pplu.compare import compare_pplu
    from truesource.evaluators.pplu import tables
    from truesource.generator.frame import preset_frame
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import write_json, write_text
    from truesource.grammar.pcfg import PCFG

    source = unigram or ("test" if oracle is None else "oracle")
    if (source in ("train", "model")) != (reference is not None):
        raise InputError("--reference TEXT goes with --unigram train or model: it is what is counted")
    if oracle is None and senses:
        raise InputError("--senses needs the grammar: --oracle GRAMMAR")
    if reduce and frame == "paper":
        raise InputError("--reduce counts every position; leave --frame paper out")
    if figure is not None and not reduce:
        raise InputError("--figure draws the curves of --reduce; give both")
    outputs = claim_files(json, figure, force=force)
    text, drawn = read_sentences(corpus, split)
    text = text[:sentences]
    counted = [] if reference is None else read_sentences(reference, "train")[0]
    condition = drawn if lengths is None else LengthRange.parse(lengths)
    pcfg = excluded = None
    if oracle is not None:
        pcfg = PCFG.load(oracle)
        smaller = "smaller vocabularies of the truth" if reduce else ""
        excluded = truth_of(corpus, split, pcfg, drawn, condition, uncorrected=smaller)
    from truesource.lmtrain.models import load_model  # torch, after the quick checks

    trained = load_model(model)
    if reduce and (trained.vocabulary is None or not hasattr(trained, "distributions")):
        raise InputError("this model has no probabilities of whole words, which --reduce needs; leave it out", model)
    found = compare_pplu(
        trained,
        pcfg,
        text,
        lengths=condition,
        frame=preset_frame(frame, trained.objective),
        unigram=source,
        text=counted,
        smoothing=smoothing,
        seed=seed,
        excluded=excluded,
    )
    say_left_out(text, pcfg, found.impossible_model, found.impossible_truth)
    records = found.records()
    tables.print_scores(found)
    curves: dict[str, list[ReducedVocabulary]] = {}
    if reduce:
        curves = reduced(trained, pcfg, text, found, condition)
        records += tables.print_reduced(curves, found)
    if split_words is not None:
        records += tables.print_split(random_splits(found, split_words, beta, seed), found, beta, seed)
    if senses and pcfg is not None:
        from truesource.evaluation.pplu.splitting import sense_split

        records += tables.print_senses(sense_split(pcfg, senses, lengths=condition, seed=seed), senses)
    if rank:
        from truesource.evaluation.pplu.rankings import rank_sentences

        records += tables.print_ranks(rank_sentences(found, text), found, rank)
    wrote = []
    with outputs.together():
        if json is not None:
            write_json(json, records)
            wrote.append(str(json))
        if figure is not None:
            from truesource.evaluators.pplu.figures import reduction_figure
            from truesource.report.figures import standalone

            write_text(figure, standalone(reduction_figure(curves)))
            wrote.append(str(figure))
    done = f"Wrote {' and '.join(wrote)}" if wrote else "Nothing written; --json FILE keeps these numbers"
    whole_words = oracle is not None and trained.vocabulary is not None
    step = f"evaluate divergence {model} {corpus} --oracle {oracle}" if whole_words else "cite"
    echo(f"{done}. Next: truesource {step}")


def reduced(
    model: LanguageModel,
    pcfg: PCFG | None,
    text: list[list[str]],
    found: UnigramPerplexity,
    lengths: LengthRange | None,
) -> dict[str, list[ReducedVocabulary]]:
    """Smaller vocabularies, of the model and, with a grammar, of the truth."""
    from truesource.evaluation.core.comparison import oracle_for
    from truesource.evaluation.pplu.reduction import halving, reduce_vocabulary
    from truesource.evaluators.pplu.tables import TRUTH

    kept = [text[i] for i in sorted(set(found.sentence.tolist()))]
    sides = {found.model: cast("DistributionModel", model)}
    if pcfg is not None:
        sides[TRUTH] = oracle_for(model, pcfg, lengths)
    size = len(model.vocabulary or ())
    return {name: reduce_vocabulary(side, kept, found.unigram, halving(size)) for name, side in sides.items()}


def random_splits(
    found: UnigramPerplexity, words: str, beta: float, seed: int
) -> dict[tuple[Knowledge, Knowledge], SplitPerplexities]:
    """The same split, by what the model and the word frequencies know of it."""
    from truesource.evaluation.core.oracle import UNKNOWN
    from truesource.evaluation.pplu.splitting import random_split
    from truesource.evaluation.pplu.unigrams import END

    chosen = set(found.tokens) - {END, UNKNOWN} if words == "all" else set(filter(None, words.split(",")))
    cases: tuple[tuple[Knowledge, Knowledge], ...] = (("true", "true"), ("true", "counts"), ("counts", "counts"))
    return {
        (model, unigram): random_split(found, chosen, beta, seed=seed, model=model, unigram=unigram)
        for model, unigram in cases
    }
