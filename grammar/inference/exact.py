"""The exact quantities of one grammar, computed once and kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Batch, run
from truesource.grammar.inference.charts import Charts, Leaves
from truesource.grammar.inference.linear_charts import LinearCharts
from truesource.grammar.inference.tables import GrammarTables
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.grammar.inference.viterbi import BestChains
    from truesource.grammar.inference.wide import WideCharts
    from truesource.grammar.tree import Tree

Variant = Literal["default", "paper"]
SHOWN = 5  #: words in the one line of a distribution


@dataclass(frozen=True, repr=False)
class NextToken:
    """What can follow a prefix. ``probability`` and ``stop`` sum to one for a consistent grammar."""

    words: tuple[str, ...]  #: (V,)
    probability: FloatArray  #: (V,) of each word
    stop: float  #: that the sentence ends here
    states: FloatArray  #: (S,) expected number of each symbol starting here (Stolcke 1995)

    def top(self, k: int = 10) -> list[tuple[str, float]]:
        """The k most probable words."""
        order = np.argsort(-self.probability, kind="stable")[:k]
        return [(self.words[i], float(self.probability[i])) for i in order]

    def __repr__(self) -> str:
        likely = ", ".join(f"{word!r}: {p:.4f}" for word, p in self.top(SHOWN))
        more = f", {len(self.words) - SHOWN:,} more" if len(self.words) > SHOWN else ""
        return f"NextToken({likely}{more}; stop: {self.stop:.4f})"


class Exact(GrammarTables):
    """Exact inference for one `PCFG`. All methods are pure; what is computed once is kept.

    Every method that takes ``lengths`` conditions on ``lengths.low <= length <= lengths.high``, exactly. Those
    that take ``dtype`` compute their charts in it: float32 is faster, and within 1e-4 nats a token. Sentences whose
    weights leave the range of the type are found (`truesource.grammar.inference.certificate`) and computed again.
    Linear grammars need no charts: see `truesource.grammar.inference.linear_charts`.
    """

    def __init__(self, pcfg: GrammarRules) -> None:
        super().__init__(pcfg)
        self._charts: dict[str, Charts | LinearCharts] = {}

    # -- once per grammar ---------------------------------------------------------------------------

    @cached_property
    def best_chains(self) -> BestChains:
        """Most probable unary chain between any two symbols."""
        from truesource.grammar.inference.viterbi import best_chains

        return best_chains(self.pcfg)

    @cached_property
    def wide(self) -> WideCharts:
        """Charts of single sentences at any range of probabilities."""
        from truesource.grammar.inference.wide import WideCharts

        return WideCharts(self)

    # -- batches ------------------------------------------------------------------------------------

    def charts(self, dtype: DTypeLike = np.float64) -> Charts | LinearCharts:
        """The chart kernels in one precision; of a linear grammar its automaton, in float64 always.

        Raises:
            InputError: the type is neither float64 nor float32.
        """
        key = np.dtype(dtype).name
        if key not in ("float64", "float32"):
            raise InputError(f"charts are float64 or float32, not {key}")
        if key not in self._charts:
            if self.linear is not None:
                self._charts[key] = LinearCharts(self, self.linear)
            else:
                double = None if key == "float64" else Charts(self, lambda: self.wide)
                self._charts[key] = Charts(self, lambda: self.wide, dtype, double=double)
        return self._charts[key]

    def causal_log_probs(
        self,
        sentences: Sequence[Sequence[str]],
        lengths: LengthRange | None = None,
        *,
        dtype: DTypeLike = np.float64,
    ) -> list[FloatArray]:
        """Ln P(token | its left context) for each sentence, (n+1,): the words, then the end of the sentence.

        The sum over a sentence is its log probability (given ``lengths``). From the first token that is
        impossible in its context on, entries are -inf.
        """
        charts = self.charts(dtype)

        def task(batch: Batch) -> FloatArray:
            found = charts.causal(batch.words, lengths, first=len(batch.words) + 1)
            return np.concatenate([found.log_conditional, found.log_stop[-1:]])

        return _score(
            task, charts.batches(sentences, lengths), len(sentences), "exact next-word probabilities of sentences"
        )

    def string_log_probs(
        self,
        sentences: Sequence[Sequence[str]],
        lengths: LengthRange | None = None,
        *,
        dtype: DTypeLike = np.float64,
    ) -> FloatArray:
        """Ln P(sentence), given ``lengths`` if any, (N,); -inf where the grammar cannot make it.

        A length condition needs no pass of its own: it subtracts ``ln Z`` from sentences of such lengths.
        """
        found = np.array([float(s.sum()) for s in self.causal_log_probs(sentences, dtype=dtype)])
        if lengths is not None:
            found -= math.log(self.range_mass(lengths))
            found[[len(s) not in lengths for s in sentences]] = -np.inf
        return found

    def masked_log_probs(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        variant: Variant = "default",
        dtype: DTypeLike = np.float64,
    ) -> list[FloatArray]:
        """Ln P(token | all other tokens and the length) for each sentence, (n,).

        Conditioning on a length range changes nothing. -inf where the token is impossible given the others;
        NaN never: where the others alone are impossible, the entry is -inf too. ``variant="paper"`` sums over
        every nonterminal of a one-token span as Jumelet & Zuidema (2023, eq. 12) print it, which counts a
        derivation with unary rules several times: for comparison only.
        """
        charts = self.charts(dtype)

        def task(batch: Batch) -> FloatArray:
            return self.log_observed(batch.words, charts, variant=variant)

        return _score(
            task,
            charts.batches(sentences, outside=True),
            len(sentences),
            "exact masked-word probabilities of sentences",
        )

    def log_observed(
        self,
        words: Int32Array,
        charts: Charts | LinearCharts,
        leaves: Leaves | None = None,
        variant: Variant = "default",
    ) -> FloatArray:
        """Ln P(word | all others and the length) of ``words`` (n, W), from their outside weights; (n, W) nats."""
        if isinstance(charts, LinearCharts):
            return charts.masked(words, None if variant == "default" else self.lexical_weights(variant))
        lexical = self.lexical_weights(variant)
        leaves = leaves or charts.leaves(words, whole_only=True)
        sums, table = np.asarray(lexical.sum(axis=1)).ravel(), np.full(words.shape, -np.inf)
        for w, logs in leaves.logs.items():
            if leaves.whole[w]:
                table[:, w] = self._log_observed_wide(words[:, w], logs, variant)
        plain = np.setdiff1d(np.flatnonzero(leaves.whole), list(leaves.logs))
        if plain.size:
            weights, flat = leaves.weights[:, :, plain], words[:, plain].ravel()
            rows = lexical.T.tocsr()[flat]
            place = np.repeat(np.arange(flat.size), np.diff(rows.indptr))
            own = rows.data * weights[place // plain.size, rows.indices, place % plain.size]
            every = np.einsum("s,isw->iw", sums, weights)
            table[:, plain] = np.log(np.bincount(place, own, flat.size).reshape(every.shape) / every)
        return table

    def _log_observed_wide(self, words: Int32Array, logs: FloatArray, variant: Variant) -> FloatArray:
        """The same of one sentence, ``words`` (n,), from logarithms (n, S)."""
        lexical, row = self.lexical_weights(variant), np.empty(len(words))
        columns, sums = lexical.tocsc(), _log(np.asarray(lexical.sum(axis=1)).ravel())
        for i, word in enumerate(words):
            if variant == "default":
                rules = slice(*self.lexicon.start[word : word + 2])  # the order of the grammar's own arrays
                own = logs[i, self.lexicon.parent[rules]] + self.pcfg.lexical_logp[rules]
                every = logs[i] + self.log_lexical_sums
            else:
                rules = slice(columns.indptr[word], columns.indptr[word + 1])
                own = logs[i, columns.indices[rules]] + _log(columns.data[rules])
                every = logs[i] + sums
            row[i] = np.logaddexp.reduce(own) - np.logaddexp.reduce(every)
        return row

    def lexical_weights(self, variant: Variant = "default") -> csr_matrix[np.float64]:
        """What the outside weight of a symbol over one token is multiplied with, (S, V).

        ``default``: P(word | preterminal). ``paper``: the inside of every nonterminal, unary chains included.
        """
        if variant == "default":
            return self.emission
        return csr_matrix(csr_matrix(self.unary_closure) @ self.emission)

    # -- one sentence -------------------------------------------------------------------------------

    def prefix_log_prob(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> float:
        """Ln P(a sentence starts with ``prefix``), given ``lengths`` if any; -inf when none does."""
        if not prefix:
            if lengths is not None:
                self.range_mass(lengths)  # raises where no sentence has such a length
                return 0.0
            return math.log(self.total_mass) if self.total_mass > 0.0 else -math.inf
        words = self.pcfg.encode(prefix).reshape(-1, 1)
        found = self.charts().causal(words, lengths, first=len(prefix) + 1)
        return float(found.log_conditional.sum())

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Distribution of what follows ``prefix``, every word at once.

        Raises:
            InputError: no sentence (of that length range) starts with ``prefix``.
        """
        found = self.charts().causal(self.pcfg.encode(prefix).reshape(-1, 1), lengths, first=len(prefix))
        if not np.isfinite(found.log_conditional).all():
            at = int(np.argmin(found.log_conditional[:, 0]))
            raise InputError(
                f"no sentence starts with {' '.join(prefix[: at + 1])!r}: {prefix[at]!r} cannot stand there"
            )
        states = found.starts[-1, :, 0]
        return NextToken(
            self.pcfg.terminals, np.asarray(states @ self.emission), math.exp(found.log_stop[-1, 0]), states
        )

    def masked(self, sentence: Sequence[str], position: int) -> FloatArray:
        """P(word at ``position`` | all other words and the length), (V,), every word at once.

        Raises:
            InputError: ``position`` is outside the sentence, or no word fits there.
        """
        if not 0 <= position < len(sentence):
            raise InputError(f"position {position} is outside a sentence of {len(sentence)} tokens")
        leaves = self.charts().leaves(self.pcfg.encode(sentence).reshape(-1, 1)).weights
        joint = np.asarray(leaves[position, :, 0] @ self.emission)
        if not joint.sum() > 0.0:
            raise InputError(f"no word fits position {position} of {' '.join(sentence)!r}")
        found: FloatArray = joint / joint.sum()
        return found

    def viterbi(self, sentence: Sequence[str]) -> tuple[Tree, float]:
        """The most probable derivation and its log probability, nats."""
        from truesource.grammar.inference.linear_viterbi import linear_viterbi_tree
        from truesource.grammar.inference.viterbi import viterbi_tree

        if self.linear is not None:
            return linear_viterbi_tree(self.linear, self.lexicon, self.best_chains, sentence)
        return viterbi_tree(self, self.best_chains, sentence)


def _score(
    task: Callable[[Batch], FloatArray], work: Sequence[Batch], n_sentences: int, description: str
) -> list[FloatArray]:
    """What ``task`` finds for each column of a batch, in the order of the sentences."""
    scores: list[FloatArray] = [np.empty(0)] * n_sentences
    for batch, table in run(task, work, description, n_sentences):
        for column, members in enumerate(batch.members):
            for i in members:
                scores[i] = np.ascontiguousarray(table[:, column])
    return scores


def _log(p: FloatArray) -> FloatArray:
    """Natural logarithm, -inf at zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(p)
