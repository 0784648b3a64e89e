"""Unigram distributions that a perplexity is normalised by, over the tokens that a frame counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.exclusion import ROUNDING
from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.core.signature import digest_sentences
from truesource.evaluation.core.transformed import require_order
from truesource.generator.language_model import END, ScoringFrame
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

SMOOTHING = 0.5  #: added to every count, where that is asked for
Read = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class UnigramModel:
    """Probability of each token, ``<unk>`` and ``</s>`` among them where they count."""

    log_prob: Mapping[str, float]  #: nats; exp() sums to 1
    source: str  #: ``oracle``, ``train``, ``test`` or ``model``
    parts: Mapping[str, object]  #: of signatures

    def of(self, tokens: Sequence[str]) -> FloatArray:
        """Log probabilities of some tokens, (T,), nats.

        Raises:
            InputError: one has no probability.
        """
        try:
            return np.array([self.log_prob[token] for token in tokens])
        except KeyError as error:
            raise InputError(
                f"the {self.source} unigram distribution gives no probability to {error.args[0]!r}; smooth it, or"
                " take that of the oracle"
            ) from None

    @property
    def entropy(self) -> float:
        """Nats a token."""
        values = np.array(list(self.log_prob.values()))
        return float(-(np.exp(values) @ values))


def oracle_unigram(oracle: Oracle, frame: ScoringFrame) -> UnigramModel:
    """The exact distribution of a token drawn from all tokens that the frame counts.

    ``E c(w) / E T`` of the language as the oracle reads it, under its length condition; without the first words if the
    frame leaves them out, without unknown ones if it skips these. Where the oracle knows exactly which sentences its
    text leaves out, the language is that without them: ``(E c(w) - sum of P(s) c_s(w)) / (E T - ...)``.

    Raises:
        InputError: expected counts are infinite (spectral radius 1 or more, and no length range), or the first words of
            a transformed text are left out.
    """
    language = oracle.language
    expected = expected_counts(language, oracle.lengths).words
    causal = oracle.objective == "causal"
    if not frame.first:
        require_order(oracle.transform, "the exact frequency of words that are not the first")
        expected = expected - language.next_token([], oracle.lengths).probability
    weight = dict(zip(language.terminals, np.maximum(expected, 0.0).tolist(), strict=True))
    excluded = oracle.excluded if oracle.excluded is not None and oracle.excluded.exact else None
    if excluded is not None:
        for token, mass in excluded.token_mass(oracle.read, frame.first).items():
            rest = weight[token] - mass
            weight[token] = rest if rest > ROUNDING * weight[token] else 0.0
    if oracle.vocabulary is not None and not oracle.collapsed:
        weight = {word: weight[word] for word in oracle.vocabulary}
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
    """Relative frequencies of the tokens that a frame counts in some sentences, ``(c(w) + d) / (N + d V)``.

    Args:
        sentences: of the train split, of the scored text, or of the model's own samples.
        source: what they are, for signatures.
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
