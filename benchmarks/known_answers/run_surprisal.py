"""surprisal: scores of the tokens of each line.

python benchmarks/known_answers/run_surprisal.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from measured import Kit, Measured, main
from surprisal import AutoHuggingFaceModel


def measure(kit: Kit) -> Iterator[Measured]:
    for twin, text in (("gpt2", "words-1"), ("llama", "words-1"), ("gpt2-pairs", "pairs"), ("gpt2-pieces", "pieces")):
        model = AutoHuggingFaceModel.from_pretrained(kit.twin(twin), model_class="causal")
        for begin in (True, False):
            scores = [model.surprise(line, use_bos_token=begin)[0].surprisals for line in kit.lines(text)]
            values = [float(value) for each in scores for value in each if not math.isnan(value)]
            call = f"surprise(use_bos_token={begin}), a line at a time"
            yield Measured(call, twin, text, math.exp(sum(values) / len(values)))


if __name__ == "__main__":
    main("surprisal transformers", measure)
