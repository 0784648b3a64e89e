"""The setting of a measurement: a text, the truth about it, and how models are scored on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from truesource.evaluation.core.exclusion import Exclusion, disjoint_part
from truesource.evaluation.core.oracle import Oracle, condition_part
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import dependence_part, digest_sentences, frame_parts, signature
from truesource.evaluation.core.text import Text
from truesource.evaluation.core.transformed import of_sentences, require_tokens, text_grammar, transform_parts
from truesource.evaluation.core.vocabulary import (
    CoarsenedModel,
    ComparisonVocabulary,
    Kind,
    ModelWords,
    SpelledModel,
    compared_part,
    comparison_vocabulary,
    require_shared,
    warn_of_unknown,
)
from truesource.generator.abilities import offers, require
from truesource.generator.arguments import as_lengths, as_truth
from truesource.generator.language_model import LanguageModel, ScoringFrame, TokenScores, preset_frame
from truesource.generator.objectives import Objective
from truesource.generator.plan import Transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.sentences import as_sentences
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import brief
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth, load_truth


@dataclass(frozen=True, eq=False)
class Setting:
    """A text with its truth, and how both are scored: every evaluator takes a model and one of these.

    The truth is computed once for all models of one objective and vocabulary that are scored in one setting.
    """

    language: Truth | None  #: source of the sentences; None: the truth is unknown
    sentences: Sequence[Sequence[str]]  #: to score, in the grammar's words
    lengths: LengthRange | None = None  #: the length condition that they were drawn under
    frame: ScoringFrame | str = "default"  #: which positions count: a frame, or the name of a preset
    seed: int = DEFAULT_SEED  #: of all that is random, such as intervals
    #: sentences excluded by a corpus with disjoint splits: the truth then excludes them too
    excluded: Exclusion | None = None
    #: entries of the signature on the excluded sentences of the text, and their number
    left_out: Mapping[str, int] = field(default_factory=dict)
    transform: Transform | None = None  #: of the text, see `truesource.evaluation.core.oracle.Oracle`
    text: Text | None = None  #: that the sentences are from
    counts: Mapping[str, int] | None = None  #: of words in the training text; None: from the corpus of ``text``
    words: Setting | None = None  #: the same in words, if the tokens of this one are pieces
    _truths: dict[Any, TokenScores] = field(default_factory=dict, init=False, repr=False)
    _warned: set[Any] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        """Read the truth, sentences and lengths as people write them: files and names, texts, ``6..25``."""
        object.__setattr__(self, "language", None if self.language is None else as_truth(self.language))
        object.__setattr__(self, "sentences", as_sentences(self.sentences))
        object.__setattr__(self, "lengths", as_lengths(self.lengths))

    def __repr__(self) -> str:
        condition = "" if self.lengths is None else f", {self.lengths} words"
        return brief(f"Setting({len(self.sentences):,} sentences{condition}, truth: {self.language!r})")

    @classmethod
    def of(
        cls,
        text: Text,
        truth: Truth | str | Path | bool = True,
        *,
        lengths: LengthRange | tuple[int, int] | str | None = None,
        frame: ScoringFrame | str = "default",
        seed: int = DEFAULT_SEED,
        scored: bool = True,
    ) -> Setting:
        """Relate a text to its truth.

        The truth of a corpus with a transform is the grammar of the transformed text, if there is one.

        Args:
            text: to measure on.
            truth: grammar or process that the text was sampled from, or its file; True: the truth of its corpus
                folder, if the text has one; False: it is unknown.
            lengths: the condition of the truth, such as ``6..25``, ``(6, 25)`` or ``none``; None: the recorded one of
                the text.
            frame: which positions count.
            seed: of random numbers.
            scored: tokens are scored, which the truth can do without the sentences that disjoint splits exclude; full
                distributions are always of the grammar.

        Raises:
            InputError: the grammar cannot be read, or ``lengths`` is no range.
        """
        if not isinstance(text, Text):
            raise InputError(
                f"expecting a Text, got {type(text).__name__}; Text.of(corpus, 'eval') takes a split, Text.read reads a"
                " file"
            )
        condition = text.lengths if lengths is None else as_lengths(lengths)
        excluded = transform = None
        if isinstance(truth, bool):
            language = text.truth if truth else None
        else:
            language = load_truth(truth) if isinstance(truth, str | Path) else truth
        if language is not None and text.corpus is not None:
            language, transform = text_grammar(language, text.corpus.transform)
            excluded = Exclusion.of(text.corpus, text.split, language, condition, scored=scored)
        return cls(language, text.sentences, condition, frame, seed, excluded, text.left_out, transform, text)

    @property
    def known(self) -> Truth:
        """The truth that the sentences were drawn from.

        Raises:
            InputError: it is unknown.
        """
        if self.language is None:
            raise InputError("this needs the grammar of the text, which is the truth; name it", code="no-grammar")
        return self.language

    @property
    def grammar(self) -> PCFG:
        """The grammar that they were drawn from.

        Raises:
            InputError: it is unknown, or they were drawn from a process, which has no rules.
        """
        return require(self.known, "parses", "this measure")

    @cached_property
    def digest(self) -> str:
        """Digest of the sentences, for signatures."""
        return digest_sentences(self.sentences)

    def first(self, number: int | None) -> Setting:
        """Return the same with the first sentences only; None: all of them."""
        if number is None or number >= len(self.sentences):
            return self
        words = None if self.words is None else self.words.first(number)
        some = replace(self, sentences=self.sentences[:number], words=words)
        some._warned.update(self._warned)
        return some

    def other_split(self, name: str) -> Sequence[Sequence[str]]:
        """Return the sentences of another split of the corpus that the text is from.

        Raises:
            InputError: the text is not from a corpus folder, or is itself this split, or there is no such split.
        """
        return (self.text or Text(self.sentences)).other_split(name)

    def vocabularies(
        self, models: Iterable[LanguageModel | ModelWords], kind: Kind | None = None
    ) -> dict[Objective, ComparisonVocabulary | None]:
        """Return the vocabulary that the models of each objective are compared in; None: their own.

        Args:
            models: of any objectives.
            kind: of the vocabularies; None: the default, see
                `truesource.evaluation.core.vocabulary.comparison_vocabulary`.

        Raises:
            InputError: as that; or ``common``, and only whole sentences have a truth (code ``sentence-truth``).
        """
        groups: dict[Objective, list[LanguageModel | ModelWords]] = {}
        for model in models:
            groups.setdefault(model.objective, []).append(model)
        if kind == "common":
            for objective in groups:
                require_tokens(self.transform, objective, "a common vocabulary")
        return {
            objective: comparison_vocabulary(
                group,
                self.known,
                kind,
                tokens=not of_sentences(self.transform, objective),
                counts=lambda: self.training_counts,
            )
            for objective, group in groups.items()
        }

    @property
    def training_counts(self) -> Mapping[str, int] | None:
        """Counts of words in the training text: the split ``train`` of the corpus that the text is from, or as given.

        None if there is no training text.
        """
        return self.text.training_counts if self.counts is None and self.text is not None else self.counts

    def frame_of(self, objective: Objective) -> ScoringFrame:
        """Return the positions that count for models of an objective."""
        return preset_frame(self.frame, objective) if isinstance(self.frame, str) else self.frame

    def with_distributions(self, model: Any) -> tuple[Any, Setting]:
        """Return a model with the probabilities of all its tokens, and this setting in its tokens.

        A model of pieces becomes a model of sequences of pieces, and truth, text and what the text excludes are cut
        into the same pieces. Other models stay as they are.

        Raises:
            NothingToMeasureError: the pieces of a word depend on its neighbours, or do not show where words end; or the
                model is masked, and the text is transformed.
        """
        if offers(model, "distributions") or not has_divergence(model):
            return model, self
        of_pieces: Any = model.model if isinstance(model, SpelledModel) else model
        if model.objective == "masked" and self.transform is not None:
            raise NothingToMeasureError(
                "a masked piece has exact probabilities only in the order of a grammar, but this text is transformed"
                f" by {self.transform}; use a masked model of whole words",
                "transformed",
            )
        cut = replace(
            self,
            language=None if self.language is None else of_pieces.tokenised(self.language),
            sentences=of_pieces.cut(self.sentences),
            excluded=None if self.excluded is None else self.excluded.in_pieces(of_pieces.cut),
            words=self,
        )
        return of_pieces.as_tokens(), cut

    def distributed(self, model: Any, *, of_words: bool = False) -> tuple[Any, Setting] | None:
        """Return `with_distributions`; None if the model has none, or the truth has no distributions of its pieces.

        Args:
            model: any.
            of_words: also None if divergences of the model's tokens do not add up to divergences of words, see
                `adds_up_to_words`.
        """
        if not has_divergence(model) or (of_words and not adds_up_to_words(model)):
            return None
        try:
            return self.with_distributions(model)
        except NothingToMeasureError:
            return None

    def oracle(self, model: LanguageModel) -> Oracle:
        """Return the truth as such a model sees it, see `oracle_for`."""
        self._warn(model)
        return oracle_for(
            model, self.known, self.lengths, self.frame_of(model.objective), self.excluded, self.transform
        )

    def full_oracle(self, model: LanguageModel) -> Oracle:
        """Return the same for full distributions, in which every position counts and nothing is excluded."""
        self._warn(model)
        return oracle_for(model, self.known, self.lengths, transform=self.transform)

    def _warn(self, model: LanguageModel) -> None:
        """Warn once of each model, or of the common vocabulary of all, that lacks most words of the text."""
        words = None if model.vocabulary is None else tuple(model.vocabulary)
        key = "" if isinstance(model, CoarsenedModel) else model.name, words
        if key not in self._warned:
            self._warned.add(key)
            require_shared(model, self.known)
            warn_of_unknown(model, self.known, self.sentences)

    def parts(self, model: LanguageModel) -> dict[str, object]:
        """Return the parts of the signature of a number over all these sentences."""
        frame = self.frame_of(model.objective)
        return {
            "objective": model.objective,
            "given": "unknown" if self.language is None else condition_part(model.objective, self.lengths),
            **({} if self.language is None else transform_parts(self.language, self.transform, model.objective)),
            **disjoint_part(self.excluded, corrected=not isinstance(model, CoarsenedModel)),
            **frame_parts(frame, model.objective),
            **compared_part(model),
            **dependence_part(model),
            "sentences": len(self.sentences),
            **self.left_out,
            "data": self.digest,
            "grammar": "none" if self.language is None else self.language.identity,
        }

    def score(
        self,
        model: LanguageModel,
        name: str,
        value: float,
        low: float | None = None,
        high: float | None = None,
        **parts: object,
    ) -> Score:
        """Return a number about a model in this setting.

        Args:
            model: that was measured.
            name: of the measure.
            value: finite.
            low: lower end of its interval, if it has one.
            high: upper end.
            parts: further parts of its signature, keys of `truesource.evaluation.core.signature.KEYS`.
        """
        keys = {"model": model.name, "objective": model.objective}
        return Score(name, value, signature({**self.parts(model), **parts}), low, high, keys)

    def truth(self, model: LanguageModel) -> TokenScores:
        """Return the scores of the truth as such a model sees it, nats; the same object for all such models."""
        words = vocabulary_of(model)
        key = model.objective, None if words is None else tuple(words), isinstance(model, CoarsenedModel)
        if key not in self._truths:
            self._truths[key] = self.oracle(model).score(self.sentences, self.frame_of(model.objective))
        return self._truths[key]


def has_divergence(model: object) -> bool:
    """Return True if a model has the probabilities of all its tokens, see `Setting.with_distributions`."""
    of_pieces = (
        model.model if isinstance(model, SpelledModel) else model
    )  # which spells any word, so nothing is changed
    return offers(model, "distributions") or offers(of_pieces, "tokens")


def adds_up_to_words(model: LanguageModel) -> bool:
    """Return True if divergences of a model's tokens are, or add up to, divergences of words.

    Pieces given the pieces before them add up by the chain rule. Masked pieces do not, because each is given the other
    pieces of its word.
    """
    return model.objective != "masked" or offers(model, "distributions")


def vocabulary_of(model: LanguageModel) -> tuple[str, ...] | None:
    """Return the vocabulary of the oracle that a model is compared with; None: every word of the truth."""
    return None if isinstance(model, SpelledModel) else model.vocabulary


def oracle_for(
    model: LanguageModel,
    truth: Truth,
    lengths: LengthRange | None,
    frame: ScoringFrame | None = None,
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
) -> Oracle:
    """Return the oracle with the objective and vocabulary of the model and the corpus's length condition.

    A frame that skips unknown words is the published one, whose oracle keeps them in its contexts. So does the oracle
    of a model that is compared in a common vocabulary; it does not exclude what the text excludes.

    Raises:
        InputError: the model knows no word of the truth (code ``no-shared-word``).
    """
    require_shared(model, truth)
    common = isinstance(model, CoarsenedModel)
    collapse = not common and (frame is None or frame.unk == "token")
    return Oracle(
        truth,
        model.objective,
        lengths=lengths,
        vocabulary=vocabulary_of(model),
        collapse=collapse,
        excluded=None if common else excluded,
        transform=transform,
    )
