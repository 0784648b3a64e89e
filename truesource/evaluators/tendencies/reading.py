"""The samples that `truesource evaluate tendencies` compares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from truesource.cli.console import echo
from truesource.cli.sources import kind_of, named, read_source, recorded_condition
from truesource.generator.abilities import require
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError


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
