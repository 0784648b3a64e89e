"""PPLu of a model and of the truth, and how much of the language's mutual information the model has learned.

``PPLu = exp(-mean ln(q(w|c) / u(w))) = PPL / PPL_u`` (Roh et al. 2020, equation 2). For the truth itself, u being the
exact distribution of the counted tokens, -ln PPLu is the mutual information I of a token and its context; for a model
q it is ``I - KL(P || q)``. Under any other u both have ``KL(P_u || u)`` added, and where a frame skips ``<unk>`` what
a model gives to the tokens that count does not sum to 1: then there is PPLu, of the model and of the truth
(``pplu_bound``), and -ln of the model's (``information_learned``), and neither I nor a share of it. Two models may be
compared by PPLu only with one u, so PPL_u always stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from truesource.evaluation.core.alone import alone_parts, nothing_scored, score_by_model
from truesource.evaluation.core.comparison import BothScored, score_both
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.oracle import UNKNOWN
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.measures.bootstrap import ends, resampled_ratio
from truesource.evaluation.pplu.unigrams import SMOOTHING, UnigramModel, counted_unigram, oracle_unigram
from truesource.generator.language_model import END, LanguageModel, ScoringFrame
from truesource.generator.plan import Transform
from truesource.grammar.conditioning import DEFAULT_SEED, LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords

UnigramSource = Literal["oracle", "train", "test", "model"]
SOURCES: tuple[str, ...] = get_args(UnigramSource)
OF_TRUTH = ("bound", "pplu_bound", "mutual_information", "share_learned")  #: measures that need the grammar
EXACT = ("mutual_information", "share_learned")  #: and also its own word frequencies, <unk> counted as a token


@dataclass(frozen=True, kw_only=True, repr=False)
class UnigramPerplexity(ResultRecords):
    """What `compare_pplu` found."""

    model: str
    objective: str
    scores: dict[str, Score]
    log_model: FloatArray  #: (T,) nats
    log_truth: FloatArray | None  #: (T,); None without a grammar
    log_unigram: FloatArray  #: (T,)
    sentence: Int32Array  #: (T,) number in the input
    tokens: list[str]  #: (T,) as the truth, or else the model, reads them; ``</s>`` is the end
    unigram: UnigramModel
    impossible_model: Int32Array  #: sentences that the model gives probability zero
    impossible_truth: Int32Array  #: sentences that the truth gives probability zero; none without a grammar
    parts: Mapping[str, object]  #: of every signature

    @property
    def excluded(self) -> int:
        """Sentences that either side gives probability zero."""
        return len(np.union1d(self.impossible_model, self.impossible_truth))

    def records(self) -> list[dict[str, Any]]:
        """One record a measure, for JSON."""
        return [{"model": self.model, "objective": self.objective, **s.as_record()} for s in self.scores.values()]


@dataclass(frozen=True, kw_only=True)
class _Sides:
    """Log probabilities at the same positions."""

    model: FloatArray
    truth: FloatArray | None
    sentence: Int32Array
    position: Int32Array
    read: Callable[[Sequence[str]], list[str]]
    words: Sequence[str]  #: that unigram counts are smoothed over
    impossible_model: Int32Array
    impossible_truth: Int32Array
    parts: Mapping[str, object]


def compare_pplu(
    model: LanguageModel,
    pcfg: PCFG | None,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None = None,
    frame: ScoringFrame | None = None,
    unigram: UnigramSource = "oracle",
    text: Iterable[Sequence[str]] = (),
    smoothing: float | None = None,
    seed: int = DEFAULT_SEED,
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
) -> UnigramPerplexity:
    """Score a model, and the truth where it is known, and normalise both by one unigram distribution.

    Args:
        model: anything that satisfies `LanguageModel`, the oracle included.
        pcfg: the grammar that the sentences were drawn from; None: nobody knows the truth.
        sentences: to score, in the grammar's words.
        lengths: the condition that they were drawn under.
        frame: which positions count; everything by default.
        unigram: ``oracle``: exact. ``train``: counts of ``text``. ``test``: counts of the scored tokens, of all
            distributions the one with the smallest perplexity, so that PPLu is largest. ``model``: counts of ``text``,
            samples of the model.
        text: sentences of ``train`` and ``model``.
        smoothing: added to every count, of all words that the grammar or else the model has, or, where neither has a
            list of them (models of pieces), of the words of both texts and ``<unk>``; default .5 for ``train`` and
            ``model``, 0 for ``test``.
        seed: of the bootstrap.
        excluded: what the sentences leave out, as `evaluation.core.comparison.compare` has it; the truth, and its word
            frequencies, then leave it out too.
        transform: of the text, as there.

    Raises:
        InputError: no sentence is possible for both sides, a token has no unigram probability, or the exact unigram
            distribution is asked for without a grammar.
    """
    if unigram not in SOURCES:
        raise InputError(f"unigram is one of {', '.join(SOURCES)}, got {unigram!r}")
    frame = frame or ScoringFrame()
    if pcfg is None:
        if unigram == "oracle":
            raise InputError("the exact unigram distribution needs the grammar; without one take train or test counts")
        sides = _model_alone(model, sentences, frame, seed)
        u = None
    else:
        both = score_both(
            model, pcfg, sentences, lengths=lengths, frame=frame, seed=seed, excluded=excluded, transform=transform
        )
        sides = _with_truth(both)
        u = oracle_unigram(both.oracle, frame) if unigram == "oracle" else None
    tokens = _tokens(sides, sentences)
    if u is None:
        u = _counted(sides, tokens, unigram, frame, text, smoothing, ends=model.objective == "causal")
    log_u, parts = u.of(tokens), {**sides.parts, **u.parts}
    return UnigramPerplexity(
        model=model.name,
        objective=model.objective,
        scores=_scores(sides, log_u, parts, seed, exact=u.source == "oracle" and frame.unk == "token"),
        log_model=sides.model,
        log_truth=sides.truth,
        log_unigram=log_u,
        sentence=sides.sentence,
        tokens=tokens,
        unigram=u,
        impossible_model=sides.impossible_model,
        impossible_truth=sides.impossible_truth,
        parts=parts,
    )


def _with_truth(both: BothScored) -> _Sides:
    paired = both.paired
    return _Sides(
        model=paired.model,
        truth=paired.oracle,
        sentence=paired.sentence,
        position=paired.position,
        read=both.oracle.read,
        words=both.oracle.language.terminals,
        impossible_model=paired.impossible_model,
        impossible_truth=paired.impossible_oracle,
        parts=both.parts,
    )


def _model_alone(model: LanguageModel, sentences: Sequence[Sequence[str]], frame: ScoringFrame, seed: int) -> _Sides:
    scores = score_by_model(model, sentences, frame)
    if not len(scores.log_prob):
        raise nothing_scored(scores)
    known = None if model.vocabulary is None else frozenset(model.vocabulary)

    def read(sentence: Sequence[str]) -> list[str]:
        return [word if known is None or word in known else UNKNOWN for word in sentence]

    parts = alone_parts(model, sentences, scores, seed)
    words = () if model.vocabulary is None else (*model.vocabulary, UNKNOWN)
    return _Sides(
        model=scores.log_prob,
        truth=None,
        sentence=scores.sentence,
        position=scores.position,
        read=read,
        words=words,
        impossible_model=scores.impossible,
        impossible_truth=np.empty(0, dtype=np.int32),
        parts=parts,
    )


def _tokens(sides: _Sides, sentences: Sequence[Sequence[str]]) -> list[str]:
    """The token at every scored position."""
    read = {i: [*sides.read(sentences[i]), END] for i in np.unique(sides.sentence).tolist()}
    return [read[i][place] for i, place in zip(sides.sentence.tolist(), sides.position.tolist(), strict=True)]


def _counted(
    sides: _Sides,
    tokens: Sequence[str],
    source: UnigramSource,
    frame: ScoringFrame,
    text: Iterable[Sequence[str]],
    smoothing: float | None,
    *,
    ends: bool,
) -> UnigramModel:
    """A unigram distribution of counts; see `compare_pplu`."""
    texts = [list(sentence) for sentence in text]
    words = sides.words
    of_both = not words
    if of_both:  # a model of pieces, and no grammar: nobody has a list of words, so it is that of both texts
        words = sorted({UNKNOWN, *tokens, *(word for sentence in texts for word in sides.read(sentence))} - {END})
    if source == "test":
        every = ScoringFrame(eos=False)
        return counted_unigram([tokens], "test", read=list, frame=every, ends=False, smoothing=smoothing or 0.0)
    found = counted_unigram(
        texts,
        source,
        read=sides.read,
        frame=frame,
        ends=ends,
        words=words,
        smoothing=SMOOTHING if smoothing is None else smoothing,
    )
    return replace(found, parts={**found.parts, "u-words": f"both-texts/{len(words)}"}) if of_both else found


def _scores(
    sides: _Sides, log_u: FloatArray, parts: Mapping[str, object], seed: int, *, exact: bool
) -> dict[str, Score]:
    """All measures, sentences resampled together; ``exact``: -ln PPLu of the truth is a mutual information."""
    _, row = np.unique(sides.sentence, return_inverse=True)
    known = sides.truth is not None
    truth = sides.truth if sides.truth is not None else np.zeros(len(log_u))
    q, p, u = (np.bincount(row, side).astype(np.float64) for side in (sides.model, truth, log_u))
    n = np.bincount(row).astype(np.float64)
    nats, share = {"unit": "nats/token"}, {"unit": "share"}
    ratios: dict[str, tuple[FloatArray, FloatArray]] = {
        "ppl": (-q, n),
        "bound": (-p, n),
        "ppl_unigram": (-u, n),
        "pplu": (u - q, n),
        "pplu_bound": (u - p, n),
        "mutual_information": (p - u, n),
        "information_learned": (q - u, n),
        "share_learned": (q - u, p - u),
    }
    units = {"mutual_information": nats, "information_learned": nats, "share_learned": share}
    found = {}
    for name, (total, count) in ratios.items():
        if (not known and name in OF_TRUTH) or (not exact and name in EXACT) or count.sum() == 0.0:
            continue
        value, interval = float(total.sum() / count.sum()), resampled_ratio(total, count, seed=seed)
        if name not in units:  # a perplexity
            value, interval = math.exp(value), np.exp(interval)
        found[name] = Score(name, value, signature({**parts, **units.get(name, {})}), *ends(*interval))
    return found
