"""`truesource evaluate tendencies`: statistical tendencies of sampled text against the truth or another text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.evaluation.tendencies.evaluator import TendenciesSettings
from truesource.generator.abilities import require
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Figure, Force, Json, Seed, SplitName
from truesource.terminal.settings import with_options
from truesource.terminal.sources import kind_of, named, read_source, recorded_condition

if TYPE_CHECKING:
    from truesource.evaluation.tendencies import TendencySettings
    from truesource.evaluation.tendencies.findings import Tendencies
    from truesource.grammar.pcfg import PCFG


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
    from truesource.terminal.output import OutputFiles, figure_of, json_of

    _check(settings, oracle=oracle, reference=reference, vocabulary=vocabulary)
    files = OutputFiles(json=json, figure=figure, force=force)
    if oracle is not None:
        condition = condition_of(sources, lengths)
        from truesource.grammar.pcfg import PCFG

        pcfg = PCFG.load(oracle)
        # a sample that has other lengths than the truth differs from it
        texts, known = read_samples(sources, n=settings.number, seed=seed, split=split)
        known += [words_of_model(model) for model in vocabulary or []]
        found = _against_truth(texts, pcfg, condition, known, settings, seed)
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
    if (oracle is None) == (reference is None):
        raise InputError("give either --oracle GRAMMAR, for the exact truth, or --reference TEXT")
    if settings.definitions == "paper" and oracle is not None:
        raise InputError("the paper compares with a text: --definitions paper goes with --reference, not with --oracle")
    if vocabulary and oracle is None:
        raise InputError("--vocabulary goes with --oracle; with --reference, words are compared as they are")


def _options(settings: TendenciesSettings, texts: Texts, words: Sequence[str], seed: int) -> TendencySettings:
    """Settings of the comparison; says on stderr where it has no stopwords."""
    from truesource.run.stages.tendencies import engine_settings

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
    pcfg: PCFG,
    lengths: LengthRange | None,
    known: list[tuple[str, ...]],
    settings: TendenciesSettings,
    seed: int,
) -> Tendencies:
    from truesource.evaluation.core.oracle import UNKNOWN
    from truesource.evaluation.tendencies.against_truth import against_truth
    from truesource.evaluation.tendencies.truth import TrueText

    words = set.intersection(*map(set, known)) if known else None
    if words is None:
        for name, text in texts.items():
            if any(UNKNOWN in sentence for sentence in text):
                raise InputError(
                    f"the sample {name!r} has unknown words (<unk>), and which they are is up to its model;"
                    " name that: --vocabulary MODEL"
                )
    truth = TrueText(pcfg, lengths, vocabulary=words)
    for name, text in texts.items():
        for habit in truth.habits(text, seed=seed):
            echo(f"Warning: {name} and the grammar are not tokenised alike: {habit}", err=True)
    return against_truth(texts, truth, _options(settings, texts, truth.words, seed))


def _against_text(
    texts: Texts, given: str, lengths: LengthRange | None, split: str, settings: TendenciesSettings, seed: int
) -> Tendencies:
    from truesource.evaluation.tendencies.against_sample import against_sample
    from truesource.evaluation.tendencies.truth import differing_habits

    source = read_source(given, n=1, seed=0, lengths=lengths, split=split)
    echo(source)
    for name, text in texts.items():
        for habit in differing_habits(text, source.sentences):
            echo(f"Warning: {name} and {source.name} are not tokenised alike: {habit}", err=True)
    return against_sample(texts, source.sentences, _options(settings, texts, (), seed), name=source.name)


def _show(found: Tendencies) -> None:
    from truesource.evaluation.tendencies.report import measures_table
    from truesource.terminal.tables import show

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
    from truesource.evaluation.tendencies.figures import drawn_of, tendencies_figure

    return tendencies_figure(drawn_of(found))


def condition_of(sources: Sequence[str], lengths: str | None) -> LengthRange | None:
    """The length condition of the truth: as given, or else as the corpora, samples and models record it.

    Raises:
        InputError: two of them have different ones, or none records any and none is given.
    """
    recorded: dict[str, str] = {}
    for given in sources:
        path = named(given)[1]
        kind_of(str(path))  # refuses what is not there
        if (own := recorded_condition(path)) is not None:
            recorded[given] = own
    if len(set(recorded.values())) > 1:
        (one, first), (other, second) = list({c: (g, c) for g, c in recorded.items()}.values())[:2]
        raise InputError(
            f"the lengths of {one} are {first}, those of {other} {second}: no truth has both; compare each by itself"
        )
    if lengths is None:
        if not recorded:
            raise InputError(
                "no sample records the length condition of its corpus; give --lengths, such as 6..25, or none"
            )
        lengths = next(iter(recorded.values()))
        if len(recorded) < len(sources) or lengths != "none":
            echo(f"lengths of the truth: {lengths}, as those of {next(iter(recorded))}")
        return LengthRange.parse(lengths)
    condition = LengthRange.parse(lengths)
    for given, other in recorded.items():
        if LengthRange.parse(other) != condition:
            echo(
                f"Warning: the lengths of {given} are {other}, those of the truth here {lengths}; they differ for that"
                " reason alone",
                err=True,
            )
    return condition


def read_samples(
    sources: Sequence[str], *, n: int, seed: int, split: str, lengths: LengthRange | None = None
) -> tuple[dict[str, list[list[str]]], list[tuple[str, ...]]]:
    """Sentences by name, and the vocabularies of the models that some were sampled from here.

    Args:
        sources: paths or references to models, or ``NAME=`` one.
        n: number of sentences to sample from a model.
        seed: of the sampling.
        split: of corpus folders.
        lengths: sentences of other lengths are left out.

    Raises:
        InputError: two samples have one name, one cannot be read, or no sentence of one has such a length.
    """
    texts: dict[str, list[list[str]]] = {}
    known: list[tuple[str, ...]] = []
    for given in sources:
        _refuse_beams(named(given)[1])
        source = read_source(given, n=n, seed=seed, lengths=lengths, split=split)
        known += [] if source.words is None else [source.words]
        if source.name in texts:
            raise InputError(f"two samples are called {source.name!r}; name one, NAME={given}")
        texts[source.name] = source.sentences
        echo(source)
    return texts, known


def _refuse_beams(path: Path) -> None:
    """Sentences of one beam are not independent, which every test here assumes."""
    from truesource.lmtrain.decoding.folder import SampleFolder, is_sample_folder

    if is_sample_folder(path) and SampleFolder.load(path).decoding.at_most > 1:
        raise InputError("sentences of one beam are not independent, as every test needs; generate --keep best", path)


def words_of_model(reference: str) -> tuple[str, ...]:
    """The words that a model tells apart.

    Raises:
        InputError: there is no such model, or it splits words into pieces.
    """
    from truesource.lmtrain.models import load_model

    words: tuple[str, ...] = tuple(require(load_model(reference), "words", "--vocabulary").vocabulary)
    return words
