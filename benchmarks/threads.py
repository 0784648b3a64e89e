"""Seconds of a training step with one and two threads, on quiet cores and beside busy processes: one table.

    python benchmarks/threads.py [--busy 1] [--steps 12] [--threads 1,2]

The networks are GPT-2 of growing size on embedded English (batches of 2,048 tokens). Each figure is the median of the
second half of the steps. Waiting threads soon sleep, as truesource sets it; ``GOMP_SPINCOUNT=300000`` before the call
shows what torch does of itself.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import torch
from beside import beside

from truesource import sample
from truesource.grammar.languages import load_language
from truesource.lmtrain import speed
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.device import computing
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.subwords import make_tokenizer
from truesource.lmtrain.training_request import splits_of
from truesource.lmtrain.training_run import TrainingRun

SHAPES = {(1, 64): 2, (2, 128): 4, (4, 192): 4, (6, 256): 8, (8, 448): 8}  #: heads by (layers, width)


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--busy", type=int, default=1, help="busy processes beside the training")
    arguments.add_argument("--steps", type=int, default=12)
    arguments.add_argument("--threads", default="1,2")
    options = arguments.parse_args()
    speed.STEPS = options.steps
    numbers = [int(number) for number in options.threads.split(",")]
    torch.set_num_threads(max(numbers))
    training = TrainConfig(max_steps=options.steps, batch_tokens=2048, warmup_steps=1)
    with tempfile.TemporaryDirectory() as folder:
        corpus = sample(load_language("english"), 4000, Path(folder) / "corpus", lengths="4..30", seed=1)
        train_split, dev_split = splits_of(corpus)
        print(f"{os.cpu_count()} cores; ms a step; busy: {options.busy} process(es) beside the training")
        heads = [f"{load} {number}" for load in ("quiet", "busy") for number in numbers]
        print("parameters", *(f"{head:>10}" for head in heads), sep="  ")
        for (layers, dim), n_heads in SHAPES.items():
            shape = model_settings("gpt2", layers=layers, dim=dim, heads=n_heads)
            tokenizer = make_tokenizer(shape, train_split, "causal")
            run = TrainingRun(shape, training, train_split, dev_split, 1, tokenizer=tokenizer)
            row = []
            for processes in (0, options.busy):
                for number in numbers:
                    with beside(processes), computing("cpu", threads=number):
                        row.append(speed.seconds_of_step(corpus, shape, training, seed=1, tokenizer=tokenizer))
            size = f"{run.model.num_parameters():>10,}"
            print(size, *(f"{1000 * value:10.1f}" for value in row), sep="  ", flush=True)


if __name__ == "__main__":
    main()
