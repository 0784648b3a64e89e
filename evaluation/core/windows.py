"""The best predictor that sees k words, as a language model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from truesource.evaluation.core.oracle import Oracle
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.windows import Windows
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.grammar.inference.batch import Batch
    from truesource.grammar.inference.distributions import Distributions


class BestWithin(Oracle):
    """The best causal predictor that sees k words and the beginning of a sentence, but not how far it is.

    No model with k words of context has a smaller expected loss: an n-gram model of order k+1, a network with a window
    of k words. It is the truth as soon as the beginning is among the k words.

    Args:
        pcfg: the grammar that the corpus was drawn from.
        seen: k, 0 or more words; 0 expects each token as often as it occurs.
        lengths: the corpus's length condition.
        vocabulary: as of `truesource.evaluation.core.oracle.Oracle`: all other words read ``<unk>``.

    Raises:
        InputError: k is negative; as `Oracle`, or `truesource.grammar.inference.windows.Windows`.
    """

    def __init__(
        self,
        pcfg: PCFG,
        seen: int,
        *,
        lengths: LengthRange | None = None,
        vocabulary: Iterable[str] | None = None,
    ) -> None:
        if seen < 0:
            raise InputError(f"a predictor sees 0 words or more, got {seen}")
        super().__init__(pcfg, "causal", lengths=lengths, vocabulary=vocabulary)
        self.seen = seen
        self.name = window_name(seen)

    @cached_property
    def windows(self) -> Windows:
        """Exact statistics of strings, of the collapsed language."""
        return Windows(self.language, self.lengths)

    def _rows(self, seen: Sequence[Sequence[str]]) -> list[FloatArray]:
        return self.windows.log_probs(seen, self.seen)

    def blocks(self, batch: Batch) -> Iterator[Distributions]:
        """The distributions of one of `batches`, position by position, over the words of `language`."""
        return self.windows.blocks(batch, self.seen)


def window_name(seen: int) -> str:
    """``no word``, ``1 word``, ``2 words``: what a predictor sees."""
    return f"{seen or 'no'} word{'s' * (seen > 1)}"
