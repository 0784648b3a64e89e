"""transformers: the recipe of its page "Perplexity of fixed-length models", and the loss of a batch.

python benchmarks/known_answers/run_transformers.py

The page subtracts one token from each window, as the first target of a window has no context in it. Windows with
overlap lose no target, so weights of windows are a little off; the third call divides by the targets that are scored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from measured import Kit, Measured, main
from transformers import AutoModelForCausalLM, AutoTokenizer


def recipe(model: Any, ids: torch.Tensor, stride: int, *, exact: bool) -> float:
    """Return the perplexity of a text by windows with a stride.

    Args:
        model: of transformers.
        ids: (1, T).
        stride: tokens from one window to the next.
        exact: weigh a window by its scored targets, instead of by its targets minus 1.
    """
    length, size = model.config.n_positions, ids.size(1)
    total, count, previous = 0.0, 0, 0
    for begin in range(0, size, stride):
        end = min(begin + length, size)
        part = ids[:, begin:end]
        targets = part.clone()
        targets[:, : -(end - previous)] = -100
        with torch.inference_mode():
            loss = float(model(part, labels=targets).loss)
        scored = int((targets[:, 1:] != -100).sum()) if exact else int((targets != -100).sum()) - 1
        total, count, previous = total + loss * scored, count + scored, end
        if end == size:
            break
    return math.exp(total / count)


def measure(kit: Kit) -> Iterator[Measured]:
    tokenizer = AutoTokenizer.from_pretrained(kit.twin("gpt2-window"))
    model = AutoModelForCausalLM.from_pretrained(kit.twin("gpt2-window")).eval()
    ids = tokenizer(kit.lines("long")[0], return_tensors="pt").input_ids
    for stride in (16, 32):
        for exact in (False, True):
            call = f"page, stride {stride} of 32" + (", weighted by scored targets" if exact else "")
            yield Measured(call, "gpt2-window", "long", recipe(model, ids, stride, exact=exact))
    for twin in ("gpt2", "llama"):
        tokenizer = AutoTokenizer.from_pretrained(kit.twin(twin))
        model = AutoModelForCausalLM.from_pretrained(kit.twin(twin)).eval()
        batch = tokenizer(kit.lines("words-1"), padding=True, return_tensors="pt")
        for ignored in (True, False):
            labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100) if ignored else batch.input_ids
            with torch.inference_mode():
                loss = float(model(**batch, labels=labels).loss)
            call = f"exp(loss) of a padded batch, labels {'-100 at padding' if ignored else '= input_ids'}"
            yield Measured(call, twin, "words-1", math.exp(loss))


if __name__ == "__main__":
    main("transformers torch", measure)
