"""Long sentences: what they cost, and leaving them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truesource.cli.console import echo
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG

PATIENCE = 20.0  #: seconds that long sentences may take before they are announced


def at_most(sentences: list[list[str]], longest: int | None) -> tuple[list[list[str]], dict[str, int]]:
    """The sentences of at most ``longest`` words, and what the signature says of the others.

    Raises:
        InputError: all sentences are longer.
    """
    if longest is None:
        return sentences, {}
    kept = [sentence for sentence in sentences if len(sentence) <= longest]
    longer = len(sentences) - len(kept)
    if not kept:
        raise InputError(f"all {longer} sentences have more than {longest} words; increase --longest")
    if longer:
        echo(f"{longer} of {len(sentences)} sentences have more than {longest} words and are left out", err=True)
    return kept, {"longest": longest, "longer": longer}


def announce_long(
    pcfg: PCFG,
    sentences: list[list[str]],
    condition: LengthRange | None,
    *,
    masked: bool,
    dtype: DTypeLike = "float64",
) -> None:
    """Say on stderr how long the exact scores of long sentences will take, where that tries anybody's patience."""
    from truesource.evaluation.core.oracle import LONG, long_sentences

    cost = long_sentences(pcfg, sentences, condition, masked=masked, dtype=dtype)
    if cost is not None and cost.seconds > PATIENCE:
        echo(f"{cost}; --longest {LONG} leaves them out", err=True)
