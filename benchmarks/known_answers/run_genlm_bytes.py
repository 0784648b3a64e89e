"""genlm-bytes: sums over segmentations of the bytes of a text, with a beam that keeps all segmentations.

python benchmarks/known_answers/run_genlm_bytes.py
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

from genlm.backend import load_model_by_name
from genlm.bytes import BeamParams, ByteBeamState
from measured import Kit, Measured, main

END = 257  #: number of the end among bytes


async def sums(model: Any, line: str) -> tuple[float, float]:
    """Return the log probability of a line as a prefix, and as a whole text, nats."""
    beam = await ByteBeamState.initial(model, BeamParams(K=10_000, eos_byte_strings=[b"<|endoftext|>"], heal=False))
    total = 0.0
    for byte in f" {line}".encode():  # the tokeniser marks a space before the text
        total += float((await beam.logp_next())[byte])
        beam = await (beam.prune() << byte)
    return total, total + float((await beam.logp_next())[END])


async def scores(kit: Kit) -> list[tuple[float, float]]:
    """Return the sums of each line of the text."""
    model = load_model_by_name(kit.twin("gpt2-pieces"), backend="hf")
    return [await sums(model, line) for line in kit.lines("pieces")]


def measure(kit: Kit) -> Iterator[Measured]:
    for call, values in zip(("as prefixes", "with the end"), zip(*asyncio.run(scores(kit)), strict=True), strict=True):
        number = math.exp(-math.fsum(values) / kit.words("pieces"))
        yield Measured(f"bytes {call}, per word", "gpt2-pieces", "pieces", number)


if __name__ == "__main__":
    main("genlm-bytes transformers", measure)
