"""`truesource train`: train a language model on a corpus."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.lmtrain.architectures.settings import DEFAULT, names, require_room
from truesource.lmtrain.model_registry import completed, masked_names
from truesource.lmtrain.processes import is_main_process, world_size
from truesource.run.models import WEIGHTS
from truesource.terminal.console import echo
from truesource.terminal.inputs import oracle_option, warn
from truesource.terminal.options import Force, Json, License, Overrides, Seed

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
    from truesource.generator.corpus import Corpus
    from truesource.generator.text_files import TextSplits
    from truesource.lmtrain.config import ModelConfig
    from truesource.run.models import ModelEntry


Architecture = Annotated[
    str,
    typer.Option(
        metavar="|".join([*names(), "FILE.py:NAME"]),
        help=f"Architecture, or custom code; {', '.join(masked_names())} are masked.",
    ),
]


def command(
    corpus: Annotated[Path, typer.Argument(help="Corpus folder, or text with one tokenised sentence per line.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Model folder to write.")],
    model: Architecture = DEFAULT,
    preset: Annotated[str, typer.Option(help="Settings to start from: tiny (minutes on a CPU) or paper.")] = "tiny",
    set_: Overrides = None,
    oracle: Annotated[
        Path | None, typer.Option("--oracle", help="Grammar of the corpus: compare with it during training.")
    ] = None,
    oracle_monitor_sentences: Annotated[int, typer.Option(min=1, help="With --oracle: sentences to compare on.")] = 200,
    dev: Annotated[Path | None, typer.Option(help="If CORPUS is a text file: text to track the dev loss on.")] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="Model folder whose tokeniser to reuse, which makes perplexities comparable.")
    ] = None,
    oracle_monitor_split: Annotated[str, typer.Option(help="With --oracle: split that has these sentences.")] = "dev",
    weights: Annotated[Path | None, typer.Option(help=WEIGHTS)] = None,
    seed: Seed = DEFAULT_SEED,
    license: License = None,  # noqa: A002
    json: Json = None,
    force: Force = False,
) -> None:
    """Train a language model on a corpus. After Ctrl-C, repeat the command to resume.

    A causal model predicts each word from the words before it; a masked model predicts it from all other words.

    --preset paper has the settings of Jumelet and Zuidema (2023). --set overrides a setting of the model:
    model.min_count (rarer words become <unk>), model.tokenizer (word, bpe, unigram), model.vocab_size, model.layers,
    model.dim, model.dropout; or of the training: training.epochs or training.max_steps, training.learning_rate,
    training.batch_tokens or training.batch_sentences, training.precision, training.snapshots (linear or log: save
    models during training). Architectures have further settings, which truesource new --schema run lists.

    To train your own torch.nn.Module, name it as --model file.py:name, and set its keyword arguments with --set
    model.KEY=VALUE. Other commands take the trained model as file.py:name@FOLDER.

    --weights starts from a trained model of the same architecture and size. It copies the vectors of the words that
    both models know.

    To train in several processes, use torchrun --nproc-per-node 2 -m truesource train ...

    Example: truesource train corpus/ -o model/ --model gpt2 --set training.max_steps=2000

    Example: truesource train text.txt --dev dev.txt -o model/
    """
    from truesource.grammar.support.errors import require_extras
    from truesource.lmtrain.own.settings import OwnSettings
    from truesource.terminal.output import OutputFiles, json_of

    require_extras("`truesource train`", "lm")
    entry = _entry(output, model, preset, set_ or [], weights)
    shape, training = entry.resolve()
    require_room(shape, training=training)
    shape = completed(shape)  # imports custom code, before any file is read
    alone = world_size() == 1
    files = OutputFiles(json=json, shared=not alone, force=force)
    if alone:  # with several processes, the first claims it after all have met
        _claim(output, force)
    source = _source(corpus, dev)
    monitor = None
    if oracle is not None:
        monitor = _monitor(source, corpus, oracle, oracle_monitor_split, oracle_monitor_sentences)
    from truesource.lmtrain.training import train

    trained = train(
        source,
        shape,
        training,
        output,
        seed=seed,
        monitor=monitor,
        tokenizer=None if tokenizer is None else _tokenizer(tokenizer, shape),
        force=force,
        license=license,
        weights=weights,
    )
    if is_main_process():
        reference = shlex.quote(f"{model}@{output}" if isinstance(shape, OwnSettings) else str(output))
        also = files.also(json=json_of(_record(output)))
        then = "TEXT" if corpus.is_file() else f"{shlex.quote(str(corpus))}{oracle_option(None, corpus)}"
        echo(f"Wrote {output}{also}: {trained.name}. Next: truesource score {reference} {then}")


def _claim(folder: Path, force: bool) -> None:
    """Hold the folder to write, without what a finished training left there."""
    from truesource.lmtrain.training_record import FILE, remove_used_up
    from truesource.terminal.output import claim_folder, hold

    hold(folder)
    if not force:
        remove_used_up(folder)
    claim_folder(folder, "model", FILE, force=force)


def _tokenizer(folder: Path, shape: ModelConfig) -> PreTrainedTokenizerFast:
    """Load the tokeniser of another model."""
    from truesource.lmtrain.trained_models import shared_tokenizer

    return shared_tokenizer(folder, shape)


def _record(folder: Path) -> dict[str, object]:
    """Return the settings and the result of the training for JSON."""
    from truesource.grammar.support.records import read_record
    from truesource.lmtrain.training_record import FILE, REMEDY

    record = read_record(folder / FILE, dict[str, object], remedy=REMEDY)
    return {"folder": str(folder)} | {name: value for name, value in record.items() if name != "files"}


def _source(corpus: Path, dev: Path | None) -> Corpus | TextSplits:
    """Load the text to train on."""
    from truesource.generator.corpus import Corpus
    from truesource.generator.text_files import TextSplits
    from truesource.grammar.support.errors import InputError

    if dev is not None and not corpus.is_file():
        raise InputError("--dev needs a text file, but a corpus folder already has a split dev; remove --dev", corpus)
    splits = {"train": corpus, "dev": dev} if dev is not None else {"train": corpus}
    return TextSplits(splits) if corpus.is_file() else Corpus.load(corpus)


def _entry(output: Path, architecture: str, preset: str, overrides: list[str], weights: Path | None) -> ModelEntry:
    """Return the settings as an entry of ``models`` in a configuration, named after the folder."""
    from pydantic import ValidationError

    from truesource.grammar.support.errors import InputError
    from truesource.grammar.support.files import real_path
    from truesource.grammar.support.records import explain
    from truesource.run.models import ModelEntry, given_settings, plain_name

    values: dict[str, object] = {**given_settings(architecture, overrides)}
    if weights is not None:
        if not weights.is_dir():
            raise InputError("there is no such model folder to take weights from", weights, code="missing")
        values["weights"] = str(weights)
    try:
        return ModelEntry(name=plain_name(real_path(output).name), preset=preset, **values)
    except ValidationError as error:
        raise InputError(f"cannot train with these settings: {explain(error)}") from error


def _monitor(source: object, corpus: Path, oracle: Path, split: str, sentences: int) -> OracleMonitor:
    """Return the monitor that compares the model with a grammar during training."""
    from truesource.evaluation.core.differences import corpus_differences
    from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
    from truesource.generator.corpus import Corpus
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.truth import load_truth

    if not isinstance(source, Corpus):
        raise InputError("--oracle needs a dev split, which a text file lacks; train on a corpus folder", corpus)
    truth = load_truth(oracle)
    monitor = OracleMonitor.on_corpus(truth, source, split=split, sentences=sentences)
    lengths, excluded = source.lengths, monitor.setting.excluded
    warn(corpus_differences(source, split, truth, lengths, lengths, excluded, uncorrected="kl, js and tv"))
    return monitor
