"""Full distributions of many sentences, sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Distributions
from truesource.grammar.inference.distributions import masked_blocks, next_token_distributions
from truesource.grammar.inference.exact import Exact, Variant
from truesource.grammar.support.arrays import FloatArray


class Row(NamedTuple):
    """The distribution at one position."""

    probability: FloatArray
    possible: bool
    observed: int
    log_observed: float


def next_rows(exact: Exact, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None) -> list[list[Row]]:
    """Those of the next token, the end of each sentence included."""
    return _rows(next_token_distributions(exact, sentences, lambda block: block, lengths), len(sentences))


def masked_rows(exact: Exact, sentences: Sequence[Sequence[str]], variant: Variant = "default") -> list[list[Row]]:
    """Those of each word given the others."""
    batches = exact.charts().batches(sentences, outside=True)
    return _rows((b for batch in batches for b in masked_blocks(exact, batch, variant=variant)), len(sentences))


def _rows(blocks: Iterator[Distributions], n: int) -> list[list[Row]]:
    found: list[dict[int, Row]] = [{} for _ in range(n)]
    for block in blocks:
        columns = (block.probability, block.possible, block.observed, block.log_observed)
        for row, members in enumerate(block.members):
            for i in members:
                found[i][block.position] = Row(*(column[row] for column in columns))
    return [[rows[i] for i in range(len(rows))] for rows in found]
