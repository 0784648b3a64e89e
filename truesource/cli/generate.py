"""`truesource generate`: sample sentences from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.lmtrain.decoding.settings import Decoding
from truesource.terminal.console import echo
from truesource.terminal.options import Force, Json, License, Model, Number, Seed, Shard, Workers
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.lmtrain.decoding.folder import SampleFolder
    from truesource.terminal.output import OutputFiles


@with_options(Decoding)
def command(
    model: Model,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write the samples to.")],
    *,
    number: Number = 10_000,
    settings: Decoding,
    seed: Seed = DEFAULT_SEED,
    workers: Workers = 1,
    shard: Shard = None,
    license: License = None,  # noqa: A002
    json: Json = None,
    force: Force = False,
) -> None:
    """Sample sentences from a causal model, each with its log probability under the model.

    An interrupted call resumes if it is repeated. On a CPU, each worker uses one thread.

    Example: truesource generate model/ -o samples/ -n 1000 --scheme nucleus --top-p 0.9
    """
    from truesource.grammar.support.errors import require_extras
    from truesource.grammar.support.parallel import Share
    from truesource.terminal.output import OutputFiles, claim_folder

    require_extras("`truesource generate`", "lm")
    share = None if shard is None else Share.parse(shard)
    if share is None:
        claim_folder(output, "folder of samples", "record.json", force=force)
    files = OutputFiles(json=json, shared=share is not None, force=force)
    from truesource.lmtrain.decoding.sample_builder import make_samples  # torch, after the quick checks

    samples = make_samples(
        model, number, settings, output, seed=seed, workers=workers, share=share, license=license, force=force
    )
    if samples is None:
        echo(f"Wrote this job's shards of {output}. Next: run the other jobs; the last one completes the samples.")
    else:
        _report_samples(model, samples, files)


def _report_samples(model: str, made: SampleFolder, files: OutputFiles) -> None:
    from truesource.terminal.output import json_of

    counts, scheme = made.record["counts"], made.decoding
    unfinished = made.n_sentences - made.n_finished
    mean = f"; mean length of the others {counts['finished_tokens'] / made.n_finished:.4f}" if made.n_finished else ""
    echo(f"decoding    {scheme}")
    echo(f"unfinished  {unfinished:,} of {made.n_sentences:,} sentences ({unfinished / made.n_sentences:.3%}){mean}")
    echo(f"special     {counts['special'] / counts['contexts']:.3g} of the probability, never sampled")
    following = f"divergence {model} CORPUS --oracle GRAMMAR --model-samples {made.path}"
    if scheme.scheme != "ancestral" or scheme.temperature != 1.0:
        following = f"naturalness {made.path} --reference TREEBANK"  # decoding has changed the distribution
    also = files.also(json=json_of({"samples": str(made.path), **made.record}))
    echo(
        f"Wrote {made.path}{also}: {made.n_sentences:,} sentences, {counts['tokens']:,} tokens."
        f" Next: truesource evaluate {following}"
    )
