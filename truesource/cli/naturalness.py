"""`truesource evaluate naturalness`: how much sampled sentences look like those of a treebank."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.evaluation.naturalness.evaluator import NaturalnessSettings
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Convention, Figure, Force, Json, Seed, SplitName
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.evaluation.naturalness.compare import Naturalness
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG
    from truesource.terminal.sources import Source


@with_options(NaturalnessSettings)
def command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Corpora, text, treebanks; grammars or models to sample from. NAME=SOURCE names one.",
        ),
    ],
    reference: Annotated[
        str, typer.Option("--reference", help="Treebank that the grammars have not seen, or other text.")
    ],
    settings: NaturalnessSettings,
    oracle: Annotated[
        Path | None, typer.Option("--oracle", help="Grammar of the corpus folders, for their exact lengths.")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option("--lengths", help="Sentence lengths such as 6..25, or none (default: as a corpus records them)."),
    ] = None,
    convention: Convention = "penn",
    split: SplitName = "train",
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Compare corpora and grammars with a treebank: word frequencies, sentence lengths, n-grams.

    Example: truesource evaluate naturalness corpus/ grammar.npz --reference held_out.mrg --figure naturalness.svg
    """
    from truesource.grammar.support.errors import InputError
    from truesource.terminal.output import OutputFiles, figure_of, json_of
    from truesource.terminal.sources import first_condition, named, read_source
    from truesource.terminal.tables import show

    files = OutputFiles(json=json, figure=figure, force=force)
    given = (reference, *sources)
    condition, n = first_condition(lengths, (named(text)[1] for text in given)), settings.sentences
    read = [read_source(g, n=n, seed=seed, lengths=condition, split=split, convention=convention) for g in given]
    names = [source.name for source in read]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"two sources are called {twice!r}; name them, NAME={sources[0]}")
    from truesource.evaluation.naturalness.report import measures_table
    from truesource.run.stages.naturalness import measure

    for source in read:
        echo(source)
    found = measure(
        {source.name: source.sentences for source in read},
        _grammars(read, oracle, condition),
        settings,
        lengths=condition,
        seed=seed,
        documents=read[0].documents,
    )
    show(measures_table(found.records(), found.sentences), 100 + 34 * len(read))
    for name in ("zipf_alpha", "ngram_spearman_2"):
        if score := found.scores[found.reference].get(name):
            echo(f"{name}|{score.signature}")
    files.finish(_next(read[1:]), json=json_of(found.records()), figure=figure_of(lambda: _figure(found)))


def _grammars(read: list[Source], oracle: Path | None, lengths: LengthRange | None) -> dict[str, PCFG]:
    """Grammars of the sources that were sampled here, and of the corpus folders that ``oracle`` is the grammar of."""
    from truesource.evaluation.core.differences import of_grammar, of_lengths
    from truesource.generator.corpus import Corpus
    from truesource.grammar.pcfg import PCFG
    from truesource.lmtrain.decoding.folder import is_sample_folder
    from truesource.terminal.inputs import warn

    grammars = {source.name: source.pcfg for source in read if source.pcfg is not None}
    if oracle is not None:
        pcfg = PCFG.load(oracle)
        for source in read:
            if (source.path / "record.json").is_file() and not is_sample_folder(source.path):
                corpus = Corpus.load(source.path)
                warn([*of_grammar(corpus, pcfg), *of_lengths(corpus, corpus.lengths, lengths)])
                grammars[source.name] = pcfg
    return grammars


def _figure(found: Naturalness) -> str:
    from truesource.evaluation.naturalness.report import drawn_of, naturalness_figure

    return naturalness_figure(drawn_of(found))


def _next(read: list[Source]) -> str:
    grammar = next((source.path for source in read if source.pcfg is not None), None)
    return "truesource cite" if grammar is None else f"truesource sample {grammar} -n 100000 -o corpus/"
