"""genlm-control: its potential ``ByteLLM``, which reads a subword model byte by byte, with beams of two widths.

python benchmarks/known_answers/run_genlm_control.py
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator

from genlm.backend import load_model_by_name
from genlm.bytes import BeamParams
from genlm.control import ByteLLM
from measured import Kit, Measured, main


async def scores(kit: Kit, width: int) -> list[float]:
    """Return the log probability of each line with its end, nats."""
    model = load_model_by_name(kit.twin("gpt2-pieces"), backend="hf")
    decoder = ByteLLM(model, BeamParams(K=width, eos_byte_strings=[b"<|endoftext|>"]))
    lines = [f" {line}".encode() for line in kit.lines("pieces")]  # the tokeniser marks a space before the text
    return [float(await decoder.complete([bytes([byte]) for byte in line])) for line in lines]


def measure(kit: Kit) -> Iterator[Measured]:
    for width in (10, 10_000):
        number = math.exp(-math.fsum(asyncio.run(scores(kit, width))) / kit.words("pieces"))
        yield Measured(f"complete, beam of {width}, per word", "gpt2-pieces", "pieces", number)


if __name__ == "__main__":
    main("genlm-control genlm-bytes transformers", measure)
