"""The exact truth of a split that excludes the sentences of earlier splits.

Such a split follows ``P(w | w not in S) = P(w) / (1 - P(S))`` for w outside S, the set of all sentences of the earlier
splits. With ``M(x)`` for the summed probability of the sentences of S that match a pattern x (begin so, or agree in
all words but one), every conditional probability is known exactly:

- causal: ``(P(u v) - M(u v)) / (P(u) - M(u))`` for the next token v after the words u. All factors of a sentence
  together are its probability, so its log probability rises by ``-ln(1 - P(S))``;
- masked: ``(P(w) - M(w)) / (P(w with a gap) - M(w with a gap))``: it differs from the score without the condition only
  where S has a sentence that differs from w in that very word.

Where rare words are collapsed into ``<unk>``, S is collapsed too, and several sentences become one: M(w) is then not 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from truesource.evaluation.core.signature import digest_sentences
from truesource.evaluation.core.transformed import original_digest
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.truth import Truth

if TYPE_CHECKING:
    from truesource.generator.corpus import Corpus


Words = tuple[str, ...]
Read = Callable[[Sequence[str]], Sequence[str]]
UNCORRECTED = "uncorrected"  #: in signatures: the split excludes sentences, the truth does not
ROUNDING = 1e-11  #: a share of probability below this counts as zero


@dataclass(frozen=True, eq=False)
class Exclusion:
    """Sentences that do not occur in a split, and their log probabilities under the grammar.

    If a corpus excludes so many sentences that their probability was only estimated, ``sentences`` is empty and
    ``exact`` false: nothing is corrected, and the grammar's scores remain.
    """

    sentences: tuple[Words, ...]  #: (S,) each once
    log_prob: FloatArray  #: (S,) nats, under the length condition; -inf outside it
    lengths: LengthRange | None  #: the length condition
    exact: bool = True

    def __repr__(self) -> str:
        return f"Exclusion({len(self.sentences):,} sentences, {self.probability:.4g} of the probability)"

    @classmethod
    def of(
        cls, corpus: Corpus, split: str, truth: Truth, lengths: LengthRange | None, *, scored: bool = True
    ) -> Exclusion | None:
        """Collect the sentences that a split excludes; None if splits may share sentences, and for the first split.

        Args:
            corpus: the folder.
            split: name of the split to score.
            truth: the grammar or process that the corpus was sampled from, or the grammar of a transformed text.
            lengths: the condition that the split is scored under.
            scored: False: the sentences count as unknown, and nothing is corrected.
        """
        record = corpus.excluded(split)
        if record is None:
            return None
        if not scored or not record["exact"]:
            return cls((), np.empty(0), lengths, exact=False)
        names = list(corpus.splits)
        read = corpus.sentences if original_digest(truth) != truth.digest else corpus.originals
        earlier = (sentence for name in names[: names.index(split)] for sentence in read(name))
        return cls.from_sentences(earlier, truth, lengths)

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sequence[str]], truth: Truth, lengths: LengthRange | None) -> Exclusion:
        """Score the sentences that a language excludes, each once.

        Raises:
            InputError: a sentence has no tokens, or no sentence has such a length.
        """
        different = tuple(dict.fromkeys(tuple(sentence) for sentence in sentences))
        return cls(different, truth.exact.string_log_probs(different, lengths), lengths)

    def in_pieces(self, cut: Callable[[Sequence[Sequence[str]]], list[list[str]]]) -> Exclusion:
        """Return the same sentences as the pieces that ``cut`` makes of them; they have the same probabilities."""
        return replace(self, sentences=tuple(map(tuple, cut(self.sentences))))

    @property
    def part(self) -> str:
        """Part of signatures: how many sentences are excluded, and a digest of them; or ``uncorrected``."""
        return f"{len(self.sentences)}/{digest_sentences(self.sentences)}" if self.exact else UNCORRECTED

    @property
    def kept(self) -> float:
        """1 - P(S), the remaining probability; 1 if nothing is corrected."""
        return 1.0 - self.probability

    @cached_property
    def probability(self) -> float:
        """P(S), 0 to 1, of the sentences that are known."""
        return float(np.exp(self.log_prob).sum())

    def causal(self, rows: Sequence[FloatArray], seen: Sequence[Sequence[str]], read: Read) -> list[FloatArray]:
        """Return ln P(token | left context, not in S) from ln P(token | left context), for each sentence (n+1,), nats.

        The sum of a row is exact to rounding. A single token is uncertain by about 1e-13 divided by the share of its
        context's probability that S leaves.

        Args:
            rows: for each sentence of n tokens, (n+1,); with -inf if it is impossible.
            seen: the sentences as the truth reads them.
            read: how the truth reads the sentences of S.
        """
        tree = _PrefixTree(seen)
        log_mass = np.full(len(tree), -np.inf)
        for excluded, log_prob in self.possible():
            nodes = tree.along(read(excluded))
            log_mass[nodes] = np.logaddexp(log_mass[nodes], log_prob)
        corrected = []
        for row, sentence in zip(rows, seen, strict=True):
            if not np.isfinite(row).all():
                corrected.append(row)
                continue
            before = np.concatenate([[0.0], np.cumsum(row)])  # ln P of each prefix, of the whole sentence at last
            rest = before + log_rest(log_mass[tree.along(sentence)] - before)
            corrected.append(np.diff(rest) if np.isfinite(rest).all() else np.full(len(row), -np.inf))
        return corrected

    def masked(
        self, rows: Sequence[FloatArray], seen: Sequence[Sequence[str]], language: PCFG, read: Read
    ) -> list[FloatArray]:
        """Return ln P(token | all others, not in S) from ln P(token | all others), for each sentence (n,), nats.

        Args:
            rows: for each sentence of n tokens, (n,); with -inf if it is impossible.
            seen: the sentences as the truth reads them.
            language: the grammar of what the truth reads.
            read: how the truth reads the sentences of S.
        """
        log_mass = dict.fromkeys((gap for sentence in seen for gap in _gaps(sentence)), -np.inf)
        whole = dict.fromkeys(map(tuple, seen), -np.inf)
        for excluded, log_prob in self.possible():
            words = tuple(read(excluded))
            if words in whole:
                whole[words] = float(np.logaddexp(whole[words], log_prob))
            for gap in _gaps(words):
                if gap in log_mass:
                    log_mass[gap] = float(np.logaddexp(log_mass[gap], log_prob))
        masses = [np.array([log_mass[gap] for gap in _gaps(sentence)]) for sentence in seen]
        changed = [i for i, mass in enumerate(masses) if np.isfinite(mass).any() and np.isfinite(rows[i]).all()]
        corrected = list(rows)
        log_probs = language.exact.string_log_probs([seen[i] for i in changed], self.lengths)
        for i, log_prob in zip(changed, log_probs.tolist(), strict=True):
            rest = log_rest(np.array([whole[tuple(seen[i])] - log_prob]))[0]
            corrected[i] = (
                rows[i] + rest - log_rest(rows[i] + masses[i] - log_prob) if np.isfinite(rest) else rest + rows[i]
            )
        return corrected

    def token_mass(self, read: Read, first: bool) -> dict[str, float]:
        """Return the expected number of each token in a sentence, counted in S only: sum of P(s) c_s(token).

        Args:
            read: how the truth reads the sentences of S.
            first: whether the first token of a sentence counts.
        """
        mass: dict[str, float] = {}
        for excluded, log_prob in self.possible():
            probability = math.exp(log_prob)
            for token in read(excluded)[0 if first else 1 :]:
                mass[token] = mass.get(token, 0.0) + probability
        return mass

    def possible(self) -> Iterator[tuple[Words, float]]:
        """Yield sentences of S that the grammar can make under the length condition, and ln P of each, nats."""
        for sentence, log_prob in zip(self.sentences, self.log_prob.tolist(), strict=True):
            if log_prob > -np.inf:
                yield sentence, log_prob


def disjoint_part(excluded: Exclusion | None, *, corrected: bool = True) -> dict[str, object]:
    """Return parts of signatures on a split that leaves sentences out; they have it after ``given``.

    Args:
        excluded: what the split excludes; None: nothing, and signatures do not mention it.
        corrected: whether the truth excludes it too, if possible.
    """
    if excluded is None:
        return {}
    return {"disjoint": excluded.part if corrected else UNCORRECTED}


class _PrefixTree:
    """Prefixes of some sentences, the whole sentences with their end included, as numbers of nodes."""

    def __init__(self, sentences: Iterable[Sequence[str]]) -> None:
        self._next: dict[tuple[int, str | None], int] = {}
        for sentence in sentences:
            node = 0
            for word in (*sentence, None):
                node = self._next.setdefault((node, word), len(self._next) + 1)

    def __len__(self) -> int:
        return len(self._next) + 1

    def along(self, sentence: Sequence[str]) -> list[int]:
        """Return nodes of its prefixes from the empty one, then of its end, as far as the tree has them."""
        nodes = [0]
        for word in (*sentence, None):
            node = self._next.get((nodes[-1], word))
            if node is None:
                break
            nodes.append(node)
        return nodes


def _gaps(sentence: Sequence[str]) -> Iterator[tuple[int, Words]]:
    """Yield a sentence without each of its words in turn, and the position of the gap."""
    words = tuple(sentence)
    for i in range(len(words)):
        yield i, words[:i] + words[i + 1 :]


def log_rest(log_share: FloatArray) -> FloatArray:
    """Return ``ln(1 - share)`` of shares of at most 1; -inf if only rounding is left."""
    rest = -np.expm1(np.minimum(log_share, 0.0))
    return np.log(rest, out=np.full_like(rest, -np.inf), where=rest > ROUNDING)
