"""Distance of a model in training from the truth, measured on the same sentences again and again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from truesource.evaluation.core.comparison import score_by_model
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import of_sentences, text_grammar
from truesource.evaluation.divergence.contexts import CachedTruth, cache_truth
from truesource.evaluation.measures.paired import at_positions_of, pair
from truesource.generator.abilities import offers, require
from truesource.generator.language_model import LanguageModel, ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth

if TYPE_CHECKING:
    from truesource.generator.corpus import Corpus


SENTENCES = 200  #: measured on unless more or fewer are asked for
SPLIT = "dev"  #: they are the first of this split


class OracleMonitor:
    """Called with a model, it gives ``relative_ppl`` and, of models with distributions, ``kl``, ``js`` and ``tv``.

    Of transformed text only masked models have the latter, see `truesource.evaluation.core.oracle.Oracle`.

    ``relative_ppl`` is perplexity over that of the truth, on the tokens of the sentences with their ends; the
    divergences are means over the contexts there, exact in each, nats. The truth is computed at the first call, for
    the words that the model tells apart, and kept. Where it is known exactly which sentences the text leaves out,
    ``relative_ppl`` is that to the truth without them; the divergences stay those from the grammar.

    Args:
        setting: text and truth.
    """

    def __init__(self, setting: Setting) -> None:
        if not setting.sentences:
            raise InputError("there are no sentences to compare the model with the truth on")
        self.setting = setting
        self._correction = 1.0  #: of ``relative_ppl``
        self._truth: CachedTruth | None = None

    @classmethod
    def on_corpus(
        cls, truth: Truth, corpus: Corpus, *, split: str = SPLIT, sentences: int = SENTENCES
    ) -> OracleMonitor:
        """One on the first ``sentences`` of a split, under the conditions that it was drawn under.

        Raises:
            InputError: the corpus has no such split.
        """
        if split not in corpus.splits:
            raise InputError(
                f"the corpus has no split {split!r} to compare the model with the truth on;"
                f" it has {', '.join(corpus.splits)}"
            )
        truth, transform = text_grammar(truth, corpus.transform)
        excluded = Exclusion.of(corpus, split, truth, corpus.lengths)
        some = corpus.coded(split)[:sentences]
        return cls(Setting(truth, some, corpus.lengths, excluded=excluded, transform=transform))

    def __call__(self, model: LanguageModel) -> dict[str, float]:
        """Measure where the model stands now; always a model of one kind with one vocabulary.

        Raises:
            InputError: the grammar can make none of the sentences, or they are too long for the model.
        """
        tokens = offers(model, "distributions") and not of_sentences(self.setting.transform, model.objective)
        if model.vocabulary is None or not tokens:
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

    def _corrected(self, model: LanguageModel) -> Sequence[Sequence[str]]:
        """The sentences that the truth can make, once its perplexity of them is known without what they leave out."""
        setting = self.setting
        if setting.excluded is None or not setting.excluded.exact:
            return setting.sentences
        free = setting.full_oracle(model).score(setting.sentences, ScoringFrame())
        kept = setting.truth(model)
        if kept.log_prob.size:
            self._correction = math.exp(float((kept.log_prob - at_positions_of(free, kept).log_prob).mean()))
        impossible = set(kept.impossible.tolist())
        return [sentence for i, sentence in enumerate(setting.sentences) if i not in impossible]

    def _score(self, model: LanguageModel) -> dict[str, float]:
        paired = pair(score_by_model(model, self.setting.sentences, ScoringFrame()), self.setting.truth(model))
        return {"relative_ppl": math.exp(float((paired.oracle - paired.model).mean()))}
