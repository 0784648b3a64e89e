"""The `transformers.Trainer` of a training run: the loss of a step, and checkpoints that are whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainerState

from truesource.lmtrain.data import Batch
from truesource.lmtrain.distributed import any_process, rank, total, wait_for_all, world_size
from truesource.lmtrain.loading import require_tensors
from truesource.lmtrain.resuming import STATE, LossSum, checkpoint_errors, require_optimizer_state, save_losses
from truesource.lmtrain.saving import disk_errors


class LossTrainer(Trainer):  # type: ignore[misc]
    """The loss of a step is the mean cross-entropy over what its micro-batches predict, in all processes."""

    loss: Any  #: `Predictor.loss`
    losses: LossSum  #: of the steps since the last line of metrics
    _predicted = 0  #: positions to predict in the running step

    def get_batch_samples(self, epoch_iterator: Iterator[Batch], num_batches: int, device: Any) -> tuple[Any, Any]:
        """The micro-batches of a step; what is to predict in them is counted."""
        batches, items = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._predicted = total(sum(len(batch["targets"]) for batch in batches))
        return batches, items

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Batch,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Nats per predicted token, weighted by the share of this micro-batch; not finite: the training stops.

        The Trainer and DDP average over micro-batches and processes, so the weights are 1 on average.
        """
        loss: Tensor = self.loss(model, inputs)
        finite = bool(torch.isfinite(loss))
        if any_process(not finite)[0]:
            value = "not finite in another process" if finite else str(loss.item())
            raise FloatingPointError(f"the training loss is {value} at step {self.state.global_step + 1}")
        self.losses.total += loss.item() * len(inputs["targets"]) / self._predicted
        group = self.args.gradient_accumulation_steps * world_size()
        return loss if group == 1 else loss * (len(inputs["targets"]) * group / self._predicted)

    def floating_point_ops(self, inputs: Batch) -> int:
        """Not counted: the Trainer would go through all parameters at every micro-batch, and nothing here reads it."""
        return 0

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        self._resumed = Path(resume_from_checkpoint)
        with checkpoint_errors(resume_from_checkpoint, STATE):
            TrainerState.load_from_json(str(self._resumed / STATE))
        with checkpoint_errors(resume_from_checkpoint, "model.safetensors"):
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Refuse what the library only warns of. Of tied weights a file holds one.

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
