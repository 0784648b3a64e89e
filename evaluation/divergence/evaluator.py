"""The evaluator `divergence`: comparison of all next-token probabilities with the true ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from truesource.evaluation.core.evaluator import Evaluator, Measure
from truesource.evaluation.divergence import By
from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import RunRequest

MEASURES = (
    Measure("kl", "KL(P‖Q)", meaning="mean over contexts of Σ P ln P/Q, nats per token; 0 is perfect"),
    Measure(
        "kl_paired",
        "KL(P‖Q), sampled",
        meaning="estimated from the tokens that occurred; the same expectation, more variance",
    ),
    Measure("kl_per_word", "KL(P‖Q) per word", meaning="of a model of pieces: nats per word or sentence end"),
    Measure("kl_language", "  language", meaning="what the model does not know of the next word, or its end"),
    Measure("kl_nonwords", "  words that are none", meaning="lost to pieces that spell no word of the language"),
    Measure("kl_segmentation", "  other segmentations", meaning="lost to other segmentations of the same words"),
    Measure(
        "gain_of_sums",
        "gain of sums",
        meaning="nats per word, from summing over all segmentations; in the first sentences, by the setting sums",
    ),
    Measure(
        "kl_summed",
        "KL(P‖Q) per word, summed",
        meaning="KL(P‖Q) per word of these sentences alone, less the gain",
    ),
    Measure("variance_ratio", "variance ratio", meaning="how many times more tokens the sampled KL(P‖Q) needs"),
    Measure("reverse_kl", "KL(Q‖P)", meaning="nats; infinite if the model expects the impossible"),
    Measure(
        "reverse_kl_possible",
        "KL(Q‖P), possible tokens",
        meaning="nats per token, Q restricted to what the grammar allows",
    ),
    Measure("js", "Jensen-Shannon", meaning="divergence, nats, 0 to 0.693"),
    Measure("tv", "total variation", meaning="probability that would have to move, 0 to 1"),
    Measure("entropy_truth", "entropy of P", meaning="nats per token"),
    Measure(
        "entropy_model",
        "entropy of Q",
        meaning="nats per token; above the entropy of P, the model is vaguer than the truth",
    ),
    Measure("agreement", "same most probable token", meaning="share of contexts"),
    Measure("top_k_overlap", "most probable tokens shared", meaning="share of the top-k set"),
    Measure("impossible_mass", "Q of the impossible", meaning="probability on tokens that cannot follow"),
    Measure("special_mass", "Q of no token", meaning="probability on special tokens, or missing to 1"),
    Measure(
        "calibration_error",
        "calibration error",
        meaning="mean distance of the model's and the true probability, in bins",
    ),
    Measure(
        "calibration_error_top",
        "calibration error, top token",
        meaning="the same for the model's most probable token",
    ),
)


class DivergenceSettings(Settings):
    """The settings of a comparison of all next-token probabilities with the true ones; see docs/howto/models.md."""

    advanced: ClassVar = frozenset({"top_k", "classes", "sums"})
    sentences: int | None = Field(300, ge=2, description="Number of sentences to use, from the first.")
    top_k: int = Field(10, ge=1, description="Number of most probable tokens to compare as a set.")
    by: tuple[By, ...] | None = Field(
        None,
        description="Breakdown: position, length, class, frequency, phrase, ambiguity, distance, probability.",
    )
    sums: int = Field(0, ge=0, description="Number of sentences to sum over all segmentations, from the first.")
    classes: Path | None = Field(None, description="File that maps tags to classes (default: Penn Treebank tags).")
    model_samples: Path | None = Field(
        None, description="Samples of the model: folder of truesource generate, or text; for KL(Q‖P)."
    )


def check(config: RunRequest) -> None:
    """Raise `ValueError` if samples of one model are configured for several models."""
    if config.evaluation.of(DivergenceSettings).model_samples is not None and len(config.entries) > 1:
        raise ValueError("evaluation.divergence.model_samples belong to one model, but there are several; remove it")


def needed(settings: DivergenceSettings) -> dict[str, str]:
    """Return the abilities that options need of a model."""
    return {"pieces": "--sums"} if settings.sums else {}


DIVERGENCE = Evaluator(
    name="divergence",
    title="Full distributions",
    summary="Compare all next-token probabilities of a model with the true ones.",
    settings=DivergenceSettings,
    code=f"{__package__}.report",
    help="""Compare all next-token probabilities of a model with the true ones, in every context of a corpus.

    P is the truth and Q the model. The table shows KL(P‖Q) in nats per token, other divergences, and calibration. All
    next-token probabilities count, so the numbers vary less than the numbers of truesource score, which uses only the
    tokens that occur. The 95% intervals cover other sentences from the same source.

    --by divides KL(P‖Q) into parts; without it, the parts are position, length, class, frequency and phrase.

    Example: truesource evaluate divergence model/ corpus/ --json divergence.json

    Example: truesource evaluate divergence model/ corpus/ --by position,distance
    """,
    measures=MEASURES,
    needs=("distributions",),
    corrected=False,
    compares=True,
    draws=True,
    then="evaluate pplu {model} {corpus}{oracle}",
)
