"""Training a model on a corpus with `transformers.Trainer`: metrics, checkpoints, resuming, the finished folder."""

from __future__ import annotations

import json
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from grammar.errors import InputError
from grammar.files import atomic_path, digest_json, refuse_existing, write_json, write_text
from lmtrain.architectures import ARCHITECTURES
from lmtrain.card import model_card, versions
from lmtrain.config import ModelConfig, TrainConfig
from lmtrain.models import CausalModel, MaskedModel, load_model
from lmtrain.quiet import no_bars
from lmtrain.run import Run, disk_errors, is_main_process


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
    run = Run(model, training, train_split, dev_split, seed)
    checkpoint = _prepare(partial, request, force=force, resume=resume)
    with _interrupt_flag() as interrupted:
        try:
            run(partial, checkpoint, interrupted)
        except FloatingPointError as error:
            shutil.rmtree(partial, ignore_errors=True)  # it would only diverge again
            raise InputError(f"{error}; lower the learning rate or the gradient clip") from None
        except OSError as error:
            raise InputError(
                f"cannot write: {error.strerror or error}; free some space and run again to continue", partial
            ) from error
    if interrupted.is_set():
        raise KeyboardInterrupt
    if is_main_process():
        _finish(run, request, partial, out)
    run.trainer.accelerator.wait_for_everyone()
    return load_model(out)


def _splits(
    corpus: SentenceSource | Sequence[Sequence[str]],
) -> tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]]:
    read = getattr(corpus, "sentences", None)
    if read is None:
        return corpus, []  # type: ignore[return-value]
    available = getattr(corpus, "splits", None)
    if available is not None and "train" not in available:
        raise InputError(f"the corpus has no train split; it has {', '.join(available) or 'none'}")
    return read("train"), read("dev") if available is None or "dev" in available else []


def _digest(corpus: object, *splits: Sequence[Sequence[str]]) -> str:
    known = getattr(corpus, "digest", None)
    return (
        known if isinstance(known, str) else digest_json([[list(sentence) for sentence in split] for split in splits])
    )


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
        if not same and not force and any(not path.name.startswith(".") for path in partial.iterdir()):
            raise InputError(f"{partial} is an unfinished run of other settings; delete it or use --force")
        if is_main_process():
            shutil.rmtree(partial)
    if is_main_process():
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


def _finish(run: Run, request: dict[str, Any], partial: Path, out: Path) -> None:
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
    with atomic_path(out) as folder, no_bars(), disk_errors():
        run.model.save_pretrained(folder)
        run.tokenizer.save_pretrained(folder)
        shutil.copy(partial / "metrics.jsonl", folder / "metrics.jsonl")
        write_json(folder / "training.json", record)
        write_text(folder / "README.md", model_card(record))
    shutil.rmtree(partial)
