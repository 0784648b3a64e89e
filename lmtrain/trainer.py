"""The `transformers.Trainer` of a training run, and what happens between its steps.

`LossTrainer` computes the loss of a step and writes complete checkpoints. `Watch` writes metrics and snapshots and
decides when to save and to stop.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from truesource.grammar.support.atomic_files import write_text
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import Meter
from truesource.grammar.support.records import read_records
from truesource.lmtrain import snapshots
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.data import Batch, TrainingBatches, to_device
from truesource.lmtrain.device import kept_random_states
from truesource.lmtrain.distributed import any_process, sum_of, total, wait_for_all
from truesource.lmtrain.loading import require_tensors
from truesource.lmtrain.processes import is_main_process, rank, world_size
from truesource.lmtrain.saving import (
    STATE,
    LossSum,
    checkpoint_errors,
    disk_errors,
    require_optimizer_state,
    save_losses,
)
from truesource.lmtrain.trained_models import TrainedModel, as_language_model
from truesource.lmtrain.training_record import MetricsRow, TimesRow, read_times, write_times


class LossTrainer(Trainer):  # type: ignore[misc]
    """A `Trainer` whose loss of a step is the mean cross-entropy over all its predicted tokens, in all processes."""

    loss: Any  #: `Predictor.loss`
    losses: LossSum  #: of the steps since the last line of metrics
    _predicted = 0  #: positions to predict in the running step

    def get_batch_samples(self, epoch_iterator: Iterator[Batch], num_batches: int, device: Any) -> tuple[Any, Any]:
        """Return the micro-batches of a step and count their predicted tokens."""
        batches, items = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._predicted = total(sum(_size(batch) for batch in batches))
        return batches, items

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Batch,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Return nats per predicted token, weighted by the share of this micro-batch; stop if not finite.

        The Trainer and DDP average over micro-batches and processes, so the weights are 1 on average.
        """
        loss: Tensor = self.loss(model, inputs)
        finite = bool(torch.isfinite(loss))
        if any_process(not finite)[0]:
            value = "not finite in another process" if finite else str(loss.item())
            raise FloatingPointError(f"the training loss is {value} at step {self.state.global_step + 1}")
        self.losses.total += loss.item() * _size(inputs) / self._predicted
        group = self.args.gradient_accumulation_steps * world_size()
        return loss if group == 1 else loss * (_size(inputs) * group / self._predicted)

    def floating_point_ops(self, inputs: Batch) -> int:
        """Return 0: counting would visit all parameters at every micro-batch, and nothing here reads the number."""
        return 0

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        self._resumed = Path(resume_from_checkpoint)
        with checkpoint_errors(resume_from_checkpoint, STATE):
            TrainerState.load_from_json(str(self._resumed / STATE))
        with checkpoint_errors(resume_from_checkpoint, "model.safetensors"):
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Refuse tensors that the library only warns of; of tied weights a file holds one.

        Raises:
            InputError: a tensor is missing or unexpected.
        """
        tied: dict[str, str] = getattr(self.model, "all_tied_weights_keys", {})
        absent = set(load_result.missing_keys)
        missing = {name for name in absent if tied.get(name, name) in absent}
        require_tensors(missing, load_result.unexpected_keys, (), self._resumed)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            with checkpoint_errors(checkpoint, "optimizer.pt", "scheduler.pt"):
                super()._load_optimizer_and_scheduler(checkpoint)
                require_optimizer_state(self.optimizer)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            with checkpoint_errors(checkpoint, f"rng_state_{rank()}.pth" if world_size() > 1 else "rng_state.pth"):
                super()._load_rng_state(checkpoint)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        with disk_errors():
            super()._save(output_dir, state_dict)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        with disk_errors():
            super()._save_optimizer_and_scheduler(output_dir)

    def _save_rng_state(self, output_dir: str) -> None:
        with disk_errors():
            super()._save_rng_state(output_dir)
        save_losses(output_dir, self.losses, rank())
        wait_for_all()  # the file that makes a checkpoint whole is written after this, by the main process


def _size(batch: Batch) -> int:
    """Return the number of tokens that a micro-batch predicts, or the sum of their weights, which is whole."""
    return round(float(batch["weights"].sum())) if "weights" in batch else len(batch["targets"])


#: measures a model in training: named numbers for ``metrics.jsonl``
ModelMonitor = Callable[[TrainedModel], Mapping[str, float]]


class WatchedRun(Protocol):
    """The parts of a training run that `Watch` reads."""

    config: ModelConfig
    training: TrainConfig
    batches: TrainingBatches
    dev: list[Batch]
    monitor: ModelMonitor | None
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    trainer: LossTrainer
    callbacks: list[TrainerCallback]


class Watch(TrainerCallback):  # type: ignore[misc]
    """A callback that writes metrics and snapshots, decides when to save and to stop, and moves the progress bar.

    Metrics are written every ``eval_every`` steps, with every snapshot and after the last step. Only the main
    process measures and writes; its time limit, and a Ctrl-C that any process got, stop all processes.
    """

    def __init__(self, run: WatchedRun, folder: Path, bar: Meter, interrupted: threading.Event) -> None:
        self._run, self._folder, self._bar, self._interrupted = run, folder, bar, interrupted
        self._path = folder / "metrics.jsonl"
        self._snapshots = snapshots.schedule(run.training, run.batches.n_steps)
        self._note = ""
        self.rows: list[dict[str, object]] = []
        self._times: list[TimesRow] = []  #: of the rows
        self.stopped_early = False

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Read the metrics of earlier steps, or write the metrics of step 0.

        Raises:
            FloatingPointError: the dev loss is infinite or undefined.
        """
        self._clock = time.perf_counter()
        self._bar.skip(state.global_step)
        self._require_finite(self._begin(state) if is_main_process() else None, state)

    def _begin(self, state: TrainerState) -> float | None:
        if self._path.exists():
            remedy = "delete the unfinished folder, or train with --force"
            rows = [dict(row) for _, row in read_records(self._path, MetricsRow, remedy=remedy)]
            self.rows = [row for row in rows if row["step"] <= state.global_step]
            steps = {row["step"] for row in self.rows}
            self._times = [row for row in read_times(self._folder, remedy=remedy) if row["step"] in steps]
        snapshots.drop_later(self._folder, state.global_step)
        if self.rows:
            self._clock -= self._times[-1]["seconds"] if self._times else 0.0
            return None
        if self._snapshots:
            self._keep(state.global_step)
        return self._record(state, None, None)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        """Decide whether to log, to save, to stop."""
        config, step = self._run.training, state.global_step
        self._run.trainer.losses.steps += 1
        late = config.max_seconds is not None and is_main_process() and self._seconds() > config.max_seconds
        stop_requested = control.should_training_stop  # by a callback before this one
        late, interrupted = any_process(late or stop_requested, self._interrupted.is_set())
        if interrupted:
            self._interrupted.set()
        last = step >= self._run.batches.n_steps
        self.stopped_early = late and not last
        keep = bool(self._snapshots) and (step in self._snapshots or late)
        if keep and is_main_process():
            self._keep(step)
        every = config.eval_every * math.ceil(config.checkpoint_every / config.eval_every)
        control.should_log = last or late or keep or step % config.eval_every == 0
        control.should_save = (step % every == 0 and not last) or interrupted
        control.should_training_stop = last or late or interrupted
        self._bar.advance(1, self._note)
        return control

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: dict[str, float], **_: Any
    ) -> None:
        """Write a line of metrics.

        Raises:
            FloatingPointError: the dev loss is infinite or undefined; in all processes.
        """
        if "loss" in logs:
            loss = self._mean_loss()
            dev = self._record(state, loss, logs["learning_rate"]) if is_main_process() else None
            self._bar.advance(0, self._note)
            self._require_finite(dev, state)

    def _mean_loss(self) -> float:
        """Return the mean loss of the steps since the last line; the Trainer's own forgets stopped calls."""
        trainer = self._run.trainer
        losses, trainer.losses = trainer.losses, LossSum()
        return sum_of(losses.total) / losses.steps

    def _require_finite(self, dev: float | None, state: TrainerState) -> None:
        """Stop all processes if the dev loss of the main process has no perplexity; other processes pass None."""
        infinite = dev is not None and not _has_perplexity(dev)
        if any_process(infinite)[0]:
            value = f"{dev:.4g}" if infinite else "not finite"
            raise FloatingPointError(f"the dev loss is {value} at step {state.global_step}")

    def _seconds(self) -> float:
        return time.perf_counter() - self._clock

    def _keep(self, step: int) -> None:
        epoch, tokens = self._run.batches.progress(step)
        progress = snapshots.Progress(self._run.config.label, step, round(epoch, 4), tokens)
        snapshots.write_snapshot(self._folder, self._run.model, self._run.tokenizer, progress)

    def _record(self, state: TrainerState, loss: float | None, rate: float | None) -> float | None:
        """Write a line, unless its dev loss has no perplexity; return that loss."""
        with undisturbed(self._run.model):
            dev = self._dev_loss()
            if dev is not None and not _has_perplexity(dev):
                return dev
            monitored = self._monitor(state.global_step)
        epoch, tokens = self._run.batches.progress(state.global_step)
        row = {
            "step": state.global_step,
            "epoch": round(epoch, 4),
            "tokens": tokens,
            "loss": loss,
            "lr": rate,
            "dev_loss": dev,
            "dev_ppl": None if dev is None else math.exp(dev),
            **monitored,
        }
        displayed = {"loss": loss, "dev": dev, **monitored}
        self._note = " ".join(f"{name} {value:.3f}" for name, value in displayed.items() if value is not None)
        self.rows.append(row)
        self._times.append({"step": state.global_step, "seconds": round(self._seconds(), 3)})
        write_times(self._folder, self._times)  # first: every row of metrics has its time
        write_text(self._path, "".join(json.dumps(r, allow_nan=False) + "\n" for r in self.rows))
        if self._run.callbacks or self._run.training.report_to:  # the Trainer has shown them loss and learning rate
            more = {"tokens": tokens, "dev_loss": dev, "dev_ppl": row["dev_ppl"], **monitored}
            self._run.trainer.log({name: value for name, value in more.items() if value is not None})
        return dev

    def _monitor(self, step: int) -> dict[str, float]:
        if self._run.monitor is None:
            return {}
        live = as_language_model(self._run.model, self._run.tokenizer, self._run.config.label)
        values = dict(self._run.monitor(live))
        for name, value in values.items():
            if not math.isfinite(value):
                raise InputError(f"the oracle monitor measured {name} as {value} at step {step}")
        return values

    def _dev_loss(self) -> float | None:
        """Return the mean loss over the dev positions, nats; None without a dev split."""
        if not self._run.dev:
            return None
        model, total, count = self._run.model, 0.0, 0
        with torch.inference_mode():
            for batch in self._run.dev:
                batch = to_device(batch, model.device)
                losses = self._run.trainer.loss(model, batch, reduction="none")
                total += losses.sum(dtype=torch.float64).item()
                count += len(losses)
        return total / count


def _has_perplexity(loss: float) -> bool:
    """Return True if exp(loss) is a number."""
    return loss < math.log(sys.float_info.max)


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Set evaluation mode inside the block; afterwards restore the mode and all global random states."""
    training = model.training
    try:
        with kept_random_states():
            model.eval()
            yield
    finally:
        model.train(training)
