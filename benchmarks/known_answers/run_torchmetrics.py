"""torchmetrics: Perplexity on a batch with padding, with and without ignore_index.

python benchmarks/known_answers/run_torchmetrics.py
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from measured import Kit, Measured, main
from torchmetrics.text import Perplexity
from transformers import AutoModelForCausalLM, AutoTokenizer


def measure(kit: Kit) -> Iterator[Measured]:
    twin, text = "llama", "words-1"
    tokenizer = AutoTokenizer.from_pretrained(kit.twin(twin))
    model = AutoModelForCausalLM.from_pretrained(kit.twin(twin)).eval()
    batch = tokenizer([f"{line} {tokenizer.eos_token}" for line in kit.lines(text)], padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = model(**batch).logits
    for ignored in (tokenizer.pad_token_id, None):
        for call, predictions, target in (
            ("shifted", logits[:, :-1], batch.input_ids[:, 1:]),
            ("not shifted", logits, batch.input_ids),
        ):
            metric = Perplexity(ignore_index=ignored)
            metric.update(predictions, target)
            name = "no ignore_index" if ignored is None else "ignore_index=pad"
            yield Measured(f"Perplexity, {call} by the caller, {name}", twin, text, float(metric.compute()))


if __name__ == "__main__":
    main("torchmetrics transformers", measure)
