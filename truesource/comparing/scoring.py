"""Models of references scored beside one truth, which is computed once for each objective and vocabulary."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truesource.comparing.named import NamedModel, NamedReference
from truesource.evaluation.comparing.models import ModelScores, SeedScores
from truesource.evaluation.core.comparison import oracle_for, score_both
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.transformed import of_sentences
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.generator.abilities import offers
from truesource.generator.language_model import LanguageModel, TokenScores, preset_frame
from truesource.generator.plan import Transform
from truesource.grammar.conditioning import DEFAULT_SEED, LengthRange
from truesource.grammar.pcfg import PCFG

log = logging.getLogger("truesource")


@dataclass(frozen=True, kw_only=True)
class SharedText:
    """A text and its truth, which all models are scored on."""

    pcfg: PCFG
    sentences: Sequence[Sequence[str]]
    lengths: LengthRange | None
    frame: str = "default"  #: name of a preset
    seed: int = DEFAULT_SEED  #: of intervals
    excluded: Exclusion | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)  #: parts of signatures
    transform: Transform | None = None
    exact: int | None = None  #: number of sentences whose full distributions are compared; None: of none
    truths: dict[Any, TokenScores] = field(default_factory=dict)  #: by objective and vocabulary

    def score(self, model: LanguageModel, label: str, training_seed: int | None = None) -> SeedScores:
        """One model beside the truth.

        Raises:
            NothingToCompareError: no sentence is possible for both; the message names the model.
            InputError: as `truesource.evaluation.core.comparison.score_both`.
        """
        frame = preset_frame(self.frame, model.objective)
        key = model.objective, None if model.vocabulary is None else tuple(model.vocabulary)
        if key not in self.truths:
            oracle = oracle_for(model, self.pcfg, self.lengths, frame, self.excluded, self.transform)
            self.truths[key] = oracle.score(self.sentences, frame)
        try:
            both = score_both(
                model,
                self.pcfg,
                self.sentences,
                lengths=self.lengths,
                frame=frame,
                seed=self.seed,
                truth=self.truths[key],
                excluded=self.excluded,
                left_out=self.left_out,
                transform=self.transform,
            )
        except NothingToCompareError as error:
            counts = error.n_sentences, error.impossible_model, error.impossible_oracle
            raise NothingToCompareError(f"{label}: {error}", *counts) from error
        return SeedScores(
            label=label,
            paired=both.paired,
            parts=both.parts,
            resampling=self.seed,
            seed=training_seed,
            exact=self._exact(model),
        )

    def _exact(self, model: Any) -> Score | None:
        """The exact KL of the first sentences, where the model has full distributions and tokens have a truth."""
        if self.exact is None or not offers(model, "distributions") or of_sentences(self.transform, model.objective):
            return None
        found = compare_distributions(
            model,
            self.pcfg,
            self.sentences[: self.exact],
            lengths=self.lengths,
            seed=self.seed,
            excluded=self.excluded,
            transform=self.transform,
        )
        return found.scores.get("kl") or found.scores["kl_infinite"]


def score_models(models: Sequence[NamedModel], text: SharedText) -> list[ModelScores]:
    """Load and score the models, one after the other.

    Raises:
        InputError: a model cannot be loaded or scored.
    """
    return [ModelScores(name=model.name, seeds=[_scored(seed, text) for seed in model.seeds]) for model in models]


def _scored(seed: NamedReference, text: SharedText) -> SeedScores:
    from truesource.lmtrain.models import load_model  # torch

    log.info("scoring %s", seed.text)
    model = load_model(seed.text)
    return text.score(model, seed.text, None if seed.training is None else seed.training.seed)
