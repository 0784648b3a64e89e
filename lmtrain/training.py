"""Training a model on a corpus with `transformers.Trainer`: metrics, checkpoints, resuming, the finished folder."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import numpy as np
import torch
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
from grammar.files import atomic_path, digest_json, refuse_existing, write_json, write_text
from grammar.progress import Meter, meter
from lmtrain.architectures import ARCHITECTURES, Architecture
from lmtrain.card import generation_config, model_card, versions
from lmtrain.config import ModelConfig, TrainConfig
from lmtrain.data import Batch, Ints, TrainingBatches, dev_batches, to_device
from lmtrain.heads import Predictor, predictor
from lmtrain.models import CausalModel, MaskedModel, load_model
from lmtrain.scoring import batch_budget
from lmtrain.tokenizer import Vocabulary, build_tokenizer


class SentenceSource(Protocol):
    """What training reads of a corpus."""

    def sentences(self, split: str) -> Sequence[Sequence[str]]:
        """Tokens of the sentences of a split."""


def train(
    corpus: SentenceSource | Sequence[Sequence[str]],
    model: ModelConfig,
    training: TrainConfig,
    out: Path | str,
    *,
    seed: int,
    force: bool = False,
    resume: bool = True,
) -> CausalModel | MaskedModel:
    """Train a model and leave it in a folder that `transformers` can load.

    While it runs, everything stands in ``<out>.partial``: checkpoints and ``metrics.jsonl`` (per line:
    ``step``, ``epoch``, ``tokens`` seen, ``loss`` on the train split, ``lr``, ``dev_loss`` and
    ``dev_ppl``, ``seconds``; losses in nats per predicted token). ``out`` appears when it is finished, so
    an existing one survives a failure. After Ctrl-C, which waits for the running step and saves a
    checkpoint, or after a kill, the same call continues from the last checkpoint; on a CPU the
    weights come out equal to the last bit.

    Args:
        corpus: has ``sentences("train")`` and, if it has dev sentences, ``sentences("dev")``; or train
            sentences themselves.
        model: shape and vocabulary.
        training: duration, optimiser, batches.
        out: folder to make.
        seed: of weights, batches, masks and dropout, 0 or more.
        force: replace ``out``, and a partial run of other settings.
        resume: continue a partial run of the same settings; False: start again.

    Raises:
        InputError: there is nothing to train on, a sentence is longer than the model's positions, the
            architecture is unknown, ``out`` exists, or the loss becomes infinite or undefined.
    """
    if model.architecture not in ARCHITECTURES:
        raise InputError(f"unknown architecture {model.architecture!r}; there are {', '.join(sorted(ARCHITECTURES))}")
    out = Path(out)
    refuse_existing(out, force)
    train_split, dev_split = _splits(corpus)
    request = {
        "model": model.model_dump(mode="json"),
        "training": training.model_dump(mode="json"),
        "seed": seed,
        "corpus_digest": _digest(corpus, train_split, dev_split),
    }
    partial = out.with_name(f"{out.name}.partial")
    checkpoint = _prepare(partial, request, force=force, resume=resume)
    run = _Run(model, training, train_split, dev_split, partial, seed)
    with _interrupt_flag() as interrupted:
        try:
            run(checkpoint, interrupted)
        except FloatingPointError as error:
            shutil.rmtree(partial, ignore_errors=True)  # it would only diverge again
            raise InputError(f"{error}; lower the learning rate or the gradient clip") from None
        except OSError as error:
            raise InputError(f"cannot write: {error.strerror or error}; free some space and run again to continue", partial) from error
    if interrupted.is_set():
        raise KeyboardInterrupt
    if _is_main_process():
        _finish(run, request, partial, out)
    run.trainer.accelerator.wait_for_everyone()
    return load_model(out)


def _splits(corpus: SentenceSource | Sequence[Sequence[str]]) -> tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]]:
    read = getattr(corpus, "sentences", None)
    if read is None:
        return corpus, []  # type: ignore[return-value]
    available = getattr(corpus, "splits", None)
    if available is not None and "train" not in available:
        raise InputError(f"the corpus has no train split; it has {', '.join(available) or 'none'}")
    return read("train"), read("dev") if available is None or "dev" in available else []


def _digest(corpus: object, *splits: Sequence[Sequence[str]]) -> str:
    known = getattr(corpus, "digest", None)
    return known if isinstance(known, str) else digest_json([[list(sentence) for sentence in split] for split in splits])


def _is_main_process() -> bool:
    return os.environ.get("RANK", "0") == "0"


def _prepare(partial: Path, request: dict[str, Any], *, force: bool, resume: bool) -> Path | None:
    """Make or keep the partial folder; the checkpoint to continue from, if any."""
    record = partial / "request.json"
    if partial.exists():
        try:
            same = json.loads(record.read_text(encoding="utf-8")) == request
        except (OSError, ValueError):
            same = False
        if same and resume:
            return _last_checkpoint(partial / "checkpoints")
        if not same and not force:
            raise InputError(f"{partial} is an unfinished run of other settings; delete it or use --force")
        if _is_main_process():
            shutil.rmtree(partial)
    if _is_main_process():
        partial.mkdir(parents=True, exist_ok=True)
        write_json(record, request)
    return None


def _last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that was written to its end (its state file comes last)."""
    found: list[tuple[int, Path]] = []
    for state in folder.glob("checkpoint-*/trainer_state.json"):
        try:
            found.append((json.loads(state.read_text(encoding="utf-8"))["global_step"], state.parent))
        except (ValueError, KeyError):
            continue
    return max(found)[1] if found else None


