"""`truesource generate`: text from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truesource.cli.console import echo
from truesource.cli.options import Force, Seed, Shard, Workers


def command(
    model: Annotated[Path, typer.Argument(help="Folder of a causal model, as truesource train made it.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of samples to make.")],
    n: Annotated[int, typer.Option("-n", help="Sentences of the folder.")] = 10_000,
    decoding: Annotated[
        Literal[
            "ancestral",
            "nucleus",
            "top_k",
            "typical",
            "eta",
            "epsilon",
            "beam_sampling",
            "beam_sampling_fairseq",
            "beam_sampling_hf",
            "beam",
        ],
        typer.Option(help="Decoding scheme."),
    ] = "ancestral",
    temperature: Annotated[
        float | None, typer.Option(help="Of the schemes without beams; applied before any truncation; default 1.")
    ] = None,
    top_p: Annotated[float | None, typer.Option(help="nucleus: smallest set of tokens with this mass.")] = None,
    top_k: Annotated[int | None, typer.Option(help="top_k: so many most probable tokens.")] = None,
    typical_p: Annotated[float | None, typer.Option(help="typical: mass of the locally typical set.")] = None,
    eta: Annotated[float | None, typer.Option(help="eta: cutoff, such as 0.0003.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="epsilon: least probability of a token.")] = None,
    beams: Annotated[int | None, typer.Option(help="Schemes with beams: hypotheses; default 5.")] = None,
    length_penalty: Annotated[
        float | None, typer.Option(help="Of beams: log probability over tokens to this power decides; default 1.")
    ] = None,
    keep: Annotated[
        Literal["best", "all"] | None, typer.Option(help="Of a beam: its best hypothesis (default), or all.")
    ] = None,
    no_dedupe: Annotated[
        bool, typer.Option("--no-dedupe", help="beam_sampling: a token drawn twice for a hypothesis counts twice.")
    ] = False,
    max_tokens: Annotated[
        int | None,
        typer.Option(help="Cut sentences after so many tokens, and flag them; default: what the model takes, or 200."),
    ] = None,
    seed: Seed = 1,
    workers: Workers = 1,
    shard: Shard = None,
    force: Force = False,
) -> None:
    """Draw sentences from a causal model, with the log probability of each under it.

    A call that was stopped goes on where it was when given again. On a CPU each worker computes in one thread.
    """
    from truesource.cli.claims import claim_folder
    from truesource.grammar.parallel import Share
    from truesource.lmtrain.decoding.settings import Decoding

    how = Decoding(
        decoding,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        typical_p=typical_p,
        eta=eta,
        epsilon=epsilon,
        beams=beams,
        length_penalty=length_penalty,
        keep=keep,
        dedupe=False if no_dedupe else None,
        max_tokens=max_tokens,
    )
    share = None if shard is None else Share.parse(shard)
    if share is None:
        claim_folder(output, force=force)
    from truesource.lmtrain.decoding.sample_builder import make_samples  # torch, after the quick checks

    made = make_samples(model, n, how, output, seed=seed, workers=workers, share=share, force=force)
    if made is None:
        echo(f"Wrote this job's shards of {output}. Next: the other jobs; the last to end completes the samples.")
        return
    counts = made.record["counts"]
    cut = made.n_sentences - made.n_finished
    mean = f"; mean length of the others {counts['finished_tokens'] / made.n_finished:.4f}" if made.n_finished else ""
    echo(f"decoding   {made.decoding}")
    echo(f"cut        {cut:,} of {made.n_sentences:,} sentences ({cut / made.n_sentences:.3%}){mean}")
    echo(f"special    {counts['special'] / counts['contexts']:.3g} of the probability, never drawn")
    following = f"divergence {model} CORPUS --oracle GRAMMAR --samples {output}"
    if how.scheme != "ancestral" or how.temperature != 1.0:
        following = f"naturalness {output} --reference TREEBANK"  # the model's own distribution is not what was drawn
    echo(
        f"Wrote {output}: {made.n_sentences:,} sentences, {counts['tokens']:,} tokens."
        f" Next: truesource evaluate {following}"
    )
