"""Models of pieces as `LanguageModel`s of words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from generator.frame import ScoringFrame
from generator.language_model import LogDistributions, Objective, TokenScores
from grammar.errors import InputError
from lmtrain.data import Batch
from lmtrain.decoding.decode import Alphabet
from lmtrain.decoding.network import NetworkStepper
from lmtrain.heads import predictor
from lmtrain.pieces.cutter import Cutter
from lmtrain.pieces.scoring import OpenPredictor, score_causal_words, score_masked_words


class _PieceModel:
    """What both kinds share."""

    objective: Objective

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        cutter: Cutter,
        name: str,
        *,
        head: str | None = None,
        longest: int | None = None,
    ) -> None:
        """Join a network and its tokeniser.

        Args:
            model: returns ``logits`` (B, L, V).
            tokenizer: as saved beside it.
            cutter: the same tokeniser as scoring sees it.
            name: in tables.
            head: attribute of the output layer, run only where something is predicted; None: run everywhere.
            longest: tokens that the network takes, those around the text included; None: any number.

        Raises:
            InputError: the tokeniser has numbers that the network has no vectors for.
        """
        words = model.get_input_embeddings().weight.shape[0]
        largest = max(tokenizer.get_vocab().values())
        if largest >= words:
            raise InputError(
                f"the tokeniser does not belong to this model: it has token numbers up to {largest},"
                f" the model {words} word vectors"
            )
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.cutter = cutter
        self.name = name
        self.longest = longest
        self._predictor: OpenPredictor = _everywhere if head is None else lambda model: _at_head(model, head)

    @property
    def vocabulary(self) -> None:
        """None: pieces spell any word of the language."""
        return None

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Refused: the words are not a list that could be gone through.

        Raises:
            InputError: always.
        """
        self._refuse()

    def next_token(self, prefix: Sequence[str]) -> NoReturn:
        """Refused, like `distributions`.

        Raises:
            InputError: always.
        """
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InputError(
            f"{self.name} cuts words into pieces and has no list of words, so it has no distribution over words;"
            " it can be scored"
        )


class CausalPieceModel(_PieceModel):
    """A model of each piece given those before it, as a model of words; see `lmtrain.pieces.scoring`."""

    objective: Objective = "causal"

    @property
    def reading(self) -> str:
        """How words are scored, for signatures: the correction, and the tokens around a text, by number."""
        before, after, _, _ = self.cutter.marks
        corrected = "pieces" if self.cutter.begins is None else "pieces/bow"
        return f"{corrected}/bos={_numbers(before)}/eos={_numbers(after)}"

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Log probability of every word and sentence end that ``frame`` counts.

        The softmax is over all the model emits. A sentence with a word that the pieces cannot spell is
        ``impossible``; a frame that skips unknown words leaves out that word only.

        Raises:
            InputError: a sentence is longer than the model's positions, the frame counts the first word or the
                end and there is no token for it, or a word's pieces do not show where it begins.
        """
        return score_causal_words(self.model, self._predictor, self.cutter, sentences, frame, longest=self.longest)

    @property
    def alphabet(self) -> Alphabet:
        """Its pieces, for `lmtrain.decoding`; sentences are drawn piece by piece and spelt by the tokeniser.

        Raises:
            InputError: the tokeniser has no token for the beginning or the end of a text.
        """
        before, after, _, _ = self.cutter.marks
        if not before or not after:
            raise InputError(f"{self.name} has no token to begin or to end a sentence with, so none can be drawn")
        size = int(self.model.get_input_embeddings().weight.shape[0])
        sayable = set(self.tokenizer.get_vocab().values()) - set(self.tokenizer.all_special_ids)
        sayable |= {after[0], self.tokenizer.unk_token_id}
        return Alphabet(
            size=size,
            eos=after[0],
            never=tuple(i for i in range(size) if i not in sayable),
            longest=None if self.longest is None else self.longest - len(before),
            spell=lambda numbers: self.tokenizer.decode(list(numbers)).split(),
        )

    def stepper(self) -> NetworkStepper:
        """Log probabilities of its next piece, for one batch of text at a time."""
        return NetworkStepper(self.model, self.cutter.marks.before[0])


class MaskedPieceModel(_PieceModel):
    """A model of pieces given all others, as a model of words; see `lmtrain.pieces.scoring`."""

    objective: Objective = "masked"

    @property
    def reading(self) -> str:
        """How words are scored, for signatures: the variant, and the tokens around a text, by number."""
        before, after, _, _ = self.cutter.marks
        return f"pieces/pll-word-l2r/before={_numbers(before)}/after={_numbers(after)}"

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Pseudo-log-likelihood of every word that ``frame`` counts, left to right within the word.

        Words that the pieces cannot spell are treated as by `CausalPieceModel.score`.

        Raises:
            InputError: a sentence is longer than the model's positions, or the tokeniser has no mask.
        """
        return score_masked_words(self.model, self._predictor, self.cutter, sentences, frame, longest=self.longest)


def _numbers(tokens: tuple[int, ...]) -> str:
    return "+".join(map(str, tokens)) or "none"


@contextmanager
def _at_head(model: nn.Module, head: str) -> Iterator[Callable[[nn.Module, Batch], Tensor]]:
    options = _options(model)
    with predictor(model, head) as predict:
        yield lambda network, batch: predict(network, batch, **options)


@contextmanager
def _everywhere(model: nn.Module) -> Iterator[Callable[[nn.Module, Batch], Tensor]]:
    options = _options(model)

    def predict(network: nn.Module, batch: Batch) -> Tensor:
        inputs = {key: value for key, value in batch.items() if key not in ("positions", "targets")}
        logits: Tensor = network(**inputs, **options).logits
        return logits.flatten(0, 1).index_select(0, batch["positions"])

    yield predict


def _options(model: nn.Module) -> dict[str, bool]:
    return {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}
