"""`truesource train`: a language model on a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.options import Force, Seed

NAME = "train"


def command(
    corpus: Annotated[Path, typer.Argument(help="Corpus folder, or text with one tokenised sentence a line.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Model folder to make.")],
    preset: Annotated[str, typer.Option(help="Settings to start from: tiny-causal or tiny-masked.")] = "tiny-causal",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Override: --set model.layers=4 or --set training.max_steps=2000")
    ] = None,
    seed: Seed = 1,
    force: Force = False,
) -> None:
    """Train a causal (GPT-2) or masked (BERT) language model; after Ctrl-C the same command goes on.

    Keys of --set: model.layers, .heads, .dim, .dropout, .min_count, .max_positions;
    training.epochs or .max_steps, .learning_rate, .batch_tokens.
    """
    import re

    from pydantic import ValidationError

    from generator.corpus import Corpus
    from generator.text import read_sentences
    from grammar.errors import InputError
    from grammar.files import refuse_existing
    from truesource.config import ModelEntry, explain, parse_value

    values: dict[str, dict[str, object]] = {"model": {}, "training": {}}
    for override in set_ or []:
        key, _, text = override.partition("=")
        section, _, name = key.partition(".")
        if section not in values or not name or not text:
            raise InputError(f"an override is written model.KEY=VALUE or training.KEY=VALUE, got {override!r}")
        values[section][name] = parse_value(override, text)
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", output.resolve().name).lstrip("._-") or "model"
    try:
        entry = ModelEntry(name=label, preset=preset, **values)
    except ValidationError as error:
        raise InputError(f"cannot train with these settings: {explain(error)}") from error
    refuse_existing(output, force)
    source = read_sentences(corpus) if corpus.is_file() else Corpus.load(corpus)
    from lmtrain.training import train

    shape, training = entry.resolve()
    model = train(source, shape, training, output, seed=seed, force=force)
    typer.echo(f"Wrote {output}: {model.name}. Next: truesource score {output} {corpus} --oracle GRAMMAR")
