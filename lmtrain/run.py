"""One training run on `transformers.Trainer`: our batches and loss, metrics, when to save and when to stop."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerFast,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    set_seed,
)

from grammar.errors import InputError
from grammar.files import write_text
from grammar.progress import Meter, meter
from lmtrain.architectures import ARCHITECTURES, Architecture
from lmtrain.card import generation_config
from lmtrain.config import ModelConfig, TrainConfig
from lmtrain.data import Batch, Ints, TrainingBatches, dev_batches, to_device
from lmtrain.heads import predictor
from lmtrain.quiet import no_bars
from lmtrain.scoring import batch_budget
from lmtrain.tokenizer import Vocabulary, build_tokenizer


def is_main_process() -> bool:
    """Whether this process writes: the only one, or the first of a distributed run."""
    return os.environ.get("RANK", "0") == "0"


class Run:
    """One training run: encodes the corpus, builds the model and the Trainer, and goes."""

    def __init__(
        self,
        model: ModelConfig,
        training: TrainConfig,
        train_split: Sequence[Sequence[str]],
        dev_split: Sequence[Sequence[str]],
        seed: int,
    ) -> None:
        self.config, self.training, self.seed = model, training, seed
        self.architecture: Architecture = ARCHITECTURES[model.architecture]
        objective = self.architecture.objective
        self.tokenizer: PreTrainedTokenizerFast = build_tokenizer(
            train_split, min_count=model.min_count, objective=objective
        )
        self.tokenizer.model_max_length = model.max_positions
        self.vocabulary = Vocabulary(self.tokenizer)
        rows, dev = (self._encode(split, name) for split, name in ((train_split, "train"), (dev_split, "dev")))
        self.batches = TrainingBatches(
            rows, self.vocabulary, objective, training, seed=seed, processes=int(os.environ.get("WORLD_SIZE", "1"))
        )
        self.dev = dev_batches(
            dev, self.vocabulary, objective, limit=training.eval_sentences, budget=batch_budget(len(self.vocabulary))
        )
        set_seed(seed)
        self.model: PreTrainedModel = self.architecture.build(model, self.vocabulary)
        _start_at_unigram(self.model, rows)
        if objective == "causal":
            self.model.generation_config = generation_config(model, self.vocabulary)

    def _encode(self, split: Sequence[Sequence[str]], name: str) -> list[Ints]:
        longest = self.config.max_positions - (1 if self.architecture.objective == "causal" else 2)
        for number, sentence in enumerate(split):
            if len(sentence) > longest:
                raise InputError(
                    f"sentence {number + 1} of the {name} split has {len(sentence)} words, the model takes {longest};"
                    " raise max_positions"
                )
        return [row for row in self.vocabulary.encode(split) if len(row)]

    def _arguments(self, folder: Path) -> TrainingArguments:
        """Our batches are made beforehand, so the Trainer's batch is one of ours and its only epoch the whole run."""
        c = self.training
        return TrainingArguments(
            output_dir=str(folder / "checkpoints"),
            max_steps=self.batches.n_steps,
            per_device_train_batch_size=1,
            gradient_accumulation_steps=c.accumulation,
            train_sampling_strategy="sequential",
            remove_unused_columns=False,
            dataloader_num_workers=0,
            dataloader_pin_memory=torch.cuda.is_available(),
            learning_rate=c.learning_rate,
            lr_scheduler_type=c.schedule if c.schedule != "constant" else "constant_with_warmup",
            warmup_steps=min(c.warmup_steps, self.batches.n_steps // 2),
            weight_decay=c.weight_decay,
            adam_beta1=c.betas[0],
            adam_beta2=c.betas[1],
            max_grad_norm=c.clip,
            bf16=c.precision == "bf16",
            use_cpu=not torch.cuda.is_available(),
            seed=self.seed,
            logging_strategy="no",
            eval_strategy="no",
            save_strategy="no",
            save_total_limit=2,
            logging_nan_inf_filter=False,
            report_to="none",
            disable_tqdm=True,
            log_level="error",
            ddp_find_unused_parameters=False,
        )

    def __call__(self, folder: Path, checkpoint: Path | None, interrupted: threading.Event) -> None:
        """Train, with checkpoints and metrics in ``folder``, from the start or on from ``checkpoint``.

        ``interrupted`` stops it after a step.
        """
        self.trainer = LossTrainer(
            model=self.model,
            args=self._arguments(folder),
            train_dataset=self.batches,
            data_collator=_only,
            processing_class=self.tokenizer,
        )
        self.trainer.remove_callback(PrinterCallback)
        with (
            predictor(self.model, self.architecture.head) as predict,
            meter(f"train {self.config.label}", self.batches.n_steps) as bar,
        ):
            options = {"use_cache": False} if self.architecture.objective == "causal" else {}
            self.trainer.logits = lambda model, batch: predict(model, batch, **options)
            self.watch = Watch(self, folder / "metrics.jsonl", bar, interrupted)
            self.trainer.add_callback(self.watch)
            with no_bars():
                self.trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)


