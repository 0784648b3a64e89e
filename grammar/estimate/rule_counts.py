"""Expected uses of every rule of a grammar in sentences without trees, brackets given or not (inside-outside)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truesource.grammar._kernels.rules import UnaryRules
from truesource.grammar.inference.batch import BUDGET, Batch, require_memory, run
from truesource.grammar.inference.linear_charts import LinearCharts
from truesource.grammar.inference.rules import sparse_rows
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.grammar.tree import Tree

Span = tuple[int, int]
Sentences = Sequence[Sequence[str]]
Brackets = Sequence[Sequence[Span]]
LOST = 1e-9  #: share of a sentence's probability that charts may lose
WIDTH = 32  #: most sentences in a batch: wider ones compute more zeros, narrower ones read the rules more often


@dataclass(frozen=True, eq=False)
class RuleCounts:
    """Expected uses of every rule in a text, in the order of the grammar's arrays; made by `expected_rule_counts`."""

    binary: FloatArray  #: (R,)
    unary: FloatArray  #: (Q,)
    lexical: FloatArray  #: (L,)
    log_probs: FloatArray  #: (N,) ln P(sentence, brackets respected), nats; -inf where there is no such derivation
    impossible: tuple[int, ...]  #: sentences without a derivation, counted from 1; they add nothing


def tree_brackets(tree: Tree) -> list[Span]:
    """The spans ``(i, j)`` of a tree's nodes, words i to j-1, each once: full brackets for its sentence."""
    ends: list[Span] = []
    end = 0
    stack: list[tuple[Tree | str, int]] = [(tree, -1)]
    while stack:
        node, began = stack.pop()
        if isinstance(node, str):
            end += 1
        elif began >= 0:
            ends.append((began, end))
        else:
            stack.append((node, end))
            stack.extend((child, -1) for child in reversed(node.children))
    return sorted(set(ends))


def expected_rule_counts(pcfg: PCFG, sentences: Sentences, *, brackets: Brackets | None = None) -> RuleCounts:
    """How often each rule is expected in the derivations of a text, given its words (Lari and Young 1990).

    Exact, unary cycles and left recursion included, in O(n^3 P + n^2 (R + Q)) for n words, P child pairs, R binary
    and Q unary rules; in O(n (R + Q)) where the grammar is linear and there are no brackets. Each count is the
    derivative of the text's log likelihood by the log of that rule's probability.

    Args:
        pcfg: the grammar.
        sentences: tokenised; equal ones count as often as they stand there.
        brackets: for each sentence its known constituents ``(i, j)``, words i to j-1, as many as are known (none: an
            empty list); derivations with a node whose span crosses one of them are left out (Pereira & Schabes 1992).

    Raises:
        InputError: there are no sentences, one has no tokens, or brackets cross each other or leave their sentence.
    """
    return Text(pcfg, sentences, brackets).counts(pcfg)


