"""PPLu of a model and of the truth, and how much of the language's mutual information the model has learned.

``PPLu = exp(-mean ln(q(w|c) / u(w))) = PPL / PPL_u`` (Roh et al. 2020, equation 2). For the truth itself, u being the
distribution of the counted tokens, -ln PPLu is the mutual information I of a token and its context; for a model q it
is ``I - KL(P || q)``. Two models may be compared by PPLu only with one u, so PPL_u always stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evaluation.comparison import BothScored, score_both
from evaluation.measures.bootstrap import TAILS, resampled_sums
from evaluation.pplu.unigrams import END, SMOOTHING, Unigram, counted_unigram, oracle_unigram
from evaluation.score import Score, signature
from generator.frame import ScoringFrame
from generator.language_model import LanguageModel
from grammar.conditioning import LengthRange
from grammar.errors import InputError
from grammar.pcfg import PCFG

FloatArray = NDArray[np.float64]
UnigramSource = Literal["oracle", "train", "test", "model"]
SOURCES: tuple[str, ...] = get_args(UnigramSource)


@dataclass(frozen=True)
class UnigramPerplexity:
    """What `compare_pplu` found."""

    model: str
    objective: str
    scores: dict[str, Score]
    log_model: FloatArray  #: (T,) nats
    log_truth: FloatArray  #: (T,)
    log_unigram: FloatArray  #: (T,)
    sentence: NDArray[np.int32]  #: (T,) number in the input
    tokens: list[str]  #: (T,) as the oracle reads them; ``</s>`` is the end
    unigram: Unigram
    excluded: int

    def records(self) -> list[dict[str, Any]]:
        """One record a measure, for JSON."""
        return [{"model": self.model, "objective": self.objective, **s.as_record()} for s in self.scores.values()]


def compare_pplu(
    model: LanguageModel,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    frame: ScoringFrame | None = None,
    unigram: UnigramSource = "oracle",
    text: Iterable[Sequence[str]] = (),
    smoothing: float | None = None,
    seed: int = 0,
) -> UnigramPerplexity:
    """Score a model and the truth, and normalise both by one unigram distribution.

    Args:
        model: anything that satisfies `LanguageModel`, the oracle included.
        pcfg: the grammar that the sentences were drawn from.
        sentences: to score, in the grammar's words.
        lengths: the condition that they were drawn under.
        frame: which positions count; everything by default.
        unigram: ``oracle``: exact. ``train``: counts of ``text``. ``test``: counts of the scored tokens, of all
            distributions the one with the smallest perplexity, so that PPLu is largest. ``model``: counts of ``text``,
            samples of the model.
        text: sentences of ``train`` and ``model``.
        smoothing: added to every count; default .5 for ``train`` and ``model``, 0 for ``test``.
        seed: of the bootstrap.

    Raises:
        InputError: no sentence is possible for both sides, or a token has no unigram probability.
    """
    if unigram not in SOURCES:
        raise InputError(f"unigram is one of {', '.join(SOURCES)}, got {unigram!r}")
    frame = frame or ScoringFrame()
    both = score_both(model, pcfg, sentences, lengths=lengths, frame=frame, seed=seed)
    tokens = tokens_of(both, sentences)
    u = make_unigram(both, tokens, unigram, frame, text, smoothing)
    paired = both.paired
    log_u = u.of(tokens)
    found = _scores(both, log_u, {**both.parts, **u.parts}, seed)
    return UnigramPerplexity(
        model.name,
        model.objective,
        found,
        paired.model,
        paired.oracle,
        log_u,
        paired.sentence,
        tokens,
        u,
        len(paired.excluded),
    )


def tokens_of(both: BothScored, sentences: Sequence[Sequence[str]]) -> list[str]:
    """The token at every scored position, as the oracle reads it."""
    read = {i: [*both.oracle.read(sentences[i]), END] for i in np.unique(both.paired.sentence).tolist()}
    places = zip(both.paired.sentence.tolist(), both.paired.position.tolist(), strict=True)
    return [read[i][position] for i, position in places]


def make_unigram(
    both: BothScored,
    tokens: Sequence[str],
    source: UnigramSource,
    frame: ScoringFrame,
    text: Iterable[Sequence[str]],
    smoothing: float | None,
) -> Unigram:
    """The unigram distribution that was asked for; see `compare_pplu`."""
    if source == "oracle":
        return oracle_unigram(both.oracle, frame)
    if source == "test":
        whole: Callable[[Sequence[str]], list[str]] = list
        every = ScoringFrame(eos=False)
        return counted_unigram([tokens], "test", read=whole, frame=every, ends=False, smoothing=smoothing or 0.0)
    return counted_unigram(
        text,
        source,
        read=both.oracle.read,
        frame=frame,
        ends=both.oracle.objective == "causal",
        words=both.oracle.language.terminals,
        smoothing=SMOOTHING if smoothing is None else smoothing,
    )


def _scores(both: BothScored, log_u: FloatArray, parts: Mapping[str, object], seed: int) -> dict[str, Score]:
    """All measures, sentences resampled together."""
    paired = both.paired
    _, row = np.unique(paired.sentence, return_inverse=True)
    columns = [np.bincount(row, x) for x in (paired.model, paired.oracle, log_u)] + [np.bincount(row)]
    table = np.stack(columns, axis=1).astype(np.float64)
    drawn = resampled_sums(table, seed=seed)
    nats, share = {"unit": "nats/token"}, {"unit": "share"}
    kinds: dict[str, tuple[Callable[[FloatArray], FloatArray], dict[str, str]]] = {
        "ppl": (lambda s: np.exp(-s[:, 0] / s[:, 3]), {}),
        "bound": (lambda s: np.exp(-s[:, 1] / s[:, 3]), {}),
        "ppl_unigram": (lambda s: np.exp(-s[:, 2] / s[:, 3]), {}),
        "pplu": (lambda s: np.exp((s[:, 2] - s[:, 0]) / s[:, 3]), {}),
        "pplu_bound": (lambda s: np.exp((s[:, 2] - s[:, 1]) / s[:, 3]), {}),
        "mutual_information": (lambda s: (s[:, 1] - s[:, 2]) / s[:, 3], nats),
        "information_learned": (lambda s: (s[:, 0] - s[:, 2]) / s[:, 3], nats),
        "share_learned": (_share_learned, share),
    }
    found = {}
    for name, (measure, unit) in kinds.items():
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float(measure(table.sum(axis=0)[None])[0])
            ends = np.quantile(measure(drawn), TAILS)
        if math.isfinite(value):
            low, high = (float(end) if math.isfinite(end) else None for end in ends)
            found[name] = Score(name, value, signature({**parts, **unit}), low, high)
    return found


def _share_learned(sums: FloatArray) -> FloatArray:
    """``-ln PPLu(Q) / I = 1 - KL / I``; not finite where the language has no information to learn."""
    return np.asarray((sums[:, 0] - sums[:, 2]) / (sums[:, 1] - sums[:, 2]))
