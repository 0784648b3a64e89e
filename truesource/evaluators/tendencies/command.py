"""`truesource evaluate tendencies`: statistical tendencies of sampled text against the truth or another text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Figure, Force, Json, Seed, SplitName
from truesource.cli.settings import with_options
from truesource.evaluators.tendencies.settings import TendenciesSettings
from truesource.grammar.conditioning import DEFAULT_SEED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truesource.evaluation.tendencies.findings import Tendencies
    from truesource.evaluation.tendencies.settings import TendencySettings
    from truesource.grammar.conditioning import LengthRange

Texts = dict[str, list[list[str]]]


@with_options(TendenciesSettings)
def command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SAMPLES...",
            help="Samples, corpora, text; models (folder, file.py:name). NAME=SAMPLES names one.",
        ),
    ],
    settings: TendenciesSettings,
    oracle: Annotated[
        Path | None,
        typer.Option("--oracle", help="Grammar (file or language): compare with its exact distribution."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", help="Corpus, text or treebank: compare with its sentences.")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option("--lengths", help="Sentence lengths such as 6..25, or none (default: as samples record them)."),
    ] = None,
    vocabulary: Annotated[
        list[str] | None,
        typer.Option("--vocabulary", help="With --oracle: model of the samples; words unknown to it are <unk>."),
    ] = None,
    split: SplitName = "test",
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Compare how samples look with the truth: lengths, words, Zipf, Heaps, stopwords, symbols.

    Every distance has a test that holds its size: sentences are independent, words of one sentence are not. With
    --reference, sentences of lengths outside --lengths are left out of both texts.

    Example: truesource evaluate tendencies samples/ --oracle grammar.npz --vocabulary model/ --json tendencies.json
    """
    from truesource.cli.output import OutputFiles, figure_of, json_of
    from truesource.evaluators.tendencies.reading import condition_of, read_samples, words_of_model
    from truesource.grammar.conditioning import LengthRange

    _check(settings, oracle=oracle, reference=reference, vocabulary=vocabulary)
    files = OutputFiles(json=json, figure=figure, force=force)
    if oracle is not None:
        condition = condition_of(sources, lengths)
        # a sample that has other lengths than the truth differs from it
        texts, known = read_samples(sources, n=settings.number, seed=seed, split=split)
        known += [words_of_model(model) for model in vocabulary or []]
        found = _against_truth(texts, oracle, condition, known, settings, seed)
    else:
        condition = None if lengths is None else LengthRange.parse(lengths)
        texts, _ = read_samples(sources, n=settings.number, seed=seed, split=split, lengths=condition)
        found = _against_text(texts, str(reference), condition, split, settings, seed)
    _show(found)
    files.finish("truesource cite", json=json_of(found.records()), figure=figure_of(lambda: _figure(found)))


def _check(
    settings: TendenciesSettings, *, oracle: Path | None, reference: str | None, vocabulary: list[str] | None
) -> None:
    """Refuse options that do not go together.

    Raises:
        InputError: which.
    """
    from truesource.grammar.support.errors import InputError

    if (oracle is None) == (reference is None):
        raise InputError("give either --oracle GRAMMAR, for the exact truth, or --reference TEXT")
    if settings.definitions == "paper" and oracle is not None:
        raise InputError("the paper compares with a text: --definitions paper goes with --reference, not with --oracle")
    if vocabulary and oracle is None:
        raise InputError("--vocabulary goes with --oracle; with --reference, words are compared as they are")


def _options(settings: TendenciesSettings, texts: Texts, words: Sequence[str], seed: int) -> TendencySettings:
    """Settings of the comparison; says on stderr where it has no stopwords."""
    from truesource.evaluators.tendencies.measure import engine_settings

    options = engine_settings(settings, list(texts.values()), words, seed)
    if "stopwords" not in options.classes:
        which = "the English list" if settings.stopwords is None else str(settings.stopwords)
        echo(
            f"No word of the samples is in {which} of stopwords, so their shares are left out; give a list for the"
            " language, one word per line: --stopwords FILE",
            err=True,
        )
    return options


def _against_truth(
    texts: Texts,
    grammar: Path,
    lengths: LengthRange | None,
    known: list[tuple[str, ...]],
    settings: TendenciesSettings,
    seed: int,
) -> Tendencies:
    from truesource.evaluation.core.oracle import UNKNOWN
    from truesource.evaluation.tendencies.against_truth import against_truth
    from truesource.evaluation.tendencies.truth import Truth
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.errors import InputError

    words = set.intersection(*map(set, known)) if known else None
    if words is None:
        for name, text in texts.items():
            if any(UNKNOWN in sentence for sentence in text):
                raise InputError(
                    f"the sample {name!r} has unknown words (<unk>), and which they are is up to its model;"
                    " name that: --vocabulary MODEL"
                )
    truth = Truth(PCFG.load(grammar), lengths, vocabulary=words)
    for name, text in texts.items():
        for habit in truth.habits(text, seed=seed):
            echo(f"Warning: {name} and the grammar are not tokenised alike: {habit}", err=True)
    return against_truth(texts, truth, _options(settings, texts, truth.words, seed))


def _against_text(
    texts: Texts, given: str, lengths: LengthRange | None, split: str, settings: TendenciesSettings, seed: int
) -> Tendencies:
    from truesource.cli.sources import read_source
    from truesource.evaluation.tendencies.against_sample import against_sample
    from truesource.evaluation.tendencies.same_tokens import differing_habits

    source = read_source(given, n=1, seed=0, lengths=lengths, split=split)
    echo(source)
    for name, text in texts.items():
        for habit in differing_habits(text, source.sentences):
            echo(f"Warning: {name} and {source.name} are not tokenised alike: {habit}", err=True)
    return against_sample(texts, source.sentences, _options(settings, texts, (), seed), name=source.name)


def _show(found: Tendencies) -> None:
    from truesource.cli.output import show
    from truesource.evaluators.tendencies.tables import measures_table

    samples = {
        name: {measure: finding.as_record() for measure, finding in row.items()} for name, row in found.findings.items()
    }
    against = "the exact distribution" if found.against == "truth" else "the reference"
    show(measures_table(samples, f"Against {against}"), 100 + 44 * len(samples))
    echo(str(next(iter(next(iter(found.findings.values())).values())).score))
    for note in found.notes:
        echo(note, err=True)
    if found.draws_needed is not None:
        echo(f"Stars need {found.draws_needed:,} draws or more of each test; some have fewer", err=True)


def _figure(found: Tendencies) -> str:
    from truesource.evaluators.tendencies.figures import tendencies_figure

    return tendencies_figure(found)