class Text:
    """Sentences in batches, equal ones with equal brackets in one column; good for every grammar over these words."""

    def __init__(self, pcfg: PCFG, sentences: Sentences, brackets: Brackets | None = None) -> None:
        encoded = [pcfg.encode(sentence) for sentence in sentences]
        self.size = len(encoded)
        self.lengths = np.array([len(words) for words in encoded], dtype=np.int64)
        if not encoded:
            raise InputError("there are no sentences to estimate from; give at least one")
        if not self.lengths.all():
            raise InputError(f"sentence {int(np.argmin(self.lengths)) + 1} has no tokens; remove it")
        if brackets is not None and len(brackets) != self.size:
            raise InputError(f"there are brackets for {len(brackets)} sentences, not {self.size}; give each its own")
        given = brackets if brackets is not None else [()] * self.size
        self._brackets = [_checked(spans, len(w), i) for i, (spans, w) in enumerate(zip(given, encoded, strict=True))]
        self._sentences = sentences
        columns: dict[tuple[bytes, tuple[Span, ...]], list[int]] = {}
        for i, words in enumerate(encoded):
            columns.setdefault((words.tobytes(), self._brackets[i]), []).append(i)
        by_length: dict[int, list[list[int]]] = {}
        for members in columns.values():
            by_length.setdefault(len(encoded[members[0]]), []).append(members)
        self._work: list[Batch] = []
        linear = pcfg.exact.linear is not None and not any(self._brackets)
        for n in sorted(by_length, reverse=True):
            cells = 4 * n if linear else n * (n + 1)
            require_memory(n, 8 * len(pcfg.symbols) * cells, min(by_length[n])[0] + 1)
            width = int(np.clip(BUDGET // (8 * len(pcfg.symbols) * cells), 1, WIDTH))
            for at in range(0, len(by_length[n]), width):
                some = by_length[n][at : at + width]
                words = np.ascontiguousarray(np.stack([encoded[m[0]] for m in some], axis=1))
                self._work.append(Batch(words, tuple(map(tuple, some))))

    def counts(self, pcfg: PCFG, description: str = "expected counts", *, rules: bool = True) -> RuleCounts:
        """The E-step; without ``rules``, only the log probabilities (the counts are then zero).

        Raises:
            InputError: charts have no room for more than 1e-9 of the probability of a sentence.
        """
        from truesource.grammar.estimate._kernels import em as kernels

        exact = pcfg.exact
        charts = exact.charts()
        rules_of = sparse_rows(exact.unary_closure), exact.pairs, exact.lexicon
        # copies: an array of the grammar itself is read-only, another type, for which numba would compile again
        unaries = UnaryRules(pcfg.unary[:, 0].copy(), pcfg.unary[:, 1].copy(), np.exp(pcfg.unary_logp))

        def task(batch: Batch) -> tuple[FloatArray, tuple[FloatArray, ...]]:
            n = len(batch.words)
            weights = np.array([len(members) for members in batch.members], dtype=np.float64)
            if isinstance(charts, LinearCharts) and not self._bracketed(batch):
                return charts.rule_counts(batch.words, weights)
            allowed = self._allowed(batch)
            chart, lost = kernels.inside(batch.words, allowed, *rules_of)
            whole = (n * (n - 1) // 2, pcfg.start)
            with np.errstate(divide="ignore"):
                log_prob = np.log(chart.inside[whole] if chart.present[whole] else np.zeros(len(batch.members)))
            log_prob += chart.shift[whole[0]] * np.log(2.0)
            for w in np.flatnonzero(lost).tolist():
                if log_prob[w] < exact.wide.log_prob(batch.words[:, w], allowed[:, w]) - LOST:
                    raise InputError(
                        f"sentence {batch.members[w][0] + 1} has parts whose weights are further apart than 1e250, too"
                        " far for expected counts; leave it out"
                    )
            if not rules:
                return log_prob, ()
            return log_prob, kernels.expected_counts(batch.words, weights, chart, pcfg.start, *rules_of, unaries)

        log_probs = np.empty(self.size)
        totals = tuple(np.zeros(len(logp)) for _, logp in pcfg.tables())
        for batch, (log_prob, found) in run(task, self._work, description, self.size):  # in a fixed order
            for members, value in zip(batch.members, log_prob, strict=True):
                log_probs[list(members)] = value
            if rules:
                for total, part in zip(totals, found, strict=True):
                    total += part
        impossible = tuple((np.flatnonzero(np.isneginf(log_probs)) + 1).tolist())
        return RuleCounts(totals[0], totals[1], totals[2], log_probs, impossible)

    def content(self) -> str:
        """Digest of words and brackets, that a checkpoint must agree in."""
        return digest_json([[list(sentence) for sentence in self._sentences], self._brackets])

    def score(self, counts: RuleCounts) -> tuple[float, int]:
        """Log likelihood of the possible sentences, nats, and their tokens."""
        possible = np.isfinite(counts.log_probs)
        return float(counts.log_probs[possible].sum()), int(self.lengths[possible].sum())

    def _bracketed(self, batch: Batch) -> bool:
        """Whether any sentence of a batch has brackets."""
        return any(self._brackets[members[0]] for members in batch.members)

    def _allowed(self, batch: Batch) -> BoolArray:
        """Which spans cross no bracket, (spans, W)."""
        n = len(batch.words)
        j = np.repeat(np.arange(1, n + 1), np.arange(1, n + 1))
        i = np.arange(len(j)) - j * (j - 1) // 2
        allowed = np.ones((len(j), len(batch.members)), dtype=np.bool_)
        for column, members in enumerate(batch.members):
            for a, b in self._brackets[members[0]]:
                allowed[((i < a) & (a < j) & (j < b)) | ((a < i) & (i < b) & (b < j)), column] = False
        return allowed


def _checked(brackets: Sequence[Span], n: int, at: int) -> tuple[Span, ...]:
    """The brackets of one sentence, sorted, each once.

    Raises:
        InputError: one leaves the sentence, or two cross each other.
    """
    spans = sorted({(int(i), int(j)) for i, j in brackets}, key=lambda span: (span[0], -span[1]))
    around: list[Span] = []
    for i, j in spans:
        if not 0 <= i < j <= n:
            raise InputError(f"bracket ({i}, {j}) of sentence {at + 1} lies outside its {n} tokens; mend or remove it")
        while around and around[-1][1] <= i:
            around.pop()
        if around and around[-1][1] < j:
            raise InputError(f"brackets {around[-1]} and ({i}, {j}) of sentence {at + 1} cross; remove one of them")
        around.append((i, j))
    return tuple(spans)
