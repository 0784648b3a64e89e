"""Exact sampling from a process: many strings at once, word by word, each from its next-word distribution."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from truesource.generator import _kernels as kernels
from truesource.generator.abilities import require
from truesource.generator.sampler import DRAWN, MAX_NODES, Derivations, Sampler, TruthSampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.documents.truths import TruthsPool
from truesource.grammar.process import Process
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import require_items
from truesource.grammar.truth import Truth

LONGEST_MEAN = 100_000  #: mean number of words above which a range of lengths is required


def sampler_of(truth: Truth, lengths: LengthRange | None = None, *, max_height: int | None = None) -> TruthSampler:
    """Return the sampler of a truth; arguments and errors as in `Sampler`.

    Raises:
        InputError: also if there is a cap on heights, and the truth has no trees.
    """
    if not isinstance(truth, Process):
        return Sampler(require(truth, "parses", "a sampler"), lengths, max_height=max_height)
    if max_height is not None:
        require(truth, "parses", "a highest tree (max_height)")
    grammars = isinstance(truth, DocumentProcess) and isinstance(truth.predictor, TruthsPool)
    return (DocumentSampler if grammars else ProcessSampler)(truth, lengths)


class ProcessSampler(TruthSampler):
    """Sampler of strings of a process, from ``P`` or from ``P(. | low <= length <= high)``.

    A derivation is the row of its word numbers. Under a length range no string is rejected: words are sampled from
    `truesource.grammar.process.Process.given`.

    For documents the language is drawn, too, given all words of each, which gives the joint distribution.

    Args:
        process: process to sample from.
        lengths: condition on the number of words; None for none.

    Raises:
        InputError: there is no string in the range, or no range and the mean length is very large.
    """

    def __init__(self, process: Process, lengths: LengthRange | None = None) -> None:
        super().__init__(process, lengths, np.arange(len(process.vocabulary), dtype=np.int32), 0)
        if lengths is None:
            mean = process.exact.mean_length
            if not mean <= LONGEST_MEAN:
                raise InputError(
                    f"strings of {process.name} have {mean:,.0f} words on average; specify a range of lengths, such as"
                    " 2..100"
                )
        else:
            self.log_mass = float(np.log(process.exact.range_mass(lengths)))

    def draw(self, n: int, state: NDArray[np.uint64], *, max_nodes: int = MAX_NODES) -> Derivations:
        """Draw ``n`` strings; ``state`` (from `random_state`) advances.

        Raises:
            InputError: a string exceeded ``max_nodes`` words.
        """
        require_items(n, "strings to draw", DRAWN)
        if n == 0:
            none = np.empty(0, np.int32)
            return Derivations(none, np.zeros(1, np.int64), none, np.empty(0), self._languages(0))
        step = self._process.at_once
        sizes = (min(step, n - at) for at in range(0, n, step))
        return Derivations.joined([self._draw(size, state, max_nodes) for size in sizes])

    def _draw(self, n: int, state: NDArray[np.uint64], most: int) -> Derivations:
        process, end = self._process.exact.given(self.lengths), len(self._process.vocabulary)
        now, alive = process.begin(n), np.arange(n)
        log_prob = np.full(n, self.log_mass)
        language = self._languages(n)
        places: list[IntArray] = []
        words: list[IntArray] = []
        while alive.size:
            if len(places) > most:
                raise InputError(
                    f"a string of {process.name} exceeded {most:,} words; specify a range of lengths, such as 2..100"
                )
            sampled = process.draw(now, kernels.uniforms(len(alive), state))
            log_prob[alive] += np.log(process.probability(now, sampled))
            going = sampled < end
            if not going.all():
                if isinstance(process, DocumentProcess) and language is not None:
                    ended = process.take(now, ~going)
                    language[alive[~going]] = process.draw_language(ended, kernels.uniforms(len(ended.words), state))
                now, alive, sampled = process.take(now, going), alive[going], sampled[going]
            places.append(alive)
            words.append(sampled)
            now = process.read(now, sampled)
        rows = np.concatenate(places)
        n_tokens = np.bincount(rows, minlength=n)
        ends = np.concatenate([[0], np.cumsum(n_tokens)])
        ordered = np.concatenate(words)[np.argsort(rows, kind="stable")]
        return Derivations(ordered.astype(np.int32), ends, n_tokens.astype(np.int32), log_prob, language)

    def _languages(self, n: int) -> IntArray | None:
        """Return an array for the numbers of the languages of n documents; None if there are none."""
        process = self._process
        numbered = isinstance(process, DocumentProcess) and process.languages is not None
        return np.zeros(n, dtype=np.int64) if numbered else None

    @property
    def _process(self) -> Process:
        assert isinstance(self.truth, Process)
        return self.truth


class DocumentSampler(ProcessSampler):
    """Documents of languages that are not automata: the language of each string is drawn first, then its string.

    Errors are as in `ProcessSampler`, and in the samplers of the languages.
    """

    def __init__(self, process: Process, lengths: LengthRange | None = None) -> None:
        super().__init__(process, lengths)
        assert isinstance(process, DocumentProcess) and isinstance(process.predictor, TruthsPool)
        self.documents, self.pool = process, process.predictor
        self.samplers = [sampler_of(truth) for truth in self.pool.truths]

    def _draw(self, n: int, state: NDArray[np.uint64], most: int) -> Derivations:
        counts = self._counts(n, state)
        document = np.repeat(np.arange(n), counts)
        first = np.concatenate([[0], np.cumsum(counts)])
        again = kernels.uniforms(len(document), state) < self.pool.switch
        again[first[:-1]] = True
        place = kernels.uniforms(len(document), state)
        choice = np.minimum(np.searchsorted(np.cumsum(self.pool.prior), place, side="right"), len(self.pool.prior) - 1)
        language = choice[np.maximum.accumulate(np.where(again, np.arange(len(document)), 0))]
        strings: list[list[str]] = [[]] * len(document)
        for k, sampler in enumerate(self.samplers):
            indices = np.flatnonzero(language == k)
            sampled = sampler.sentences(sampler.draw(len(indices), state, max_nodes=most)) if len(indices) else []
            for i, string in zip(indices.tolist(), sampled, strict=True):
                strings[i] = string
        texts = [
            [word for i in range(first[d], first[d + 1]) for word in (SEPARATOR, *strings[i])][1:] for d in range(n)
        ]
        sizes = np.array([len(text) for text in texts])
        return Derivations(
            np.concatenate([self.documents.encode(text) for text in texts]),
            np.concatenate([[0], np.cumsum(sizes)]),
            sizes.astype(np.int32),
            self.documents.exact.string_log_probs(texts),
            language[first[1:] - 1],
        )

    def _counts(self, n: int, state: NDArray[np.uint64]) -> IntArray:
        """Return the numbers of strings of n documents."""
        count = self.documents.count
        if not count.geometric or count.mean == 1:
            return np.full(n, count.mean)
        place = np.log1p(-kernels.uniforms(n, state)) / np.log1p(-1.0 / count.mean)
        return np.asarray(np.floor(place), dtype=np.int64) + 1