@contextmanager
def _interrupt_flag() -> Iterator[threading.Event]:
    """Ctrl-C sets the flag, so that the running step can end; a second one stops at once."""
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if flag.is_set():
            raise KeyboardInterrupt
        flag.set()

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, before)


class _Run:
    """One training run: encodes the corpus, builds the model and the Trainer, and goes."""

    def __init__(
        self,
        model: ModelConfig,
        training: TrainConfig,
        train_split: Sequence[Sequence[str]],
        dev_split: Sequence[Sequence[str]],
        partial: Path,
        seed: int,
    ) -> None:
        self.config, self.training, self.partial = model, training, partial
        self.architecture: Architecture = ARCHITECTURES[model.architecture]
        objective = self.architecture.objective
        self.tokenizer: PreTrainedTokenizerFast = build_tokenizer(train_split, min_count=model.min_count, objective=objective)
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
        self.trainer = _Trainer(
            model=self.model,
            args=self._arguments(seed),
            train_dataset=self.batches,
            data_collator=_only,
            processing_class=self.tokenizer,
        )
        self.trainer.remove_callback(PrinterCallback)

    def _encode(self, split: Sequence[Sequence[str]], name: str) -> list[Ints]:
        longest = self.config.max_positions - (1 if self.architecture.objective == "causal" else 2)
        for number, sentence in enumerate(split):
            if len(sentence) > longest:
                raise InputError(
                    f"sentence {number + 1} of the {name} split has {len(sentence)} words, the model takes {longest};"
                    " raise max_positions"
                )
        return [row for row in self.vocabulary.encode(split) if len(row)]

    def _arguments(self, seed: int) -> TrainingArguments:
        """Our batches are made beforehand, so the Trainer's batch is one of ours and its only epoch the whole run."""
        c = self.training
        return TrainingArguments(
            output_dir=str(self.partial / "checkpoints"),
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
            seed=seed,
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

    def __call__(self, checkpoint: Path | None, interrupted: threading.Event) -> None:
        with predictor(self.model, self.architecture.head) as predict, meter(f"train {self.config.label}", self.batches.n_steps) as bar:
            options = {"use_cache": False} if self.architecture.objective == "causal" else {}
            self.trainer.logits = lambda model, batch: predict(model, batch, **options)
            self.watch = _Watch(self, bar, interrupted)
            self.trainer.add_callback(self.watch)
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


class _Trainer(Trainer):  # type: ignore[misc]
    """The loss is the mean cross-entropy over the positions that our batches name."""

    logits: Any

    def compute_loss(
        self, model: nn.Module, inputs: Batch, return_outputs: bool = False, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        loss = functional.cross_entropy(self.logits(model, inputs).float(), inputs["targets"])
        if not torch.isfinite(loss):
            raise FloatingPointError(f"the training loss is {loss.item()} at step {self.state.global_step + 1}")
        return loss


class _Watch(TrainerCallback):  # type: ignore[misc]
    """Writes the metrics, decides when to save and when to stop, moves the progress bar."""

    def __init__(self, run: _Run, bar: Meter, interrupted: threading.Event) -> None:
        self._run, self._bar, self._interrupted = run, bar, interrupted
        self._path = run.partial / "metrics.jsonl"
        self._note = ""
        self.rows: list[dict[str, Any]] = []
        self.stopped_early = False

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
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
        if _is_main_process():
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
                losses = functional.cross_entropy(self._run.trainer.logits(model, batch).float(), batch["targets"], reduction="none")
                total += losses.sum(dtype=torch.float64).item()
                count += len(losses)
        model.train(was_training)
        return total / count


def _finish(run: _Run, request: dict[str, Any], partial: Path, out: Path) -> None:
    """Write the finished folder, then drop the partial one."""
    last = run.watch.rows[-1]
    record = {
        **request,
        "name": run.config.label,
        "objective": run.architecture.objective,
        "parameters": run.model.num_parameters(),
        "vocabulary": len(run.vocabulary.words),
        "steps": last["step"],
        "planned_steps": run.batches.n_steps,
        "stopped_early": run.watch.stopped_early,
        "final": last,
        "versions": versions(),
    }
    with atomic_path(out) as folder:
        run.model.save_pretrained(folder)
        run.tokenizer.save_pretrained(folder)
        shutil.copy(partial / "metrics.jsonl", folder / "metrics.jsonl")
        write_json(folder / "training.json", record)
        write_text(folder / "README.md", model_card(record))
    shutil.rmtree(partial)
