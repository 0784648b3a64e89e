"""A language model around a function, for models behind an API, in another process or in another framework."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from truesource.generator.foreign_code import code_errors, file_of
from truesource.generator.language_model import (
    EVERY_POSITION,
    LogDistributions,
    ScoringFrame,
    TokenScores,
    assemble_scores,
    check_sentences,
    model_line,
    real_numbers,
)
from truesource.generator.model_checks import checked_table, require_log_probability, require_words, shape_of
from truesource.generator.objectives import Objective
from truesource.grammar.sentences import as_sentences
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    import torch

    from truesource.lmtrain.decoding.alphabet import Alphabet
    from truesource.lmtrain.decoding.steppers import PrefixStepper
    from truesource.lmtrain.module_functions import WordColumns

Sentences = Sequence[Sequence[str]]
#: from sentences (lists of words) to one array per sentence
Function = Callable[[list[list[str]]], Sequence[Any]]


class FunctionModel:
    """A `LanguageModel` whose numbers come from a custom function; it needs neither torch nor files.

    >>> import numpy as np
    >>> def uniform(sentences):
    ...     return [np.full(len(sentence) + 1, -np.log(3)) for sentence in sentences]
    >>> model = FunctionModel(uniform, vocabulary=["a", "b"], name="uniform")
    >>> model.score([["a", "b"]], ScoringFrame()).log_prob.round(2)
    array([-1.1, -1.1, -1.1])
    """

    of_ones_own = True  #: for refusals, see `truesource.generator.abilities`

    def __init__(
        self,
        log_probs: Function | None = None,
        *,
        vocabulary: Sequence[str] | None,
        name: str = "function",
        objective: Objective = "causal",
        distributions: Function | None = None,
        unchecked: bool = False,
    ) -> None:
        """Join functions and the words that they tell apart.

        Args:
            log_probs: from a list of sentences (lists of words, none empty unless the text has empty sentences) to
                one array per sentence, nats: of n words (n+1,) log probabilities given the words before, the last one
                of the end of the sentence (causal); or (n,) given all other words (masked). -inf: impossible. None:
                read off ``distributions``.
            vocabulary: the words that the model tells apart; all others are ``<unk>``, and the function should give
                such a word the probability of all unknown words together. None: it tells all words apart.
            name: in tables.
            objective: ``"causal"`` or ``"masked"``.
            distributions: from a list of sentences to one array per sentence, nats: (n+1, V+2) of a causal model, a
                row for each position and the end, a column for each word of ``vocabulary``, then ``<unk>``, then the
                end of the sentence; (n, V+1) of a masked one, without the end. Rows may sum to less than 1. With it
                the model can be put to ``evaluate divergence``, and a causal one to ``generate``.
            unchecked: declare that the numbers are not from a causal model, or cannot be checked, such as scores of
                one text from a file. truesource then notes this in place of checking that no number depends on later
                words or other sentences, see `truesource.generator.dependence`.

        Raises:
            InputError: there is no function, the objective is another, or the vocabulary is a set, or has an entry that
                is not a word, or has it twice (code ``vocabulary``).
        """
        if log_probs is None and distributions is None:
            raise InputError("FunctionModel needs a function: give log_probs, or distributions", code="not-a-model")
        if objective not in get_args(Objective):
            raise InputError(
                f"FunctionModel has the objective {objective!r}; it has to be 'causal' or 'masked'", code="not-a-model"
            )
        if not isinstance(name, str) or not name:
            raise InputError(f"FunctionModel has the name {name!r}; give it some text", code="not-a-model")
        if vocabulary is None and distributions is not None:
            raise InputError(
                f"{name} has distributions, so it needs the vocabulary that they are over", code="vocabulary"
            )
        if isinstance(vocabulary, str):
            raise InputError(f"the vocabulary of {name} is one string; give a list of words", code="vocabulary")
        if isinstance(vocabulary, set | frozenset):
            raise InputError(
                f"the vocabulary of {name} is a set, which has no fixed order; give a list, such as sorted(words)",
                code="vocabulary",
            )
        self.vocabulary = None if vocabulary is None else tuple(vocabulary)
        require_words(self.vocabulary or (), name)
        self._columns = {word: number for number, word in enumerate(self.vocabulary or ())}
        self._log_probs, self._distributions = log_probs, distributions
        self.name, self.objective = name, objective
        self.unchecked = bool(unchecked)
        self._end = int(objective == "causal")  # positions beyond the words

    def __repr__(self) -> str:
        return model_line(self)

    @classmethod
    def from_module(cls, module: torch.nn.Module, targets: WordColumns, *, name: str | None = None) -> FunctionModel:
        """Make a model of a PyTorch module and the words that its logits are over.

        A word without a token is impossible. The module is called in evaluation
        mode, on its own device, without gradients.

        Args:
            module: from ``input_ids`` (B, L) to logits (B, L, E) over the tokens of ``targets``, or to an object with
                such ``logits``. Logits at a position must not depend on later ones.
            targets: that it was trained with, see `truesource.lmtrain.truth.ExactTargets`; or words with the same
                ``columns``, ``size`` and ``inputs``.
            name: in tables; None: the name of the class.
        """
        from truesource.lmtrain.module_functions import distributions_of

        words, distributions = distributions_of(module, targets)
        return cls(vocabulary=words, distributions=distributions, name=name or type(module).__name__)

    @property
    def function(self) -> Function:
        """The function that gives the scores, for messages."""
        function = self._log_probs or self._distributions
        assert function is not None
        return function

    @property
    def has_distributions(self) -> bool:
        """True if it was given a function for them; see `truesource.generator.interface.abilities`."""
        return self._distributions is not None

    @property
    def has_stepping(self) -> bool:
        """True if text can be drawn from it: a causal model with distributions."""
        return self._distributions is not None and self.objective == "causal"

    def score(self, sentences: Sentences, frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Return the log probability of every position that ``frame`` counts; sentences with -inf are impossible.

        Raises:
            InputError: the function raises (code ``code-failed``), or returns another number of arrays, one of another
                length (``not-scores``), NaN, a value greater than 0 (``not-log-probabilities``), or complex numbers
                (``complex``).
        """
        sentences = as_sentences(sentences)
        check_sentences(sentences)
        texts = [list(sentence) for sentence in sentences]
        rows = self.log_prob_rows(texts)
        return assemble_scores(rows, [self._columns_of(sentence) == len(self._columns) for sentence in texts], frame)

    def log_prob_rows(self, sentences: list[list[str]]) -> list[FloatArray]:
        """Return the log probabilities of each sentence, (n+1,) causal, (n,) masked, nats; -inf: impossible.

        Raises:
            InputError: as `score`.
        """
        return self._scored(sentences) if self._log_probs is not None else self._read_off(sentences)

    def distributions(self, sentences: Sentences) -> Iterator[LogDistributions]:
        """Yield its distributions at every position; see `DistributionModel.distributions`.

        Raises:
            InputError: the model was made without a function for them; or as `score`.
        """
        texts = [list(sentence) for sentence in sentences]
        if len({len(sentence) for sentence in texts}) > 1:
            raise InputError("distributions are of sentences of one length; group them by length")
        if texts:
            tables = np.stack(self._tables(texts))
            for position in range(tables.shape[1]):
                yield LogDistributions(position, tables[:, position])

    @property
    def alphabet(self) -> Alphabet:
        """Its tokens, for `truesource.lmtrain.decoding`: the words, ``<unk>`` and the end, numbered as columns."""
        from truesource.lmtrain.decoding.alphabet import Alphabet

        tokens = (*(self.vocabulary or ()), "<unk>")
        return Alphabet(len(tokens) + 1, len(tokens), (), None, lambda numbers: [tokens[i] for i in numbers])

    def stepper(self) -> PrefixStepper:
        """Return its next-token log probabilities, from the distributions of each prefix as a sentence."""
        from truesource.lmtrain.decoding.steppers import PrefixStepper

        return PrefixStepper(self._next, self.alphabet)

    def _next(self, prefixes: list[list[str]]) -> FloatArray:
        """Return the log probabilities of the token after prefixes of one length, (R, V+2)."""
        return np.stack([table[-1] for table in self._tables(prefixes)])

    def _columns_of(self, sentence: Sequence[str]) -> IntArray:
        """Return the column of each word; ``<unk>`` comes after the words."""
        if self.vocabulary is None:
            return np.full(len(sentence), -1, dtype=np.int64)
        return np.array([self._columns.get(word, len(self._columns)) for word in sentence], dtype=np.int64)

    def _read_off(self, sentences: list[list[str]]) -> list[FloatArray]:
        result = []
        for table, sentence in zip(self._tables(sentences), sentences, strict=True):
            columns = np.append(self._columns_of(sentence), [len(self._columns) + 1] * self._end)
            result.append(table[np.arange(len(table)), columns.astype(np.int64)])
        return result

    def _scored(self, sentences: list[list[str]]) -> list[FloatArray]:
        assert self._log_probs is not None
        expected = "one per word and one of the end" if self._end else "one per word"
        rows = self._called(self._log_probs, "log_probs", sentences)
        for number, (row, sentence) in enumerate(zip(rows, sentences, strict=True), start=1):
            where = f"{self.name}.log_probs: sentence {number} ({_quoted(sentence)})"
            if row.shape != (len(sentence) + self._end,):
                raise InputError(
                    f"{where} has an array {shape_of(row)}, expected {len(sentence) + self._end} numbers, {expected}",
                    file_of(self._log_probs),
                    code="not-scores",
                )
            if row.size:
                require_log_probability(float(row.max()), where)
        return rows

    def _tables(self, sentences: list[list[str]]) -> list[FloatArray]:
        if self._distributions is None:
            raise InputError(f"{self.name} was made without distributions", code="missing-ability")
        columns = len(self._columns) + 1 + self._end
        tables = self._called(self._distributions, "distributions", sentences)
        for number, (table, sentence) in enumerate(zip(tables, sentences, strict=True), start=1):
            where = f"{self.name}.distributions: sentence {number} ({_quoted(sentence)})"
            if table.shape != (len(sentence) + self._end, columns):
                events = "words, <unk> and the end" if self._end else "words and <unk>"
                raise InputError(
                    f"{where} has an array {shape_of(table)}, expected {len(sentence) + self._end}x{columns}: the"
                    f" positions{' and the end' if self._end else ''} by {events}",
                    file_of(self._distributions),
                    code="not-distributions",
                )
            tables[number - 1] = checked_table(table, where)
        return tables

    def _called(self, function: Function, what: str, sentences: list[list[str]]) -> list[FloatArray]:
        """Return one array of numbers per sentence."""
        source = file_of(function)
        with code_errors(f"{self.name}.{what}", source):
            returned = function([list(sentence) for sentence in sentences])
            result = list(returned) if isinstance(returned, Iterable) else None
        if result is None:
            raise InputError(
                f"{self.name}.{what} returned {reprlib.repr(returned)}; it gets a list of sentences, and has to"
                " return a list with one array of numbers per sentence",
                source,
                code="not-scores",
            )
        if len(result) != len(sentences):
            raise InputError(
                f"{self.name}.{what} returned {len(result)} arrays for {len(sentences)} sentences; it has to return"
                " one per sentence",
                source,
                code="not-scores",
            )
        with code_errors(f"what {self.name}.{what} returned is not arrays of numbers: reading it", source):
            return [real_numbers(row, f"what {self.name}.{what} returned") for row in result]


def _quoted(sentence: Sequence[str]) -> str:
    text = " ".join(sentence)
    return repr(text if len(text) <= 40 else f"{text[:39]}…")
