"""Models of objects in memory: a network of transformers with its tokeniser, a module with its words, a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError, extras_for
from truesource.lmtrain.function_model import FunctionModel

if TYPE_CHECKING:
    import torch

    from truesource.generator.language_model import LanguageModel
    from truesource.lmtrain.module_functions import WordColumns
    from truesource.lmtrain.word_vocabulary import WholeWords, WordVocabulary

UNK = "<unk>"


@dataclass(frozen=True)
class WordTokens:
    """Tokens of a list of words: their numbers in the list, and a last one both before a sentence and at its end."""

    words: tuple[str, ...]  #: ``<unk>`` among them is the token of all others
    tokens: IntArray  #: (V+1,) of each word, and of the end
    before: int  #: token before a sentence
    size: int

    @classmethod
    def of_words(cls, words: Sequence[str]) -> WordTokens:
        """Number words by their order."""
        end = len(words)
        return cls(tuple(words), np.arange(end + 1), end, end + 1)

    @classmethod
    def of_tokeniser(cls, vocabulary: WordVocabulary | WholeWords) -> WordTokens:
        """Take the numbers of a tokeniser of words."""
        words, numbers = [*vocabulary.words], [vocabulary.ids[word] for word in vocabulary.words]
        if vocabulary.unk >= 0:
            words, numbers = [*words, UNK], [*numbers, vocabulary.unk]
        tokens = np.array([*numbers, vocabulary.eos], dtype=np.int64)
        return cls(tuple(words), tokens, vocabulary.bos, len(vocabulary))

    @property
    def columns(self) -> tuple[tuple[str, ...], IntArray]:
        """Words and tokens, see `WordColumns`."""
        return self.words, self.tokens

    def inputs(self, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
        """Return ``<bos> w1 .. wn`` of each sentence, padded, (B, L).

        Raises:
            InputError: a word has no token, and unknown words have no token.
        """
        import torch

        from truesource.lmtrain.data import pack

        numbers = dict(zip(self.words, self.tokens.tolist(), strict=False))
        unknown = numbers.get(UNK)
        try:
            rows = [
                np.array([numbers[word] if unknown is None else numbers.get(word, unknown) for word in sentence], int)
                for sentence in sentences
            ]
        except KeyError as error:
            raise InputError(f"the word {error} has no token") from error
        return torch.from_numpy(pack(rows, int(self.tokens[-1]), before=self.before)[0])


def model_of(source: Any, vocabulary: Any, name: str | None = None) -> LanguageModel:
    """Make a model of an object and the vocabulary that it is over.

    Args:
        source: a causal or masked model of transformers, which is used as it is, in evaluation mode; a
            ``torch.nn.Module`` from ``input_ids`` (B, L) to logits (B, L, E); or a function from a list of sentences to
            one array of log probabilities each, as `FunctionModel` takes.
        vocabulary: the fast tokeniser of the network; of a module, one of whole words, the words in the order of their
            token numbers, of which the next number is both the token before a sentence and the end, or
            `truesource.lmtrain.truth.ExactTargets`; of a function, its words.
        name: in tables; None: the name of the class or function.

    Raises:
        InputError: the object and the vocabulary do not go together (code ``not-a-model`` or ``vocabulary``).
    """
    if hasattr(source, "save_pretrained") and hasattr(source, "config"):
        if not hasattr(vocabulary, "backend_tokenizer"):
            raise InputError(
                f"{type(source).__name__} needs its fast tokeniser, got {type(vocabulary).__name__}", code="vocabulary"
            )
        with extras_for("a model of transformers"):
            from truesource.lmtrain.trained_models import model_of_network
        return model_of_network(source, vocabulary, name or type(source).__name__)
    if hasattr(source, "parameters") and hasattr(source, "forward"):
        return FunctionModel.from_module(source, _columns(vocabulary), name=name)
    if callable(source):
        return _model_of_function(source, vocabulary, name)
    raise InputError(f"expecting a network, a module or a function, got {type(source).__name__}", code="not-a-model")


def is_pair(given: Any) -> bool:
    """Return True for a model and its vocabulary, as `model_of` takes: a pair whose second is no model."""
    if not isinstance(given, tuple) or len(given) != 2:
        return False
    source, vocabulary = given
    if isinstance(source, str) or hasattr(source, "score") or not callable(source):
        return False
    words = isinstance(vocabulary, list | tuple) and all(isinstance(word, str) for word in vocabulary)
    return words or hasattr(vocabulary, "backend_tokenizer") or hasattr(vocabulary, "columns")


def _columns(vocabulary: Any) -> WordColumns:
    if hasattr(vocabulary, "columns") and hasattr(vocabulary, "inputs"):
        columns: WordColumns = vocabulary
        return columns
    if hasattr(vocabulary, "backend_tokenizer"):
        from truesource.lmtrain.subword_vocabulary import is_ours, is_subword
        from truesource.lmtrain.word_vocabulary import WordVocabulary, whole_words

        ours = is_ours(vocabulary) and not is_subword(vocabulary)
        words = WordVocabulary(vocabulary) if ours else whole_words(vocabulary, "causal")
        if words is None:
            raise InputError(
                "the tokeniser of a module has whole words; a network of pieces is one of transformers, with its"
                " tokeniser",
                code="vocabulary",
            )
        return WordTokens.of_tokeniser(words)
    if isinstance(vocabulary, list | tuple):
        from truesource.generator.model_checks import require_words

        require_words(vocabulary, "the module")
        return WordTokens.of_words(vocabulary)
    raise InputError(
        f"the vocabulary of a module is a tokeniser or a list of words, got {type(vocabulary).__name__}",
        code="vocabulary",
    )


def _model_of_function(source: Callable[..., Any], vocabulary: Any, name: str | None) -> FunctionModel:
    called = name or str(getattr(source, "__name__", type(source).__name__))
    return FunctionModel(source, vocabulary=vocabulary, name=called)
