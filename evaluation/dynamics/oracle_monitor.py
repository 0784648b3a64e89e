"""Distance of a model from the truth during training, measured repeatedly on the same sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.comparison import score_by_model
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.setting import Setting, adds_up_to_words
from truesource.evaluation.core.transformed import of_sentences, text_grammar
from truesource.evaluation.divergence.contexts import CachedTruth, cache_truth
from truesource.evaluation.measures.paired import at_positions_of, pair
from truesource.generator.abilities import offers, require
from truesource.generator.language_model import LanguageModel, ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth

if TYPE_CHECKING:
    from truesource.generator.corpus import Corpus


SENTENCES = 200  #: default number of sentences
SPLIT = "dev"  #: split whose first sentences are used


class OracleMonitor:
    """A function of a model that returns ``relative_ppl`` and, with full distributions, ``kl``, ``js`` and ``tv``.

    For transformed text, only masked models have the latter, see `truesource.evaluation.core.oracle.Oracle`. For models
    of pieces, ``kl`` is per word, the sum over its pieces; ``js`` and ``tv`` are means over pieces. Masked models of
    pieces have ``relative_ppl`` alone, because divergences of masked pieces do not add up to divergences of words.

    ``relative_ppl`` is the perplexity over the true one, on the tokens of the sentences with their ends; the
    divergences are means over these contexts, exact in each, nats. The truth is computed at the first call, in
    the vocabulary of the model, and cached. If the sentences that the text excludes are known exactly,
    ``relative_ppl`` is relative to the truth without them; divergences are always from the grammar.

    Args:
        setting: text and truth.
    """

    def __init__(self, setting: Setting) -> None:
        if not setting.sentences:
            raise InputError("there are no sentences on which to compare the model with the truth; add some")
        self.setting = setting
        self._correction = 1.0  #: correction of ``relative_ppl``
        self._truth: CachedTruth | None = None

    @classmethod
    def on_corpus(
        cls, truth: Truth, corpus: Corpus, *, split: str = SPLIT, sentences: int = SENTENCES
    ) -> OracleMonitor:
        """Build a monitor on the first ``sentences`` of a split, with the conditions of its sampling.

        Raises:
            InputError: the corpus has no such split.
        """
        if split not in corpus.splits:
            raise InputError(
                f"the corpus has no split {split!r} on which to compare the model with the truth;"
                f" it has {', '.join(corpus.splits)}"
            )
        truth, transform = text_grammar(truth, corpus.transform)
        excluded = Exclusion.of(corpus, split, truth, corpus.lengths)
        some = corpus.coded(split)[:sentences]
        return cls(Setting(truth, some, corpus.lengths, excluded=excluded, transform=transform))

    def __call__(self, model: LanguageModel) -> dict[str, float]:
        """Measure a model; all models must be of one kind with one vocabulary.

        Raises:
            InputError: the grammar gives all sentences probability 0, or they are too long for the model.
        """
        whole = of_sentences(self.setting.transform, model.objective)
        if offers(model, "tokens") and adds_up_to_words(model) and not whole:
            return {**self._score(model), **self._of_pieces(model)}
        if model.vocabulary is None or whole or not offers(model, "distributions"):
            return self._score(model)
        model = require(model, "distributions", "the divergence from the truth")
        if self._truth is None:
            sentences = self._corrected(model)
            contexts = sum(len(sentence) + 1 for sentence in sentences)
            self._truth = cache_truth(model, replace(self.setting, sentences=sentences), contexts=contexts)
        values = self._truth.compare(model)
        if "relative_ppl" in values:
            values["relative_ppl"] *= self._correction
        return values

    def _of_pieces(self, model: Any) -> dict[str, float]:
        """Return the divergences of a model of pieces; none if its pieces have no exact distributions."""
        if self._truth is None:
            distributed = replace(self.setting, sentences=self._corrected(model)).distributed(model)
            if distributed is None:
                return {}
            tokens, cut = distributed
            contexts = sum(len(pieces) + 1 for pieces in cut.sentences)
            self._truth = cache_truth(tokens, cut, contexts=contexts)
        values = self._truth.compare(model.as_tokens())
        if "kl" in values:
            values["kl"] *= self._truth.contexts / self._words
        return {name: value for name, value in values.items() if name != "relative_ppl"}

    @cached_property
    def _words(self) -> int:
        """The number of words and sentence ends of the cached sentences of pieces."""
        assert self._truth is not None
        language: Any = self._truth.oracle.truth
        return sum(
            (len(language.words_of(pieces)) + 1) * len(members)
            for sentences, blocks in self._truth.groups
            for pieces, members in zip(sentences, blocks[0].members, strict=True)
        )

    def _corrected(self, model: LanguageModel) -> Sequence[Sequence[str]]:
        """Return possible sentences under the truth, after correcting its perplexity for excluded sentences."""
        setting = self.setting
        if setting.excluded is None or not setting.excluded.exact:
            return setting.sentences
        free = setting.full_oracle(model).score(setting.sentences, ScoringFrame())
        exact = setting.truth(model)
        if exact.log_prob.size:
            self._correction = math.exp(float((exact.log_prob - at_positions_of(free, exact).log_prob).mean()))
        impossible = set(exact.impossible.tolist())
        return [sentence for i, sentence in enumerate(setting.sentences) if i not in impossible]

    def _score(self, model: LanguageModel) -> dict[str, float]:
        paired = pair(score_by_model(model, self.setting.sentences, ScoringFrame()), self.setting.truth(model))
        return {"relative_ppl": math.exp(float((paired.oracle - paired.model).mean()))}
