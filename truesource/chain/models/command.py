"""`truesource train`: a language model on a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Force, Seed
from truesource.lmtrain.architectures import DEFAULT, names

NAME = "train"


def command(
    corpus: Annotated[Path, typer.Argument(help="Corpus folder, or text with one tokenised sentence a line.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Model folder to make.")],
    model: Annotated[str, typer.Option(help=f"What to train: {', '.join(names())}.")] = DEFAULT,
    preset: Annotated[
        str, typer.Option(help="Settings to start from. tiny: minutes on a CPU. paper: the published size.")
    ] = "tiny",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Override: --set model.layers=4 or --set training.max_steps=2000")
    ] = None,
    oracle: Annotated[
        Path | None, typer.Option("--oracle", help="The grammar of the corpus: compare with it during training.")
    ] = None,
    oracle_monitor_sentences: Annotated[
        int, typer.Option(min=1, help="With --oracle: number of sentences to compare on.")
    ] = 200,
    oracle_monitor_split: Annotated[str, typer.Option(help="With --oracle: the split they are from.")] = "dev",
    seed: Seed = 1,
    force: Force = False,
) -> None:
    """Train a language model; after Ctrl-C the same command goes on.

    bert, roberta and deberta predict a word from all others, the rest from the words before it.

    Keys of --set: model.min_count (rarer words become the unknown word), or .tokenizer (bpe, unigram) and .vocab_size;
    training.epochs or .max_steps, .learning_rate, .batch_tokens or .batch_sentences, .precision;
    training.snapshots (linear or log) keeps models along the way.

    Networks: model.layers, .dim, .dropout. Transformers: model.heads, .ffn_dim, .max_positions. Some: model.kv_heads
    (llama), .tie_words (opt, llama, lstm, gated_cnn), .cutoffs (adaptive), .kernel_size (gated_cnn), .variant
    (deberta), .local_start (bert, roberta, deberta), .order and .smoothing (ngram).

    Several processes: torchrun --nproc-per-node 2 -m truesource train ...
    """
    import os
    import re

    from pydantic import ValidationError

    from truesource.chain.models.config import ModelEntry
    from truesource.cli.claims import claim_folder, hold
    from truesource.generator.corpus import Corpus
    from truesource.generator.text import read_sentences
    from truesource.grammar.errors import InputError
    from truesource.grammar.records import explain
    from truesource.lmtrain.unfinished import remove_used_up
    from truesource.run.reading import parse_value

    values: dict[str, dict[str, object]] = {"model": {"architecture": model}, "training": {}}
    for override in set_ or []:
        key, _, text = override.partition("=")
        section, _, name = key.partition(".")
        if section not in values or not name or not text:
            raise InputError(f"an override is written model.KEY=VALUE or training.KEY=VALUE, got {override!r}")
        if key == "model.architecture":
            raise InputError("the architecture is given by --model, not by --set")
        values[section][name] = parse_value(override, text)
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", output.resolve().name).lstrip("._-") or "model"
    try:
        entry = ModelEntry(name=label, preset=preset, **values)
    except ValidationError as error:
        raise InputError(f"cannot train with these settings: {explain(error)}") from error
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:  # of several processes the first claims it, when they have met
        hold(output)
        if not force:
            remove_used_up(output)
        claim_folder(output, force=force)
    source = read_sentences(corpus) if corpus.is_file() else Corpus.load(corpus)
    monitor = None
    if oracle is not None:
        from truesource.cli.inputs import explain_truth
        from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
        from truesource.grammar.pcfg import PCFG

        if not isinstance(source, Corpus):
            raise InputError("a text has no dev split to compare with the grammar on; train on a corpus folder", corpus)
        pcfg = PCFG.load(oracle)
        monitor = OracleMonitor.on_corpus(pcfg, source, split=oracle_monitor_split, sentences=oracle_monitor_sentences)
        explain_truth(
            corpus,
            oracle_monitor_split,
            pcfg,
            source.lengths,
            source.lengths,
            monitor.excluded,
            uncorrected="kl, js and tv",
        )
    from truesource.lmtrain.distributed import is_main_process
    from truesource.lmtrain.training import train

    shape, training = entry.resolve()
    trained = train(source, shape, training, output, seed=seed, monitor=monitor, force=force)
    if not is_main_process():
        return
    echo(f"Wrote {output}: {trained.name}. Next: truesource score {output} {corpus} --oracle GRAMMAR")
