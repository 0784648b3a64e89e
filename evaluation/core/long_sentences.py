"""The cost of the charts of long sentences, measured on their beginnings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from truesource.generator.abilities import require
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.process import Process
from truesource.grammar.support.threads import threads
from truesource.grammar.truth import Truth

LONG = 200  #: words above which a sentence is called long
PILOT = {1: 1000, 3: 100}  #: most words of a long sentence that are timed, by the power as which time grows


@dataclass(frozen=True)
class LongSentences:
    """The sentences of more than `LONG` words, and what their charts cost."""

    count: int  #: how many
    longest: int  #: words of the longest
    seconds: float  #: for all of them, on this machine, measured on the beginning of the longest
    memory: int  #: bytes of the charts of the longest

    def __str__(self) -> str:
        minutes = self.seconds / 60.0
        if minutes < 2.0:
            time_needed = f"{self.seconds:.0f} s"
        else:
            time_needed = f"{minutes:,.0f} min" if minutes < 120.0 else f"{minutes / 60.0:,.1f} h"
        have = "1 sentence has" if self.count == 1 else f"{self.count:,} sentences have"
        return (
            f"{have} more than {LONG} words, the longest {self.longest:,}: about {time_needed},"
            f" and {self.memory / 1e9:,.2g} GB of memory for the longest"
        )


def long_sentences(
    truth: Truth,
    sentences: Sequence[Sequence[str]],
    lengths: LengthRange | None = None,
    *,
    masked: bool = True,
    dtype: DTypeLike = np.float64,
) -> LongSentences | None:
    """Return the cost of the long sentences; None without long sentences, or if the truth needs no chart.

    Time grows as the cube of the length, and is measured on the first 100 words of the longest sentence. It grows about
    as the length if the grammar is linear or few cells of a chart are not zero, and is measured on the first 1000.
    """
    sizes = np.array([len(sentence) for sentence in sentences if len(sentence) > LONG], dtype=np.float64)
    if not sizes.size or isinstance(truth, Process):
        return None
    pcfg = require(truth, "parses", "a chart")
    charts = pcfg.exact.charts(dtype)
    words = pcfg.encode(max(sentences, key=len)[: max(PILOT.values())]).reshape(-1, 1)
    growth = charts.growth(words, lengths, outside=masked)
    words = words[: PILOT[growth]]
    charts.trial(words[:2], lengths, outside=masked)  # compiles the kernels
    began = time.perf_counter()
    charts.trial(words, lengths, outside=masked)
    each = time.perf_counter() - began
    relative = (sizes / len(words)) ** growth
    rounds = max(float(relative.sum()) / threads(), float(relative.max()))
    longest = int(sizes.max())
    owed = 1 if lengths is None else lengths.high
    return LongSentences(sizes.size, longest, each * rounds, charts.bytes_per_sentence(longest, owed, masked))