def _only(batches: list[Batch]) -> Batch:
    return batches[0]


def _start_at_unigram(model: PreTrainedModel, rows: list[Ints]) -> None:
    """Let the output bias, where there is one, start at the log frequencies of the tokens.

    The first steps then go into contexts; without it a masked model first spends some hundred on frequencies.
    """
    bias = getattr(model.get_output_embeddings(), "bias", None)
    if bias is not None:
        counts = np.bincount(np.concatenate(rows), minlength=len(bias)) + 0.1
        with torch.no_grad():
            bias.copy_(torch.from_numpy(np.log(counts / counts.sum())))


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn what safetensors and torch raise where they cannot write, a full disk above all, into `OSError`."""
    try:
        yield
    except SafetensorError as error:
        raise OSError(str(error)) from error
    except RuntimeError as error:
        if "inline_container" not in str(error) and "PytorchStreamWriter" not in str(error):
            raise
        raise OSError("a checkpoint could not be written whole, the disk may be full") from error


class LossTrainer(Trainer):  # type: ignore[misc]
    """The loss is the mean cross-entropy over the positions that our batches name."""

    logits: Any

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Batch,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Nats per predicted token; one that is not finite stops the training."""
        loss = functional.cross_entropy(self.logits(model, inputs).float(), inputs["targets"])
        if not torch.isfinite(loss):
            raise FloatingPointError(f"the training loss is {loss.item()} at step {self.state.global_step + 1}")
        return loss

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        with disk_errors():
            super()._save_checkpoint(model, trial)


class Watch(TrainerCallback):  # type: ignore[misc]
    """Writes the metrics, decides when to save and when to stop, moves the progress bar."""

    def __init__(self, run: Run, path: Path, bar: Meter, interrupted: threading.Event) -> None:
        self._run, self._path, self._bar, self._interrupted = run, path, bar, interrupted
        self._note = ""
        self.rows: list[dict[str, Any]] = []
        self.stopped_early = False

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Read the metrics of the steps done before, or write those of step 0."""
        if self._path.exists():
            lines = self._path.read_text(encoding="utf-8").splitlines()
            self.rows = [row for row in map(json.loads, lines) if row["step"] <= state.global_step]
        if not self.rows:
            self._clock = time.perf_counter()
            self._record(state, None, None)
        else:
            self._clock = time.perf_counter() - self.rows[-1]["seconds"]
        self._bar.advance(state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        """Decide whether to log, to save, to stop."""
        config, step = self._run.training, state.global_step
        last = step >= self._run.batches.n_steps
        late = config.max_seconds is not None and self._seconds() > config.max_seconds
        self.stopped_early = late and not last
        every = config.eval_every * math.ceil(config.checkpoint_every / config.eval_every)
        control.should_log = last or late or step % config.eval_every == 0
        control.should_save = (step % every == 0 and not last) or self._interrupted.is_set()
        control.should_training_stop = last or late or self._interrupted.is_set()
        self._bar.advance(1, self._note)
        return control

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: dict[str, float], **_: Any
    ) -> None:
        """Write a line of metrics."""
        if "loss" in logs:
            self._record(state, logs["loss"], logs["learning_rate"])

    def _seconds(self) -> float:
        return time.perf_counter() - self._clock

    def _record(self, state: TrainerState, loss: float | None, rate: float | None) -> None:
        dev = self._dev_loss()
        epoch, tokens = self._run.batches.progress(state.global_step)
        row = {
            "step": state.global_step,
            "epoch": round(epoch, 4),
            "tokens": tokens,
            "loss": loss,
            "lr": rate,
            "dev_loss": dev,
            "dev_ppl": None if dev is None else math.exp(dev),
            "seconds": round(self._seconds(), 3),
        }
        self._note = " ".join(f"{k} {v:.3f}" for k, v in (("loss", loss), ("dev", dev)) if v is not None)
        self.rows.append(row)
        if is_main_process():
            write_text(self._path, "".join(json.dumps(r, allow_nan=False) + "\n" for r in self.rows))

    def _dev_loss(self) -> float | None:
        """Mean over the dev positions, nats; None without a dev split."""
        if not self._run.dev:
            return None
        model = self._run.model
        was_training, total, count = model.training, 0.0, 0
        model.eval()
        with torch.inference_mode():
            for batch in self._run.dev:
                batch = to_device(batch, model.device)
                losses = functional.cross_entropy(
                    self._run.trainer.logits(model, batch).float(), batch["targets"], reduction="none"
                )
                total += losses.sum(dtype=torch.float64).item()
                count += len(losses)
        model.train(was_training)
        return total / count
