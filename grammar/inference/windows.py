"""Exact statistics of short strings inside sentences, and the optimal predictor from k words.

Every occurrence of a string ``w_1..w_k`` of two words or more is split by exactly one binary node ``A -> B C``, after
some ``w_j``. Its expected number is ``sum_A->BC E[A -> B C] sum_j suffix_B(w_1..j) prefix_C(w_j+1..k)`` (Stolcke &
Segal 1994). The pass here goes from left to right and keeps two weights of each symbol after every word: of all symbols
that end with the words so far, and of all symbols that begin right after them. Given a range of lengths both are series
in the number of tokens outside the string; otherwise they are sums over all lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.sparse import csc_matrix, csr_matrix, hstack
from typing_extensions import override

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference._kernels import counts as kernels
from truesource.grammar.inference.batch import Batch, Distributions, run
from truesource.grammar.inference.rare import RareStrings, with_moderate_rules
from truesource.grammar.inference.spines import FreeSpine, NextWeights, RangedSpine, SpineWeights
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.threads import threads

WIDTH = 64  #: strings in a batch
SMALLEST = 1e-300  #: expected numbers below this may have lost digits in float64


def _require_context(words: int) -> None:
    if words < 0:
        raise InputError(f"the number of context words must be 0 or more, got {words}")


class WindowPredictor:
    """Optimal predictor of a token from the k words before it; subclasses differ in further knowledge.

    Args:
        pcfg: the grammar.
        lengths: condition on this range.
    """

    def __init__(self, pcfg: PCFG, lengths: LengthRange | None = None) -> None:
        self.pcfg, self.lengths = pcfg, lengths

    def _at_positions(self, batch: Batch, words: int) -> list[NextWeights]:
        """Return distributions at positions 0 to n of a batch of sentences, up to a factor; 0 after unknown words."""
        raise NotImplementedError

    def blocks(self, batch: Batch, words: int) -> Iterator[Distributions]:
        """Yield the predictor's distributions at positions 0 to n of a batch of sentences.

        They are as in `truesource.grammar.inference.distributions.next_token_blocks`; ``whole`` says whether the
        predictor gives the sentence positive probability.

        Args:
            batch: result of ``pcfg.exact.charts().batches(sentences, lengths)``.
            words: k, 0 or more.
        """
        after, observed, logs = self._observed(batch, words)
        whole = np.asarray(np.isfinite(logs).all(axis=0))
        for j, each in enumerate(after):
            probability, states = self._table(each)
            possible = np.asarray(probability.any(axis=1))
            yield Distributions(j, batch.members, observed[j], probability, possible, whole, logs[j], states)

    def log_probs(self, sentences: Sequence[Sequence[str]], words: int) -> list[FloatArray]:
        """Return ln P_k(token | the k words before it) for each sentence, (n+1,): the words, then the end.

        -inf for an impossible token.

        Args:
            sentences: at least one token each.
            words: k, 0 or more.

        Raises:
            InputError: ``words`` is negative.
        """
        result = [np.full(len(s) + 1, -np.inf) for s in sentences]

        def task(batch: Batch) -> FloatArray:
            return self._observed(batch, words)[2]

        work = self.pcfg.exact.charts().batches(sentences, self.lengths)
        for batch, table in run(task, work, f"exact probabilities given {words} words", len(sentences)):
            for column, members in enumerate(batch.members):
                for i in members:
                    result[i][:] = table[:, column]
        return result

    def _observed(self, batch: Batch, words: int) -> tuple[list[NextWeights], IntArray, FloatArray]:
        """Return distributions at each position, the observed tokens (n+1, W), and their ln P, (n+1, W)."""
        _require_context(words)
        end = np.full(batch.words.shape[1], len(self.pcfg.vocabulary))
        observed = np.vstack([batch.words, end]).astype(np.int64)
        after = self._at_positions(batch, words)
        logs = np.stack([self._log_shares(each, column) for each, column in zip(after, observed, strict=True)])
        for j in range(len(logs)):
            in_grammar = (observed[max(j - words, 0) : j + 1] >= 0).all(axis=0)
            rare = np.flatnonzero((logs[j] == -np.inf) & in_grammar)
            if rare.size:
                different, column = np.unique(observed[: j + 1, rare], axis=1, return_inverse=True)
                logs[j, rare] = self._log_rare(different.T, words)[column.ravel()]
        return after, observed, logs

    def _log_rare(self, texts: IntArray, words: int) -> FloatArray:
        """Return ln P_k of the last tokens of prefixes of sentences, (N, n), that underflow float64, (N,)."""
        raise NotImplementedError

    def _log_last(self, pcfg: PCFG, texts: IntArray) -> FloatArray:
        """Return ln P(last token | all before it) of rows of word numbers (N, n); a last number V is the end, (N,)."""
        n_words, n = len(self.pcfg.vocabulary), texts.shape[1]
        result = np.full(len(texts), -np.inf)
        for ended in (False, True):
            rows = np.flatnonzero((texts[:, -1] == n_words) == ended)
            if not rows.size or (ended and n == 1):
                continue
            names = [[pcfg.vocabulary[i] for i in text] for text in (texts[rows, :-1] if ended else texts[rows])]
            logs = pcfg.exact.causal_log_probs(names, self.lengths)
            result[rows] = [row[n - 1] for row in logs]
        return result

    def _after_prefixes(self, pcfg: PCFG, words: Int32Array) -> list[NextWeights]:
        """Return distributions after the first 0 to n of ``words`` (n, W), relative to its probability."""
        charts = pcfg.exact.charts().causal(words, self.lengths)
        result = []
        for j in range(len(words) + 1):
            possible = np.isfinite(charts.log_conditional[:j]).all(axis=0)
            result.append(NextWeights(charts.starts[j] * possible, np.exp(charts.log_stop[j]) * possible))
        return result

    @cached_property
    def _leaf(self) -> csc_matrix[np.float64]:
        """P(word | symbol), with one further column for `ANY`, (S, V+1)."""
        exact = self.pcfg.exact
        return csc_matrix(hstack([exact.emission, csr_matrix(exact.lexical_sums[:, None])]))

    def _expected(self, after: NextWeights, last: IntArray) -> FloatArray:
        """Return the expected number of each string with one word after it (V is the end, -1 none), (W,)."""
        n_words = len(self.pcfg.vocabulary)
        words = self._leaf.T[np.clip(last, 0, n_words - 1)]
        counts = np.asarray(words.multiply(after.states.T) @ np.ones(words.shape[1]))
        return np.where(last == n_words, after.end, np.where(last < 0, 0.0, counts))

    def _shares(self, after: NextWeights, last: IntArray) -> FloatArray:
        """Return the share of one word in all continuations of each string, as in `_expected`, (W,); 0 without any."""
        counts, total = self._expected(after, last), self._totals(after)
        return np.divide(counts, total, out=np.zeros(len(counts)), where=total > 0.0)

    def _log_shares(self, after: NextWeights, last: IntArray) -> FloatArray:
        """Return ln of `_shares`, (W,); -inf also if float64 may have lost digits of a number."""
        counts, total = self._expected(after, last), self._totals(after)
        return np.where((counts < SMALLEST) | (total < SMALLEST), -np.inf, _log(self._shares(after, last)))

    def _totals(self, after: NextWeights) -> FloatArray:
        """Return the expected number of each string, (W,)."""
        return np.asarray(self.pcfg.exact.lexical_sums @ after.states + after.end)

    def _table(self, after: NextWeights) -> tuple[FloatArray, FloatArray]:
        """Return P(next word or end) (W, V+1), and weights of symbols over it (W, S), relative to their total."""
        total = self._totals(after)
        scale = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0.0)
        states = after.states * scale
        words = np.asarray(self.pcfg.exact.emission.T @ states)
        table = np.column_stack([words.T, after.end * scale])
        return table, states.T


class Windows(WindowPredictor):
    """Exact numbers of strings in sentences of one grammar, and the optimal predictor from k words without position.

    P_k is ``E[number of wv] / E[number of w]``. The first k tokens have fewer words before them, and the beginning of
    the sentence: there it is the exact probability.

    Args:
        pcfg: the grammar.
        lengths: condition on this range.

    Raises:
        InputError: without ``lengths``, derivations have no finite mean length; with them, no sentence has such a
            length.
    """

    def __init__(self, pcfg: PCFG, lengths: LengthRange | None = None) -> None:
        super().__init__(pcfg, lengths)
        self._spine = FreeSpine(pcfg) if lengths is None else RangedSpine(pcfg, lengths)

    @cached_property
    def _rare(self) -> RareStrings:
        return RareStrings(self.pcfg, with_any_word(self.pcfg), self.lengths)

    @cached_property
    def _moderate(self) -> Windows:
        """The windows of a grammar with the same possible strings, none of them rare."""
        return Windows(with_moderate_rules(self.pcfg, self.lengths), self.lengths)

    @cached_property
    def _chains(self) -> csr_matrix[np.float64]:
        return csr_matrix(self.pcfg.exact.unary_closure)

    @cached_property
    def _upward(self) -> Int32Array:
        """The binary rules as left child, right child, parent, (R, 3)."""
        return np.ascontiguousarray(self.pcfg.binary[:, [1, 2, 0]])

    def following(self, windows: IntArray) -> NextWeights:
        """Return the continuations of strings of k word numbers (`ANY` is any word), (W, k) with k at least 1."""
        *_, result = self.levels(windows)
        return result

    def levels(self, windows: IntArray) -> Iterator[NextWeights]:
        """Return the continuations of the first 1, 2, .. k words of strings, as in `following`.

        There is one pass for every distinct prefix of a string, so sorted strings cost less.
        """
        rules, prob, upward = self.pcfg.binary, self.pcfg.exact.pairs.prob, self._upward
        ends: list[SpineWeights] = []
        begins: list[SpineWeights] = []
        spans: list[list[FloatArray]] = []
        columns: list[IntArray] = []
        log_scale: list[FloatArray] = []
        for t in range(1, windows.shape[1] + 1):
            _, first, column = np.unique(windows[:, :t], axis=0, return_index=True, return_inverse=True)
            above = [before[first] for before in columns]
            leaf = self._leaf[:, windows[first, t - 1]].toarray()
            scale = leaf.max(axis=0)
            leaf /= np.where(scale > 0.0, scale, 1.0)
            log_scale.append(_log(scale) + (log_scale[-1][above[-1]] if above else 0.0))
            size = self._spine.numbers(t)
            end, begin = (SpineWeights.zeros(size, *leaf.shape) for _ in range(2))
            if t == 1:
                end.value[0] = leaf
                end.present[0] = leaf.any(axis=1)
            now = self._spans(spans, above, leaf)
            for s in range(1, t):
                kernels.join_series(upward, prob, *ends[s - 1], above[s - 1], now[s - 1], *end)
                kernels.join_series(rules, prob, *begins[s - 1], above[s - 1], now[s - 1], *begin)
            ends.append(self._spine.below(end))
            self._spine.across(ends[-1], begin)
            begins.append(self._spine.beside(begin))
            spans.append(now)
            columns.append(column.ravel())
            result = self._spine.following(ends[-1], begins[-1], t)
            yield NextWeights(result.states[:, columns[-1]], result.end[columns[-1]], log_scale[-1][columns[-1]])

    def _spans(self, earlier: list[list[FloatArray]], above: list[IntArray], leaf: FloatArray) -> list[FloatArray]:
        """Return inside weights (S, W) of words s+1 to t for s = 1..t-1, from spans that end earlier."""
        t = len(above) + 1
        rules, prob = self._upward, self.pcfg.exact.pairs.prob
        result: list[FloatArray] = [np.zeros(0)] * (t - 1)
        for s in range(t - 1, 0, -1):
            bare = SpineWeights.zeros(1, *leaf.shape)
            if s == t - 1:
                bare.value[0] = leaf
            for m in range(s + 1, t):
                left = earlier[m - 1][s - 1][None]
                kernels.join_series(rules, prob, left, left.any(axis=2), above[m - 1], result[m - 1], *bare)
            result[s - 1] = self._chains @ bare.value[0]
        return result

    def counts(self, strings: Sequence[Sequence[str]]) -> FloatArray:
        """Return the expected number of occurrences of each string in a sentence, (N,); 0 with unknown words."""
        result = np.zeros(len(strings))
        encoded = [self.pcfg.encode(string).astype(np.int64) for string in strings]
        by_size: dict[int, list[int]] = {}
        for i, ids in enumerate(encoded):
            if not len(ids):
                raise InputError(f"string {i + 1} has no words; give one or more")
            if (ids >= 0).all():
                by_size.setdefault(len(ids), []).append(i)
        for size, places in by_size.items():
            table = np.stack([encoded[i] for i in places])
            if size == 1:
                result[places] = (self._spine.over_words @ self.pcfg.exact.emission)[table[:, 0]]
                continue
            for rows, after in self.batches(table[:, :-1]):
                result[np.array(places)[rows]] = self._expected(after, table[rows, -1]) * np.exp(after.log_scale)
        return result

    def batches(self, windows: IntArray) -> Iterator[tuple[IntArray, NextWeights]]:
        """Yield `following` for many windows (N, k) on all cores: row numbers, continuations; equal rows cost once."""
        from joblib import Parallel, delayed

        from truesource.grammar.support.printable import meter

        different, of_row = np.unique(windows, axis=0, return_inverse=True)
        order = np.argsort(of_row.ravel(), kind="stable")
        ends = np.searchsorted(of_row.ravel()[order], np.arange(len(different) + 1))
        starts = range(0, len(different), WIDTH)
        parallel = Parallel(n_jobs=threads(), prefer="threads", return_as="generator")
        work = parallel(delayed(self.following)(different[at : at + WIDTH]) for at in starts)
        with meter(f"exact windows of {windows.shape[1]} words", len(different)) as progress:
            for at, after in zip(starts, work, strict=True):
                rows = order[ends[at] : ends[min(at + WIDTH, len(different))]]
                column = of_row.ravel()[rows] - at
                progress.advance(after.states.shape[1])
                scale = np.asarray(after.log_scale)[column]
                yield rows, NextWeights(after.states[:, column], after.end[column], scale)

    def next_words(self, windows: IntArray) -> FloatArray:
        """Return P_k of each word and the end after strings of k word numbers (N, k), k at least 1, anywhere, (N, V+1).

        0 after strings that are in no sentence.

        Raises:
            InputError: k is 0; use `log_probs`.
        """
        if windows.shape[1] == 0:
            raise InputError("a window has one word or more; use log_probs for 0 words of context")
        result = np.zeros((len(windows), len(self.pcfg.vocabulary) + 1))
        for rows, after in self.batches(windows):
            self._require_known(windows[rows], after)
            result[rows] = self._table(after)[0]
        return result

    def _require_known(self, windows: IntArray, after: NextWeights) -> None:
        """Refuse possible windows whose expected number underflows float64.

        Raises:
            InputError: there is one.
        """
        nothing = windows[self._totals(after) < SMALLEST]
        if not len(nothing):
            return
        for rows, possible in self._moderate.batches(nothing):
            some = rows[self._totals(possible) > 0.0]
            if len(some):
                text = " ".join(self.pcfg.vocabulary[i] if i >= 0 else "*" for i in nothing[some[0]])
                raise InputError(
                    f"the string {text!r} is so rare that its expected number, and the numbers of its continuations,"
                    " underflow float64; choose shorter windows"
                )

    @override
    def log_probs(self, sentences: Sequence[Sequence[str]], words: int) -> list[FloatArray]:
        # repeated windows are computed once
        _require_context(words)
        result = [np.empty(len(s) + 1) for s in sentences]
        if words == 0:
            law = _log(self._table(NextWeights(self._spine.over_words[:, None], np.ones(1)))[0][0])
            rows = [np.append(self.pcfg.encode(s), len(self.pcfg.vocabulary)).astype(np.int64) for s in sentences]
            seen = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *rows]))
            rare = seen[(seen >= 0) & (law[seen] == -np.inf)]
            law[rare] = self._log_rare(rare[:, None], 0)
            return [np.where(row < 0, -np.inf, law[row]) for row in rows]
        heads = self.pcfg.exact.causal_log_probs([s[:words] for s in sentences], self.lengths)
        windows: list[IntArray] = []
        places: list[IntArray] = []
        for i, (sentence, head) in enumerate(zip(sentences, heads, strict=True)):
            of_prefix = min(words, len(sentence) + 1)
            result[i][:of_prefix] = head[:of_prefix]
            ids = np.append(self.pcfg.encode(sentence), len(self.pcfg.vocabulary)).astype(np.int64)
            if len(ids) > words:
                windows.append(sliding_window_view(ids, words + 1))
                places.append(np.stack([np.full(len(ids) - words, i), np.arange(words, len(ids))], axis=1))
        if windows:
            at = np.concatenate(places)
            value = self._log_following(np.concatenate(windows))
            starts = np.flatnonzero(np.diff(at[:, 0], prepend=-1))
            for whose, logs in zip(np.split(at, starts[1:]), np.split(value, starts[1:]), strict=True):
                result[whose[0, 0]][words:] = logs
        return result

    def _log_following(self, strings: IntArray) -> FloatArray:
        """Return ln P(last | the k before) of rows of k+1 word numbers, V is the end and -1 an unknown word, (N,)."""
        result = np.full(len(strings), -np.inf)
        in_grammar = np.flatnonzero((strings >= 0).all(axis=1))
        for some, after in self.batches(strings[in_grammar, :-1]):
            result[in_grammar[some]] = self._log_shares(after, strings[in_grammar[some], -1])
        rare = in_grammar[result[in_grammar] == -np.inf]
        if rare.size:
            different, of_row = np.unique(strings[rare], axis=0, return_inverse=True)
            result[rare] = self._log_rare(different, strings.shape[1] - 1)[of_row.ravel()]
        return result

    def _log_rare(self, texts: IntArray, words: int) -> FloatArray:
        if texts.shape[1] <= words:
            return self._log_last(self.pcfg, texts)
        strings, result = texts[:, texts.shape[1] - words - 1 :], np.full(len(texts), -np.inf)
        for place in np.flatnonzero(self._possible(strings)):
            *window, last = strings[place].tolist()
            ended = last == len(self.pcfg.vocabulary)
            log_number = self._rare.log_numbers(window)[1] if ended else self._rare.log_numbers([*window, last])[0]
            whole = self._rare.log_numbers(window)[0] if window else self._log_tokens
            if not math.isfinite(log_number):
                text = " ".join(
                    [*(self.pcfg.vocabulary[i] for i in window), "" if ended else self.pcfg.vocabulary[last]]
                )
                raise InputError(f"the string {text!r} is possible, but too rare for float64; choose shorter windows")
            result[place] = log_number - whole
        return result

    def _possible(self, strings: IntArray) -> BoolArray:
        """Return which strings of word numbers, with V as the end, occur in sentences, (N,)."""
        moderate = self._moderate
        if strings.shape[1] == 1:
            law = moderate._table(NextWeights(moderate._spine.over_words[:, None], np.ones(1)))[0][0]
            return np.asarray(law[strings[:, 0]] > 0.0)
        result = np.zeros(len(strings), dtype=bool)
        for rows, after in moderate.batches(strings[:, :-1]):
            result[rows] = moderate._shares(after, strings[rows, -1]) > 0.0
        return result

    @property
    def _log_tokens(self) -> float:
        """Ln of the expected number of tokens of a sentence, including its end."""
        return math.log(float(self.pcfg.exact.lexical_sums @ self._spine.over_words) + 1.0)

    def _at_positions(self, batch: Batch, words: int) -> list[NextWeights]:
        n, width = batch.words.shape
        if words == 0:
            law = NextWeights(self._spine.over_words[:, None].repeat(width, axis=1), np.ones(width))
            return [law] * (n + 1)
        heads = self._after_prefixes(self.pcfg, batch.words[: max(words - 1, 1)])[:words]
        positions = n + 1 - len(heads)
        if not positions:
            return heads
        windows = np.concatenate([batch.words[j : j + words].T for j in range(positions)]).astype(np.int64)
        states, end = np.zeros((len(self.pcfg.symbols), len(windows))), np.zeros(len(windows))
        in_grammar = np.flatnonzero((windows >= 0).all(axis=1))
        for some, after in self.batches(windows[in_grammar]):
            self._require_known(windows[in_grammar[some]], after)
            states[:, in_grammar[some]], end[in_grammar[some]] = after.states, after.end
        parts = (slice(j * width, (j + 1) * width) for j in range(positions))
        return heads + [NextWeights(states[:, part], end[part]) for part in parts]


def with_any_word(pcfg: PCFG) -> PCFG:
    """Return the grammar with a further last word that represents any: each word becomes it half of the time.

    A string of m words in which it represents the unknown ones has 2^-m times the probability of all sentences with the
    known words at their positions, for every set of known words.
    """
    sums = pcfg.exact.log_lexical_sums
    tags = np.flatnonzero(np.isfinite(sums))
    name = "<any>"
    while name in pcfg.word_ids:
        name += "_"
    hidden = np.stack([tags, np.full(len(tags), len(pcfg.vocabulary))], axis=1)
    return replace(
        pcfg,
        vocabulary=(*pcfg.vocabulary, name),
        lexical=np.concatenate([pcfg.lexical, hidden]),
        lexical_logp=np.concatenate([pcfg.lexical_logp, sums[tags]]) - math.log(2.0),
    )


class PlacedWindows(WindowPredictor):
    """Optimal predictor from k words and the number of words before them.

    Its input, k words after words that represent any, is a prefix of a sentence, whose next word has an exact
    distribution. So one token costs as much as the prefix of its sentence.

    Args:
        pcfg: the grammar.
        lengths: condition on this range.
    """

    def __init__(self, pcfg: PCFG, lengths: LengthRange | None = None) -> None:
        super().__init__(pcfg, lengths)
        self._hiding = with_any_word(pcfg)

    def _at_positions(self, batch: Batch, words: int) -> list[NextWeights]:
        result = []
        hidden = len(self.pcfg.vocabulary)
        for j in range(len(batch.words) + 1):
            seen = batch.words[max(j - words, 0) : j]
            before = np.full((j - len(seen), seen.shape[1]), hidden, dtype=np.int32)
            different, column = np.unique(np.vstack([before, seen]), axis=1, return_inverse=True)
            last = self._after_prefixes(self._hiding, np.ascontiguousarray(different))[-1]
            result.append(NextWeights(last.states[:, column.ravel()], last.end[column.ravel()]))
        return result

    def _log_rare(self, texts: IntArray, words: int) -> FloatArray:
        hidden = texts.copy()
        hidden[:, : max(texts.shape[1] - words - 1, 0)] = len(self.pcfg.vocabulary)
        logs, is_word = self._log_last(self._hiding, hidden), texts[:, -1] < len(self.pcfg.vocabulary)
        return np.where(is_word, logs + math.log(2.0), logs)  # words have half their probability there


def _log(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(values)
