"""One training run on `transformers.Trainer`: our batches, our loss, one process or several.

Metrics go to the trackers that `transformers` knows, such as TensorBoard.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    PrinterCallback,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK, get_available_reporting_integrations

from truesource.generator.columns import CodedSentences, Rows
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter, silent
from truesource.grammar.support.room import require_disk
from truesource.grammar.support.settings import did_you_mean
from truesource.lmtrain import snapshots
from truesource.lmtrain.architectures.networks import NetworkArchitecture
from truesource.lmtrain.architectures.settings import AdaptiveSettings, require_room
from truesource.lmtrain.config import RECORDED, ModelConfig, TrainConfig
from truesource.lmtrain.data import Batch, ExpectedTokens, TrainingBatches, dev_batches
from truesource.lmtrain.device import torch_device
from truesource.lmtrain.folders import no_bars
from truesource.lmtrain.initial import take_weights
from truesource.lmtrain.model_registry import network_architecture_for
from truesource.lmtrain.own.settings import OwnSettings
from truesource.lmtrain.processes import rank, world_size
from truesource.lmtrain.saving import LossSum, read_losses
from truesource.lmtrain.scoring import batch_budget, predictor
from truesource.lmtrain.subword_vocabulary import encoder_of
from truesource.lmtrain.subwords import make_tokenizer
from truesource.lmtrain.trainer import LossTrainer, ModelMonitor, Watch
from truesource.lmtrain.training_record import model_of
from truesource.lmtrain.word_vocabulary import Encoder, encode_rows

log = logging.getLogger("truesource")
TENSORBOARD = "tensorboard"
FOLDER = "TENSORBOARD_LOGGING_DIR"  #: variable with the folder of events, read by `transformers`


class TrainingRun:
    """A training run: it encodes the corpus, builds the model and the Trainer, and trains."""

    def __init__(
        self,
        model: ModelConfig,
        training: TrainConfig,
        train_split: CodedSentences,
        dev_split: CodedSentences,
        seed: int,
        monitor: ModelMonitor | None = None,
        tokenizer: PreTrainedTokenizerFast | None = None,
        callbacks: Sequence[TrainerCallback] = (),
        expected: ExpectedTokens | None = None,
        weights: Path | str | None = None,
    ) -> None:
        self.config, self.training, self.seed, self.monitor = model, training, seed, monitor
        self.callbacks = list(callbacks)
        _check_precision(training)
        require_trackers(training.report_to)
        self.architecture: NetworkArchitecture[Any] = network_architecture_for(model)
        objective = self.architecture.objective
        if expected is not None and isinstance(model, AdaptiveSettings):
            raise InputError(f"{model.architecture} is trained on single tokens only; leave expected out")
        self.tokenizer: PreTrainedTokenizerFast = (
            make_tokenizer(model, train_split, objective) if tokenizer is None else deepcopy(tokenizer)
        )
        if model.longest is not None:
            self.tokenizer.model_max_length = model.longest
        self.vocabulary = encoder_of(self.tokenizer)
        rows, dev = (self._encode(split, name) for split, name in ((train_split, "train"), (dev_split, "dev")))
        tokens = len(rows.flat) if torch_device().type == "cpu" else 0
        require_room(model, len(self.vocabulary), training=training, tokens=tokens)
        self.batches = TrainingBatches(
            rows, self.vocabulary, objective, training, seed=seed, processes=world_size(), expected=expected
        )
        self.dev = dev_batches(
            dev, self.vocabulary, objective, limit=training.eval_sentences, budget=batch_budget(len(self.vocabulary))
        )
        set_seed(seed)
        with meter(f"building {model.label}"):
            self.model: PreTrainedModel = self.architecture.build(model, self.vocabulary)
        if training.precision == "bf16":
            _require_half_precision(self.model, model.label)
        _start_at_unigram(self.model, rows, self.vocabulary.eos if objective == "causal" else None)
        if weights is not None:
            take_weights(self.model, self.tokenizer, model, Path(weights))
        if objective == "causal":
            self.model.generation_config = _generation_config(model, self.vocabulary)

    def require_disk(self, out: Path) -> None:
        """Refuse snapshots that do not fit the disk of the folder that is made.

        Raises:
            InputError: there are too many, or they take more space than is free (code ``too-large``).
        """
        number = len(snapshots.schedule(self.training, self.batches.n_steps))
        require_disk(
            f"{number:,} snapshots of {self.config.label}",
            4.0 * number * self.model.num_parameters(),
            out,
            "keep fewer (training.snapshot_every, training.snapshots_per_doubling)",
        )

    def _encode(self, split: CodedSentences, name: str) -> Rows:
        rows = encode_rows(self.vocabulary, split)
        if self.config.longest is not None:
            longest = self.config.longest - (1 if self.architecture.objective == "causal" else 2)
            too_long = np.flatnonzero(rows.lengths > longest)
            if len(too_long):
                first, unit = int(too_long[0]), "words" if self.config.tokenizer == "word" else "pieces"
                raise InputError(
                    f"sentence {first + 1} of the {name} split has {rows.lengths[first]} {unit},"
                    f" the model takes {longest}; raise max_positions, or sample a corpus of shorter sentences"
                )
        return rows.filled()

    def _arguments(self, folder: Path) -> TrainingArguments:
        """Return the settings of the Trainer, whose batch is one of ours and whose only epoch is the whole run."""
        c, device = self.training, torch_device()
        arguments = TrainingArguments(
            output_dir=str(folder / "checkpoints"),
            max_steps=self.batches.n_steps,
            per_device_train_batch_size=1,
            gradient_accumulation_steps=c.accumulation,
            train_sampling_strategy="sequential",
            remove_unused_columns=False,
            dataloader_num_workers=0,
            dataloader_pin_memory=device.type == "cuda",
            learning_rate=c.learning_rate,
            lr_scheduler_type=c.schedule if c.schedule != "constant" else "constant_with_warmup",
            warmup_steps=min(c.warmup_steps, self.batches.n_steps // 2),
            weight_decay=c.weight_decay,
            adam_beta1=c.betas[0],
            adam_beta2=c.betas[1],
            max_grad_norm=c.clip,
            bf16=c.precision == "bf16",
            use_cpu=device.type == "cpu",
            seed=self.seed,
            logging_strategy="no",
            eval_strategy="no",
            save_strategy="no",
            save_total_limit=2,
            logging_nan_inf_filter=False,
            report_to=list(c.report_to) or "none",
            disable_tqdm=True,
            log_level="error",
            ddp_find_unused_parameters=isinstance(self.config, OwnSettings),
            **_optimizer(self.model),
        )
        if arguments.n_gpu > 1:
            arguments._n_gpu = 1  # no threads over several GPUs: `torchrun` gives each a process
        if device.index is not None and world_size() == 1:
            torch.cuda.set_device(device)
            arguments.__dict__["_setup_devices"] = device  # the library takes the first GPU, whatever is current
            arguments.distributed_state.device = device
        return arguments

    def __call__(self, folder: Path, checkpoint: Path | None, interrupted: threading.Event) -> None:
        """Train, with checkpoints and metrics in ``folder``, from the start or on from ``checkpoint``.

        ``interrupted`` stops it after a step.
        """
        with events_beside(model_of(folder), self.training.report_to):
            self.trainer = LossTrainer(
                model=self.model,
                args=self._arguments(folder),
                train_dataset=self.batches,
                data_collator=_only,
                processing_class=self.tokenizer,
                callbacks=self.callbacks,
            )
        self.trainer.remove_callback(PrinterCallback)
        if self.model.device.type == "cpu":
            count = torch.get_num_threads()
            log.info("%s trains in %d thread%s; --threads sets the number", self.config.label, count, "s"[count == 1 :])
        if rank():
            torch.manual_seed(self.seed + rank())  # after the weights; dropout differs between the processes
        with (
            silent() if rank() else nullcontext(),
            predictor(self.model, self.architecture.head) as predict,
            meter(f"train {self.config.label}", self.batches.n_steps) as bar,
        ):
            causal = self.architecture.objective == "causal"
            self.trainer.loss = partial(predict.loss, use_cache=False) if causal else predict.loss
            self.trainer.losses = LossSum() if checkpoint is None else read_losses(checkpoint, rank())
            self.watch = Watch(self, folder, bar, interrupted)
            self.trainer.add_callback(self.watch)
            with no_bars():
                self.trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
            bar.stopped = interrupted.is_set()


def _check_precision(training: TrainConfig) -> None:
    if training.precision != "bf16" or torch_device().type != "cuda":
        return
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        raise InputError(f"{torch.cuda.get_device_name()} has no bf16 arithmetic; set training.precision to fp32")


def _optimizer(model: PreTrainedModel) -> dict[str, str]:
    """Return the optimiser: AdamW, but not the fused one for complex weights."""
    return {"optim": "adamw_torch"} if any(parameter.is_complex() for parameter in model.parameters()) else {}


def _require_half_precision(network: PreTrainedModel, name: str) -> None:
    """Refuse bf16 if the CPU has no such arithmetic for a layer of a network, as for LSTMs without AVX-512.

    Raises:
        InputError: it cannot be run (code ``no-bf16``).
    """
    if torch_device().type == "cuda":
        return
    try:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            network.eval()(input_ids=torch.zeros((1, 2), dtype=torch.long))
    except RuntimeError as error:
        raise InputError(
            f"{name} cannot be run in bf16 on this CPU ({str(error).partition('.')[0]}); set training.precision to"
            " fp32",
            code="no-bf16",
        ) from error


def _only(batches: list[Batch]) -> Batch:
    return batches[0]


def _start_at_unigram(model: PreTrainedModel, rows: Rows, end: int | None) -> None:
    """Let the output bias, if any, start at the log frequencies of the tokens, ``end`` once a row.

    The first steps then learn contexts; otherwise a masked model spends some hundred steps on frequencies.
    """
    bias = getattr(model.get_output_embeddings(), "bias", None)
    if bias is not None:
        counts = np.bincount(rows.flat, minlength=len(bias)) + 0.1
        if end is not None:
            counts[end] += len(rows)
        with torch.no_grad():
            bias.copy_(torch.from_numpy(np.log(counts / counts.sum())))


def require_trackers(names: Sequence[str]) -> None:
    """Refuse trackers that cannot be used, before anything is trained.

    Raises:
        InputError: `transformers` knows no such tracker (code ``no-tracker``), or it is not installed
            (``missing-library``).
    """
    for name in names:
        if name not in INTEGRATION_TO_CALLBACK:
            similar = did_you_mean(name, INTEGRATION_TO_CALLBACK)
            raise InputError(
                f"training.report_to: there is no tracker {name!r}{similar or ';'} there are"
                f" {', '.join(INTEGRATION_TO_CALLBACK)}",
                code="no-tracker",
            )
        if name not in get_available_reporting_integrations():
            raise InputError(
                f"training.report_to: the tracker {name} is not installed; install its package, or leave it out",
                code="missing-library",
            )


@contextmanager
def events_beside(model: Path, names: Sequence[str]) -> Iterator[None]:
    """Let TensorBoard write to ``<model>.tensorboard`` inside the block, unless the environment names a folder.

    Args:
        model: folder that is made; it is renamed when it is finished, so events are next to it.
        names: trackers in use.
    """
    if TENSORBOARD not in names:
        yield
        return
    named = os.environ.get(FOLDER)
    folder = named or str(model.with_name(f"{model.name}.tensorboard"))
    log.info("events for TensorBoard: %s; tensorboard --logdir %s shows them", folder, folder)
    os.environ[FOLDER] = folder
    try:
        yield
    finally:
        if named is None:
            del os.environ[FOLDER]


def _generation_config(config: ModelConfig, vocabulary: Encoder) -> GenerationConfig:
    """Return settings of ancestral sampling until ``<eos>``, nothing cut off, none of the library's defaults."""
    return GenerationConfig(
        do_sample=True,
        num_beams=1,
        top_k=0,
        top_p=1.0,
        temperature=1.0,
        max_new_tokens=(config.longest or RECORDED["max_positions"]) - 1,
        bos_token_id=vocabulary.bos,
        eos_token_id=vocabulary.eos,
        pad_token_id=vocabulary.pad,
    )
