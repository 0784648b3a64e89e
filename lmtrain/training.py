"""Training a model on a corpus with `transformers.Trainer`: metrics, checkpoints, resuming, the finished folder.

While a training runs, all its files are in ``<path>.partial``: checkpoints, snapshots (`truesource.lmtrain.snapshots`)
and ``metrics.jsonl`` (per line: ``step``, ``epoch``, ``tokens`` seen, ``loss`` on the train split, ``lr``, ``dev_loss``
and ``dev_ppl``, and what the monitor measured; losses in nats per predicted token). ``path`` appears when it is
finished, so an existing folder survives a failure. After Ctrl-C or a SIGTERM, which wait for the running step and save
a checkpoint, or after a kill, the same call continues from the last checkpoint; on a CPU all files come out the same to
the last bit but for ``times.jsonl`` (`truesource.lmtrain.training_record`).

Started in n processes by ``torchrun``, each takes every n-th micro-batch: the same data, and but for rounding and
dropout the same weights, as one process with n times the ``accumulation``. The loss of a step is the mean over all its
predicted tokens. Only the first process writes.
"""

from __future__ import annotations

import reprlib
import shutil
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, cast

from truesource.grammar.support.atomic_files import remove_leftovers
from truesource.grammar.support.call_arguments import as_path, seed_number
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import refuse_occupied
from truesource.grammar.support.hub_card import checked_license
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.records import made_settings
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.lmtrain.architectures.ngram.training import train_ngram
from truesource.lmtrain.architectures.settings import NgramSettings
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.model_registry import completed, settings_class
from truesource.lmtrain.model_registry import preset as of_preset
from truesource.lmtrain.models import load_trained
from truesource.lmtrain.process_group import from_main_process, process_group
from truesource.lmtrain.training_record import FILE, remove_used_up
from truesource.lmtrain.training_request import SentenceSource, TrainingRequest, splits_of, text_source

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, TrainerCallback

    from truesource.lmtrain.data import ExpectedTokens
    from truesource.lmtrain.trained_models import TrainedModel
    from truesource.lmtrain.trainer import ModelMonitor

#: names of the folder of a model in other libraries and calls
FOLDERS = ("out", "output", "output_dir", "folder", "directory", "save_path")


def train(
    corpus: SentenceSource | Sequence[Sequence[str]] | str | Path,
    model: ModelConfig | str,
    training: TrainConfig | Mapping[str, Any] | None = None,
    path: Path | str | None = None,
    *,
    preset: str = "tiny",
    seed: int = DEFAULT_SEED,
    monitor: ModelMonitor | None = None,
    tokenizer: PreTrainedTokenizerFast | None = None,
    force: bool = False,
    resume: bool = True,
    license: str | None = None,  # noqa: A002
    callbacks: Sequence[TrainerCallback] = (),
    expected: ExpectedTokens | None = None,
    weights: Path | str | None = None,
    **settings: Any,
) -> TrainedModel:
    """Train a model and save it in a folder that `transformers` can load; see the module.

    Args:
        corpus: a source of the splits train and, if there is one, dev; its folder, or a text file; or train sentences
            themselves.
        model: settings of the model and its vocabulary, or the name of an architecture, such as ``"gpt2"``.
        training: duration, optimiser, batches, such as ``{"epochs": 2}``; None: the settings of the preset, for an
            architecture by name. Not for a model that counts.
        path: folder to make; None: a temporary one, which goes with the model.
        preset: settings of an architecture by name, see `truesource.lmtrain.model_registry.preset`.
        seed: of weights, batches, masks and dropout, 0 or more.
        monitor: measures the model at every line of ``metrics.jsonl``, in the first process alone. It gets the model
            in evaluation mode (under bf16 in that precision) and must not change weights; random states are restored.
        tokenizer: of the kind that ``model`` asks for, made from another, larger text, so that models of different
            train splits share a vocabulary. None: made from the train split.
        force: replace ``path``, and a partial run of other settings.
        resume: continue a partial run of the same settings; False: start again.
        callbacks: of `transformers`, called at every step; they may stop the training and get the monitor's values
            (``on_log``). Not for a model that counts.
        license: of the model, for its card, an SPDX identifier; None: the licence of the corpus, if any.
        expected: the probability of each token at each position of the train split, to train on in place of the tokens
            that occurred; needs ``tokenizer``, whose tokens they are. Losses are then cross-entropies with these.
        weights: folder of a trained model of the same architecture and size, whose weights the training starts from;
            see `truesource.lmtrain.initial.take_weights`. The optimiser starts anew. Not for a model that counts.
        settings: training settings as keywords, such as ``max_steps=20``, instead of ``training``.

    Raises:
        InputError: a bad argument, setting or ``license``, there is nothing to train on, a sentence is too long for the
            model, the device cannot do bf16, ``path`` exists, ``weights`` are of another network (code
            ``other-network``), a loss or a measurement is not finite, or another process of a distributed run has
            ended.
    """
    model, training = _requested(model, with_keywords(model, training, settings), preset)
    corpus, seed = text_source(corpus), seed_number(seed)
    chosen = None if path is None else as_path(path, "a folder to create")
    temporary = None if chosen is not None else Path(mkdtemp(prefix="truesource-"))
    out = chosen or Path(str(temporary)) / "model"
    with process_group(), ExitStack() as held:
        from_main_process(lambda: _claim(out, held, force=force))
        train_split, dev_split = splits_of(corpus)
        ask = partial(TrainingRequest.of, corpus, model, training, seed=seed, tokenizer=tokenizer, weights=weights)
        digest = None if expected is None else expected.digest
        request = ask(expected_digest=digest, splits=(train_split, dev_split)).as_record()
        record = {**request, **_condition(corpus), **_about(corpus, license)}  # a partial run need not hold these
        if isinstance(model, NgramSettings):
            if training is not None:
                raise InputError(f"{model.architecture} takes no training settings; leave them out")
            if callbacks or expected is not None:
                raise InputError(f"{model.architecture} is counted, so it takes neither callbacks nor expected tokens")
            if weights is not None:
                raise InputError(f"{model.architecture} is counted, so it starts from no weights", code="other-network")
            from_main_process(lambda: train_ngram(model, train_split, dev_split, record, out, monitor, tokenizer))
            return _kept(load_trained(out, model), temporary)
        if training is None:
            raise InputError(f"{model.architecture} needs training settings, such as epochs")
        from truesource.lmtrain.network_training import train_network  # torch
        from truesource.lmtrain.training_run import TrainingRun

        run = TrainingRun(
            model, training, train_split, dev_split, seed, monitor, tokenizer, callbacks, expected, weights
        )
        train_network(run, request, record, out, force=force, resume=resume)
    return _kept(load_trained(out, model), temporary)


