"""PPLu of a model and of the truth, and the share of the language's mutual information that the model has learned.

``PPLu = exp(-mean ln(q(w|c) / u(w))) = PPL / PPL_u`` (Roh et al. 2020, equation 2). For the truth itself, u being the
exact distribution of the counted tokens, -ln PPLu is the mutual information I of a token and its context; for a model
q it is ``I - KL(P || q)``. Under any other u both have ``KL(P_u || u)`` added, and where a frame skips ``<unk>`` what
a model gives to the tokens that count does not sum to 1: then there is PPLu, of the model and of the truth
(``pplu_bound``), and -ln of the model's (``information_learned``), and neither I nor a share of it. Two models may be
compared by PPLu only with one u, so PPL_u is always reported with it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.comparison import ScorePair, alone_parts, nothing_scored, score_both, score_by_model
from truesource.evaluation.core.exclusion import ROUNDING
from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import digest_sentences, signature, unit_part
from truesource.evaluation.core.transformed import require_order
from truesource.evaluation.measures.bootstrap import ends, resampled_ratio
from truesource.generator.language_model import END, LanguageModel, ScoringFrame
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords
from truesource.grammar.truth import word_counts

SMOOTHING = 0.5  #: added to every count, if requested
Read = Callable[[Sequence[str]], list[str]]
UnigramSource = Literal["oracle", "train", "test", "model"]
SOURCES: tuple[str, ...] = get_args(UnigramSource)
OF_TRUTH = ("bound", "pplu_bound", "mutual_information", "share_learned")  #: measures that need the grammar
EXACT = ("mutual_information", "share_learned")  #: and also its own word frequencies, <unk> counted as a token


@dataclass(frozen=True)
class UnigramModel:
    """Probability of each token, including ``<unk>`` and ``</s>`` if they count."""

    log_prob: Mapping[str, float]  #: nats; exp() sums to 1
    source: str  #: ``oracle``, ``train``, ``test`` or ``model``
    parts: Mapping[str, object]  #: of signatures

    def of(self, tokens: Sequence[str]) -> FloatArray:
        """Return log probabilities of some tokens, (T,), nats.

        Raises:
            InputError: one has no probability.
        """
        try:
            return np.array([self.log_prob[token] for token in tokens])
        except KeyError as error:
            raise InputError(
                f"the {self.source} unigram distribution gives no probability to {error.args[0]!r}; smooth it, or"
                " take the oracle's"
            ) from None

    @property
    def entropy(self) -> float:
        """Nats a token."""
        values = np.array(list(self.log_prob.values()))
        return float(-(np.exp(values) @ values))


def oracle_unigram(oracle: Oracle, frame: ScoringFrame) -> UnigramModel:
    """Return the exact distribution of a token drawn from all tokens that the frame counts.

    ``E c(w) / E T`` of the language as the oracle reads it, under its length condition; without the first words if the
    frame leaves them out, without unknown ones if it skips these. Where the oracle knows exactly which sentences its
    text excludes, the language is without them: ``(E c(w) - sum of P(s) c_s(w)) / (E T - ...)``.

    Raises:
        InputError: expected counts are infinite (spectral radius 1 or more, and no length range), or the first words of
            a transformed text are excluded.
    """
    language = oracle.language
    expected = word_counts(language, oracle.lengths)
    causal = oracle.objective == "causal"
    if not frame.first:
        require_order(oracle.transform, "the exact frequency of words that are not the first")
        expected = expected - language.next_token([], oracle.lengths).probability
    weight = dict(zip(language.vocabulary, np.maximum(expected, 0.0).tolist(), strict=True))
    excluded = oracle.excluded if oracle.excluded is not None and oracle.excluded.exact else None
    if excluded is not None:
        for token, mass in excluded.token_mass(oracle.read, frame.first).items():
            rest = weight[token] - mass
            weight[token] = rest if rest > ROUNDING * weight[token] else 0.0
    if oracle.full_contexts:
        words = frozenset(oracle.vocabulary or ())
        outside = sum(share for word, share in weight.items() if word not in words)
        weight = {**{word: weight[word] for word in oracle.vocabulary or ()}, UNKNOWN: outside}
    if frame.unk == "skip":
        weight.pop(UNKNOWN, None)
    if causal and frame.eos:
        weight[END] = 1.0 if excluded is None else excluded.kept
    return _normalised(weight, "oracle", {"u": "oracle"})


def counted_unigram(
    sentences: Iterable[Sequence[str]],
    source: str,
    *,
    read: Read,
    frame: ScoringFrame,
    ends: bool,
    words: Sequence[str] = (),
    smoothing: float = 0.0,
) -> UnigramModel:
    """Return relative frequencies of the tokens that a frame counts in some sentences, ``(c(w) + d) / (N + d V)``.

    Args:
        sentences: of the train split, of the scored text, or of the model's own samples.
        source: kind of the sentences, for signatures.
        read: a sentence as the oracle reads it, see `truesource.evaluation.core.oracle.Oracle.read`.
        frame: which tokens count.
        ends: whether the model predicts ends of sentences.
        words: that get ``smoothing`` without having been seen.
        smoothing: d, 0 or more; without it words that were not seen have no probability.

    Raises:
        InputError: ``smoothing`` is negative, or no token counts.
    """
    if smoothing < 0.0:
        raise InputError(f"the smoothing of a unigram distribution is 0 or more, got {smoothing:g}")
    counts: Counter[str] = Counter()
    texts = [list(sentence) for sentence in sentences]
    for sentence in texts:
        counts.update(read(sentence)[0 if frame.first else 1 :])
    if frame.unk == "skip":
        counts.pop(UNKNOWN, None)
    if ends and frame.eos:
        counts[END] = sum(bool(text) or frame.first for text in texts)
    weight = dict.fromkeys(words, smoothing) if smoothing else {}
    for token, count in counts.items():
        weight[token] = count + smoothing
    return _normalised(weight, source, {"u": source, "u-data": digest_sentences(texts), "u-smoothing": smoothing})


def _normalised(weight: Mapping[str, float], source: str, parts: Mapping[str, object]) -> UnigramModel:
    total = sum(weight.values())
    if total <= 0.0:
        raise InputError(f"the {source} unigram distribution has no tokens to count")
    log_prob = {token: float(np.log(w / total)) for token, w in weight.items() if w > 0.0}
    return UnigramModel(log_prob, source, parts)


@dataclass(frozen=True, kw_only=True, repr=False)
class UnigramPerplexity(ResultRecords):
    """Result of `compare_pplu`."""

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

    @override
    def as_scores(self) -> list[Score]:
        return keyed(self.scores.values(), model=self.model, objective=self.objective)


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
    setting: Setting,
    *,
    unigram: UnigramSource = "oracle",
    text: Iterable[Sequence[str]] = (),
    smoothing: float | None = None,
) -> UnigramPerplexity:
    """Score a model, and the truth if it is known, and normalise both by one unigram distribution.

    Args:
        model: anything that satisfies `LanguageModel`, the oracle included.
        setting: text and truth; without a grammar the truth is unknown. The word frequencies of the truth exclude
            what the text excludes, too.
        unigram: ``oracle``: exact. ``train``: counts of ``text``. ``test``: counts of the scored tokens, of all
            distributions the one with the smallest perplexity, so that PPLu is largest. ``model``: counts of ``text``,
            samples of the model.
        text: sentences of ``train`` and ``model``.
        smoothing: added to every count, of all words that the grammar or else the model has, or, where neither has a
            list of them (models of pieces), of the words of both texts and ``<unk>``; default .5 for ``train`` and
            ``model``, 0 for ``test``.

    Raises:
        InputError: no sentence is possible for both sides, a token has no unigram probability, or the exact unigram
            distribution is requested without a grammar.
    """
    if unigram not in SOURCES:
        raise InputError(f"unigram is one of {', '.join(SOURCES)}, got {unigram!r}")
    frame, sentences, seed = setting.frame_of(model.objective), setting.sentences, setting.seed
    if setting.language is None:
        if unigram == "oracle":
            raise InputError("the exact unigram distribution needs the grammar; without one take train or test counts")
        sides = _model_alone(model, sentences, frame, seed)
        u = None
    else:
        both = score_both(model, setting)
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


def _with_truth(both: ScorePair) -> _Sides:
    paired = both.paired
    return _Sides(
        model=paired.model,
        truth=paired.oracle,
        sentence=paired.sentence,
        position=paired.position,
        read=both.oracle.targets,
        words=(*both.oracle.words, UNKNOWN) if both.oracle.full_contexts else both.oracle.language.vocabulary,
        impossible_model=paired.impossible_model,
        impossible_truth=paired.impossible_oracle,
        parts=both.parts,
    )


def _model_alone(model: LanguageModel, sentences: Sequence[Sequence[str]], frame: ScoringFrame, seed: int) -> _Sides:
    scores = score_by_model(model, sentences, frame)
    if not len(scores.log_prob):
        raise nothing_scored(scores)
    vocabulary = None if model.vocabulary is None else frozenset(model.vocabulary)

    def read(sentence: Sequence[str]) -> list[str]:
        return [word if vocabulary is None or word in vocabulary else UNKNOWN for word in sentence]

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
    """Return the token at every scored position."""
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
    """Return a unigram distribution of counts; see `compare_pplu`."""
    texts = [list(sentence) for sentence in text]
    words = sides.words
    of_both = not words
    if of_both:  # a model of pieces, and no grammar: no list of words but the words of both texts
        words = sorted({UNKNOWN, *tokens, *(word for sentence in texts for word in sides.read(sentence))} - {END})
    if source == "test":
        every = ScoringFrame(eos=False)
        return counted_unigram([tokens], "test", read=list, frame=every, ends=False, smoothing=smoothing or 0.0)
    counted = counted_unigram(
        texts,
        source,
        read=sides.read,
        frame=frame,
        ends=ends,
        words=words,
        smoothing=SMOOTHING if smoothing is None else smoothing,
    )
    return replace(counted, parts={**counted.parts, "u-words": f"both-texts/{len(words)}"}) if of_both else counted


def _scores(
    sides: _Sides, log_u: FloatArray, parts: Mapping[str, object], seed: int, *, exact: bool
) -> dict[str, Score]:
    """Return all measures, sentences resampled together; ``exact``: -ln PPLu of the truth is a mutual information."""
    _, row = np.unique(sides.sentence, return_inverse=True)
    has_truth = sides.truth is not None
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
    scores = {}
    for name, (total, count) in ratios.items():
        if (not has_truth and name in OF_TRUTH) or (not exact and name in EXACT) or count.sum() == 0.0:
            continue
        value, interval = float(total.sum() / count.sum()), resampled_ratio(total, count, seed=seed)
        if name not in units:  # a perplexity
            value, interval = math.exp(value), np.exp(interval)
        scores[name] = Score(name, value, signature({**parts, **units.get(name, unit_part(name))}), *ends(*interval))
    return scores
