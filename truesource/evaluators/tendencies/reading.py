"""The samples that `truesource evaluate tendencies` compares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from truesource.cli.console import echo
from truesource.cli.sources import Source, kind_of, named, read_source, recorded_condition
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.errors import InputError

if TYPE_CHECKING:
    from truesource.lmtrain.decoding.decode import StepwiseModel


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
        sources: paths, or ``NAME=PATH``.
        n: number of sentences to sample from a model folder.
        seed: of the sampling.
        split: of corpus folders.
        lengths: sentences of other lengths are left out.

    Raises:
        InputError: two samples have one name, one cannot be read, or no sentence of one has such a length.
    """
    texts: dict[str, list[list[str]]] = {}
    known: list[tuple[str, ...]] = []
    for given in sources:
        title, path = named(given)
        if (path / "config.json").is_file():
            name, sampled, words = _sampled(path, n, seed)
            known += [] if words is None else [words]
            kept = sampled if lengths is None else [s for s in sampled if len(s) in lengths]
            if not kept:
                raise InputError(
                    f"none of the {len(sampled):,} sentences has {lengths} words; choose other --lengths", path
                )
            source = Source(title if str(path) != given else name, path, kept, len(sampled) - len(kept))
        else:
            _refuse_beams(path)
            source = read_source(given, n=n, seed=seed, lengths=lengths, split=split)
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


def words_of_model(folder: Path) -> tuple[str, ...]:
    """The words that a model tells apart.

    Raises:
        InputError: there is no such model, or it splits words into pieces.
    """
    from truesource.lmtrain.models import load_model

    words = load_model(folder).vocabulary
    if words is None:
        raise InputError("this model splits words into pieces and has no list of words; leave --vocabulary out", folder)
    return words


def _sampled(folder: Path, n: int, seed: int) -> tuple[str, list[list[str]], tuple[str, ...] | None]:
    """Finished sentences of a model's own distribution."""
    from truesource.lmtrain.decoding.decode import draw
    from truesource.lmtrain.decoding.settings import Decoding
    from truesource.lmtrain.models import load_model

    model = load_model(folder)
    if model.objective != "causal":
        raise InputError("a masked model has no distribution over sentences to sample from", folder)
    sampled = draw(cast("StepwiseModel", model), n, Decoding(), seed=seed)
    text = [s for s, finished in zip(sampled.sentences, sampled.finished, strict=True) if finished and s]
    if len(text) < n:
        echo(f"{n - len(text):,} of {n:,} sentences of {model.name}, unfinished or empty, are left out", err=True)
    return model.name, text, model.vocabulary
