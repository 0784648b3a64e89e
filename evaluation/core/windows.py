"""The best predictor that sees k words, as a language model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, cast

import numpy as np

from truesource.evaluation.core.exact_bound import bound_of_rows
from truesource.evaluation.core.oracle import Oracle, condition_part
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import transform_parts
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.causal import ExactCausal
from truesource.grammar.inference.next_token import NextToken
from truesource.grammar.inference.windows import PlacedWindows, WindowPredictor, Windows
from truesource.grammar.pcfg import PCFG
from truesource.grammar.pieces.inference import PieceInference
from truesource.grammar.pieces.truth import TokenisedTruth
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.grammar.inference.batch import Batch, Distributions
    from truesource.grammar.truth import Truth


class BestWithin(Oracle):
    """The best causal predictor that sees k words before a token, or fewer up to the beginning of the sentence.

    No model with k words of context has a smaller expected loss, be it an n-gram model of order k+1 or a network with a
    window of k words. A network that also knows the position of a token is compared with ``placed=True``.

    Args:
        pcfg: the grammar that the corpus was drawn from.
        seen: k, 0 or more words; 0 expects each token as often as it occurs.
        placed: the predictor knows how many words precede the token, too; costs more.
        lengths: the corpus's length condition.
        vocabulary: as of `truesource.evaluation.core.oracle.Oracle`: all other words read ``<unk>``.
        collapse: as of `Oracle`; False: contexts keep every word.

    Raises:
        InputError: k is negative; as `Oracle`, or `truesource.grammar.inference.windows.Windows`.
    """

    def __init__(
        self,
        pcfg: PCFG,
        seen: int,
        *,
        placed: bool = False,
        lengths: LengthRange | None = None,
        vocabulary: Iterable[str] | None = None,
        collapse: bool = True,
    ) -> None:
        if seen < 0:
            raise InputError(f"a predictor sees 0 words or more, got {seen}")
        super().__init__(pcfg, "causal", lengths=lengths, vocabulary=vocabulary, collapse=collapse)
        self.seen, self.placed = seen, placed
        self.name = window_name(seen)

    @cached_property
    def predictor(self) -> WindowPredictor:
        """The predictor for the collapsed language, with any number of words."""
        return (PlacedWindows if self.placed else Windows)(self.grammar, self.lengths)

    def with_words(self, seen: int) -> BestWithin:
        """Return the predictor that sees another number of words, sharing the parts that do not depend on it."""
        other = copy(self)
        other.__dict__.update(predictor=self.predictor, seen=seen, name=window_name(seen))
        return other

    def _rows(self, seen: Sequence[Sequence[str]], text: Sequence[Sequence[str]]) -> list[FloatArray]:
        return self.predictor.log_probs(seen, self.seen)

    def blocks(self, batch: Batch) -> Iterator[Distributions]:
        """Yield the distributions of one of `batches`, position by position, over the words of `language`."""
        return self.predictor.blocks(batch, self.seen)


class PiecesWithin(Oracle):
    """The best causal predictor of pieces that sees k complete words and the pieces of the current word.

    The pieces of a word together have its probability given the k words.

    Args:
        language: of pieces.
        within: the predictor of its words.
    """

    def __init__(self, language: TokenisedTruth, within: BestWithin) -> None:
        super().__init__(language, "causal", lengths=within.lengths)
        self._pieces = PieceInference(cast("Truth", _WindowLanguage(within)), language.segmentation)

    def blocks(self, batch: Batch) -> Iterator[Distributions]:
        """Yield the distributions of one of `batches`, position by position, over pieces and the end."""
        return self._pieces.next_token_blocks(batch)


class _WindowLanguage:
    """The next words that `BestWithin` predicts: the part of a `Truth` that next pieces follow from."""

    blocks_beside = ExactCausal.blocks_beside

    def __init__(self, within: BestWithin) -> None:
        self._within = within
        self.exact = self

    def causal_batches(self, sentences: Sequence[Sequence[str]], *_: object, **__: object) -> list[Batch]:
        """Return sentences in batches."""
        return self._within.batches(sentences)

    def next_token_blocks(self, batch: Batch, *_: object, first: int = 0, **__: object) -> Iterator[Distributions]:
        """Yield the distributions of a batch from position ``first`` on."""
        return islice(self._within.blocks(batch), first, None)

    def next_token(self, *_: object) -> NextToken:
        """Return the distribution of the first word."""
        words = self._within.language.vocabulary
        first = next(self._within.blocks(self._within.batches([words[:1]])[0])).probability[0]
        return NextToken(words, first[:-1], float(first[-1]), np.empty(0))


def window_name(seen: int) -> str:
    """Return what a predictor sees: ``no word``, ``1 word``, ``2 words``."""
    return f"{seen or 'no'} word{'s' * (seen > 1)}"


def window_bounds(setting: Setting, possible: Sequence[Sequence[str]], number: int) -> list[Score]:
    """Return perplexities of the best predictors that see 0 to ``number`` - 1 words: ``bound_0_words`` and so on.

    They exclude no sentences of earlier splits.

    Args:
        setting: text and truth.
        possible: the sentences of the text that the truth can make.
        number: how many.
    """
    pcfg, lengths = setting.grammar, setting.lengths
    windows, scores = Windows(pcfg, lengths), []
    for seen in range(number):
        bound = bound_of_rows(
            windows.log_probs(possible, seen),
            possible,
            "causal",
            frame=ScoringFrame(),
            vocabulary=None,
            seed=setting.seed,
            condition=condition_part("causal", lengths),
            impossible=len(setting.sentences) - len(possible),
            excluded=setting.excluded,
            corrected=False,
            parts={
                **transform_parts(pcfg, setting.transform, "causal"),
                **setting.left_out,
                "data": setting.digest,
                "grammar": pcfg.identity,
                "seen": seen,
            },
        )
        scores.append(replace(bound, name=f"bound_{seen}_words"))
    return scores


def window_lines(setting: Setting, number: int) -> tuple[list[Score], float]:
    """Return `window_bounds` on the sentences that the truth can make, and the perplexity of the truth itself on these.

    Both are over all words of the grammar, ends of sentences included, and exclude no sentences of earlier splits.
    """
    rows = setting.grammar.exact.causal_log_probs(setting.sentences, setting.lengths)
    possible = [i for i, row in enumerate(rows) if np.isfinite(row).all()]
    if not possible:
        raise InputError("the grammar can make none of the sentences, so there are no lines")
    bound = float(np.exp(-np.concatenate([rows[i] for i in possible]).mean()))
    return window_bounds(setting, [setting.sentences[i] for i in possible], number), bound
