"""Truths and sentences in the pieces of a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from truesource.generator.arguments import as_truth
from truesource.grammar.sentences import takes_sentences

if TYPE_CHECKING:
    from truesource.grammar.pieces.truth import TokenisedTruth
    from truesource.grammar.truth import Truth
    from truesource.lmtrain.pieces.segmentation import PieceCutter


class CutsWords:
    """The methods of a model of pieces that cut words as its tokeniser does."""

    tokenizer: Any

    @cached_property
    def _cutter(self) -> PieceCutter:
        from truesource.lmtrain.pieces.segmentation import PieceCutter  # torch

        return PieceCutter(self.tokenizer)

    @property
    def token_names(self) -> tuple[str, ...]:
        """(V,) the name of each token; ``<unk>`` for unknown characters, empty for numbers without a token."""
        return self._cutter.names

    def tokenised(self, truth: Truth) -> TokenisedTruth:
        """Return a language with its words cut into pieces of this model.

        Raises:
            InputError: as `truesource.lmtrain.pieces.segmentation.cut_language`.
        """
        return self._cutter.language(as_truth(truth))

    @takes_sentences
    def cut(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the pieces of sentences of words, by name.

        Raises:
            InputError: a word has no pieces of its own.
        """
        return self._cutter.cut(sentences)
