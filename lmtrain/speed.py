"""Speed of a training on this machine, measured on its first steps."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import TrainerCallback

from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.training import train

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

STEPS = 16  #: maximum number of timed steps
SECONDS = 20.0  #: time limit; no step is timed after it


class _StepTimer(TrainerCallback):  # type: ignore[misc]
    """The times at which steps end."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.ends: list[float] = []

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock."""
        self.begin = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note the time, and stop when the time limit is reached."""
        self.ends.append(time.perf_counter())
        if self.ends[-1] - self.begin > SECONDS:
            control.should_training_stop = True

    def seconds_of_step(self) -> float:
        """Return the median over the second half of the steps: the first ones also allocate memory and compile."""
        steps = np.diff([self.begin, *self.ends])
        return float(np.median(steps[len(steps) // 2 :]))


def seconds_of_step(
    corpus: Any, model: ModelConfig, training: TrainConfig, *, seed: int, tokenizer: PreTrainedTokenizerFast
) -> float:
    """Return the seconds that one step of a training takes on this machine; nothing of the training is kept.

    Args:
        corpus: a source of the split train.
        model: settings of a network.
        training: its training; at most `STEPS` steps of it are run.
        seed: of the training.
        tokenizer: of the model.
    """
    steps = min(STEPS, training.max_steps or STEPS)
    short = training.model_copy(
        update={"epochs": None, "max_steps": steps, "max_seconds": None, "eval_every": 10 * STEPS, "report_to": ()}
    )
    timer = _StepTimer()
    with TemporaryDirectory(prefix="truesource-speed-") as place:
        train(corpus, model, short, Path(place) / "model", seed=seed, tokenizer=tokenizer, callbacks=[timer])
    return timer.seconds_of_step()