def _requested(
    model: ModelConfig | str, training: TrainConfig | Mapping[str, Any] | None, start: str
) -> tuple[ModelConfig, TrainConfig | None]:
    """Return the full settings of a call.

    Raises:
        InputError: there is no such architecture, preset or setting.
    """
    settings: dict[str, object] = {}
    if isinstance(model, str):
        chosen = of_preset(start, model)
        model = chosen.model
        if training is None:
            return completed(model), chosen.training
        settings = {} if chosen.training is None else chosen.training.model_dump()
    if training is None or isinstance(training, TrainConfig):
        return completed(model), training
    for name, other in (("epochs", "max_steps"), ("max_steps", "epochs"), ("batch_tokens", "batch_sentences")):
        if name in training:
            settings.pop(other, None)
    return completed(model), made_settings(TrainConfig, "training", {**settings, **training})


def with_keywords(model: object, training: Any, settings: Mapping[str, Any]) -> TrainConfig | Mapping[str, Any] | None:
    """Return the training settings of a call, some of which may be keywords.

    Args:
        model: its second argument.
        training: its third argument.
        settings: its further keywords.

    Raises:
        InputError: the model or the training is something else, or a keyword is a setting of the model.
    """
    if not isinstance(model, str | ModelConfig):
        raise InputError(
            "expecting the name of an architecture, such as 'gpt2', or the settings of a model as the second argument,"
            f" got {type(model).__name__}; the order is corpus, model",
            code="bad-setting",
        )
    if training is not None and not isinstance(training, TrainConfig | Mapping):
        raise InputError(
            f"expecting training settings such as {{'max_steps': 20}}, got {reprlib.repr(training)}", code="bad-setting"
        )
    if not settings:
        return cast("TrainConfig | Mapping[str, Any] | None", training)
    kind = settings_class(model) if isinstance(model, str) else type(model)
    for name in settings:
        if name in FOLDERS:
            raise InputError(f"the folder of the model is path=, not {name}=", code="bad-setting")
        if name in kind.model_fields and name not in TrainConfig.model_fields:
            raise InputError(
                f"{name} is a setting of the model, not of its training; pass model_settings(ARCHITECTURE, {name}=...)"
                " as the second argument",
                code="bad-setting",
            )
    if isinstance(training, TrainConfig):
        raise InputError(
            f"{next(iter(settings))} is given next to a TrainConfig; set it there instead", code="bad-setting"
        )
    return {**(training or {}), **settings}


def _kept(model: TrainedModel, temporary: Path | None) -> TrainedModel:
    """Return a model; its temporary folder, if it is in one, is removed with it."""
    if temporary is not None:
        weakref.finalize(model, shutil.rmtree, temporary, ignore_errors=True)
    return model


def _claim(out: Path, held: ExitStack, *, force: bool) -> None:
    """Hold the folder until ``held`` is closed."""
    held.enter_context(exclusive(out))
    remove_leftovers(out)
    if not force:
        remove_used_up(out)
    refuse_occupied(out, force, "model", FILE)


def _condition(corpus: object) -> dict[str, str]:
    """Return the length condition of a corpus folder, for ``training.json``; empty for other texts."""
    call = getattr(corpus, "record", {}).get("call", {})
    return {"corpus_lengths": str(call["lengths"] or "none")} if "lengths" in call else {}


def _about(corpus: object, license: str | None) -> dict[str, str]:  # noqa: A002
    """Return the licence and language of a model, as far as they are known."""
    spdx = None if license is None else checked_license(license)
    named = {"license": spdx or getattr(corpus, "license", None), "language": getattr(corpus, "language", None)}
    return {key: value for key, value in named.items() if isinstance(value, str)}
