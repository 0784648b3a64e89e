"""`truesource train`: a language model on a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.options import Force, Seed

NAME = "train"


def command(
    corpus: Annotated[Path, typer.Argument(help="Corpus folder that truesource sample made.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Model folder to make.")],
    preset: Annotated[str, typer.Option(help="Settings to start from: tiny-causal or tiny-masked.")] = "tiny-causal",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Override: --set model.layers=4 or --set training.max_steps=2000")
    ] = None,
    seed: Seed = 1,
    force: Force = False,
) -> None:
    """Train a causal (GPT-2) or masked (BERT) language model; after Ctrl-C the same command goes on."""
    import yaml

    from generator.corpus import Corpus
    from grammar.errors import InputError
    from truesource.config import ModelEntry

    values: dict[str, dict[str, object]] = {"model": {}, "training": {}}
    for override in set_ or []:
        key, _, text = override.partition("=")
        section, _, name = key.partition(".")
        if section not in values or not name or not text:
            raise InputError(f"an override is written model.KEY=VALUE or training.KEY=VALUE, got {override!r}")
        values[section][name] = yaml.safe_load(text)
    try:
        entry = ModelEntry(name=output.name, preset=preset, **values)
    except ValueError as error:
        lines = [line.strip() for line in str(error).splitlines() if not line.startswith(("For further", "    For"))]
        raise InputError("cannot train with these settings: " + "; ".join(lines[1:3])) from error
    from lmtrain.training import train

    shape, training = entry.resolve()
    model = train(Corpus.load(corpus), shape, training, output, seed=seed, force=force)
    typer.echo(f"Wrote {output}: {model.name}. Next: truesource score {output} {corpus} --oracle GRAMMAR")
