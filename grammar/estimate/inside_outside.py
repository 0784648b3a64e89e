"""Inside-outside EM: re-estimate rule probabilities from sentences, with or without given brackets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, with_config
from typing_extensions import TypedDict

from truesource.grammar._kernels.rules import UnaryRules
from truesource.grammar.estimate import _kernels as kernels
from truesource.grammar.inference.batch import BUDGET, Batch, require_memory, run
from truesource.grammar.inference.charts import LinearCharts
from truesource.grammar.inference.rules import sparse_rows
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.archives import FLOATS, TEXT, integers, read_arrays
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.atomic_files import atomic_path
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.records import STRICT, Count, decode_record
from truesource.grammar.tree import Tree

Span = tuple[int, int]
Sentences = Sequence[Sequence[str]]
Brackets = Sequence[Sequence[Span]]
LOST = 1e-9  #: largest share of a sentence's probability that charts may lose
WIDTH = 32  #: most sentences in a batch: larger batches compute more zeros, smaller ones read the rules more often
CHECKPOINT = "inside-outside.npz"
_TABLES = tuple(f"arr_{i}" for i in range(6))  # arrays of the checkpoint: rules and log probabilities of each kind
_WHAT, _REMEDY = "the checkpoint", "delete it to start again"
#: entries of ``meta`` that also hold for the re-estimated grammar
KEPT = ("binarisation", "license", "split_trees", "substates")
SMALLEST_TOTAL = 1e-290  #: a symbol with a lower expected count in the text keeps its rules


@dataclass(frozen=True, eq=False)
class RuleCounts:
    """Expected uses of every rule in a text, in the order of the grammar's arrays; see `expected_rule_counts`."""

    binary: FloatArray  #: (R,)
    unary: FloatArray  #: (Q,)
    lexical: FloatArray  #: (L,)
    log_probs: FloatArray  #: (N,) ln P(sentence, brackets respected), nats; -inf without such a derivation
    impossible: tuple[int, ...]  #: numbers of sentences without a derivation, from 1; they add nothing


def tree_brackets(tree: Tree) -> list[Span]:
    """Return the spans ``(i, j)`` of a tree's nodes, words i to j-1, each once: full brackets for its sentence."""
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
    """Return the expected number of uses of each rule in the derivations of a text (Lari and Young 1990).

    Exact, also for unary cycles and left recursion, in O(n^3 P + n^2 (R + Q)) for n words, P child pairs, R binary and
    Q unary rules; in O(n (R + Q)) if the grammar is linear and there are no brackets. Each count is the derivative of
    the text's log likelihood by the log of that rule's probability.

    Args:
        pcfg: the grammar.
        sentences: tokenised; a repeated sentence counts each time.
        brackets: for each sentence its known constituents ``(i, j)``, words i to j-1 (none: an empty list);
            derivations with a node whose span crosses one of them are excluded (Pereira & Schabes 1992).

    Raises:
        InputError: there are no sentences, one has no tokens, or brackets cross each other or leave their sentence.
    """
    return EncodedText(pcfg, sentences, brackets).counts(pcfg)


class EncodedText:
    """Sentences in batches, equal ones with equal brackets in one column; usable with any grammar over these words."""

    def __init__(self, pcfg: PCFG, sentences: Sentences, brackets: Brackets | None = None) -> None:
        encoded = [pcfg.encode(sentence) for sentence in sentences]
        self.size = len(encoded)
        self.lengths = np.array([len(words) for words in encoded], dtype=np.int64)
        if not encoded:
            raise InputError("there are no sentences to estimate from; give at least one")
        if not self.lengths.all():
            raise InputError(f"sentence {int(np.argmin(self.lengths)) + 1} has no tokens; remove it")
        if brackets is not None and len(brackets) != self.size:
            raise InputError(f"brackets are given for {len(brackets)} sentences, not {self.size}; give each a list")
        lists = brackets if brackets is not None else [()] * self.size
        self._brackets = [_checked(spans, len(w), i) for i, (spans, w) in enumerate(zip(lists, encoded, strict=True))]
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
        """Return the counts of the E-step; without ``rules``, only log probabilities (the counts are then zero).

        Raises:
            InputError: charts underflow for more than 1e-9 of the probability of a sentence.
        """
        exact = pcfg.exact
        charts = exact.charts()
        rules_of = sparse_rows(exact.unary_closure), exact.pairs, exact.lexicon
        # copies: the grammar's own arrays are read-only, a different type, for which numba would compile again
        unaries = UnaryRules(pcfg.unary[:, 0].copy(), pcfg.unary[:, 1].copy(), np.exp(pcfg.unary_logp))

        def task(batch: Batch) -> tuple[FloatArray, tuple[FloatArray, ...]]:
            n = len(batch.words)
            weights = np.array([len(members) for members in batch.members], dtype=np.float64)
            if isinstance(charts, LinearCharts) and not any(self._brackets[some[0]] for some in batch.members):
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
                        f"sentence {batch.members[w][0] + 1} has parts whose weights differ by a factor of more than"
                        " 1e250, too much for expected counts; remove the sentence"
                    )
            if not rules:
                return log_prob, ()
            return log_prob, kernels.expected_counts(batch.words, weights, chart, pcfg.start, *rules_of, unaries)

        log_probs = np.empty(self.size)
        totals = tuple(np.zeros(len(logp)) for _, logp in pcfg.tables())
        for batch, (log_prob, result) in run(task, self._work, description, self.size):  # in a fixed order
            for members, value in zip(batch.members, log_prob, strict=True):
                log_probs[list(members)] = value
            if rules:
                for total, part in zip(totals, result, strict=True):
                    total += part
        impossible = tuple((np.flatnonzero(np.isneginf(log_probs)) + 1).tolist())
        return RuleCounts(totals[0], totals[1], totals[2], log_probs, impossible)

    def content(self) -> str:
        """Digest of words and brackets, which must equal the digest in a checkpoint."""
        return digest_json([[list(sentence) for sentence in self._sentences], self._brackets])

    def score(self, counts: RuleCounts) -> tuple[float, int]:
        """Return the log likelihood of the possible sentences, nats, and their number of tokens."""
        possible = np.isfinite(counts.log_probs)
        return float(counts.log_probs[possible].sum()), int(self.lengths[possible].sum())

    def _allowed(self, batch: Batch) -> BoolArray:
        """Return which spans cross no bracket, (spans, W)."""
        n = len(batch.words)
        j = np.repeat(np.arange(1, n + 1), np.arange(1, n + 1))
        i = np.arange(len(j)) - j * (j - 1) // 2
        allowed = np.ones((len(j), len(batch.members)), dtype=np.bool_)
        for column, members in enumerate(batch.members):
            for a, b in self._brackets[members[0]]:
                allowed[((i < a) & (a < j) & (j < b)) | ((a < i) & (i < b) & (b < j)), column] = False
        return allowed


def _checked(brackets: Sequence[Span], n: int, at: int) -> tuple[Span, ...]:
    """Return the brackets of one sentence, sorted, each once.

    Raises:
        InputError: one leaves the sentence, or two cross each other.
    """
    spans = sorted({(int(i), int(j)) for i, j in brackets}, key=lambda span: (span[0], -span[1]))
    around: list[Span] = []
    for i, j in spans:
        if not 0 <= i < j <= n:
            raise InputError(f"bracket ({i}, {j}) of sentence {at + 1} is outside its {n} tokens; correct or remove it")
        while around and around[-1][1] <= i:
            around.pop()
        if around and around[-1][1] < j:
            raise InputError(f"brackets {around[-1]} and ({i}, {j}) of sentence {at + 1} cross; remove one of them")
        around.append((i, j))
    return tuple(spans)


@with_config(STRICT)
class EmIteration(TypedDict):
    """One EM iteration; see `EmResult`."""

    iteration: Count
    log_likelihood: float
    objective: float
    impossible: Count
    held_out: float | None
    held_out_impossible: Count
    rules: Count


@with_config(STRICT)
class _State(TypedDict):
    """Content of the checkpoint in addition to the rules, as JSON."""

    key: str
    iteration: Count
    trace: Annotated[list[EmIteration], Field(min_length=1)]


@dataclass(frozen=True, eq=False)
class EmResult:
    """The result of `inside_outside`.

    Each record of the trace has ``iteration`` (0 is the initial grammar), ``log_likelihood`` (nats per token of the
    possible sentences; ends of sentences are not tokens), ``objective`` (log likelihood and log prior, which rises at
    every iteration), ``impossible`` (sentences), ``held_out`` (nats per token of the possible held-out sentences; None
    without any), ``held_out_impossible`` (sentences), ``rules`` (of the grammar).
    """

    pcfg: PCFG
    trace: tuple[EmIteration, ...]
    converged: bool  #: whether the gain of the last iteration was below the tolerance


def inside_outside(
    pcfg: PCFG,
    sentences: Sentences,
    *,
    iterations: int,
    tolerance: float = 0.0,
    brackets: Brackets | None = None,
    prior: float = 0.0,
    held_out: Sentences | None = None,
    checkpoint: str | Path | None = None,
) -> EmResult:
    """Fit the rule probabilities of a grammar to sentences without trees, by EM (Baker 1979; Lari and Young 1990).

    The likelihood of the text never falls. Rules that no derivation uses are dropped (unless ``prior`` keeps them), and
    with them the words that no rule produces any more; no rule is added; a symbol that no derivation uses keeps its
    rules. Impossible sentences are counted in the trace and otherwise ignored. The result does not
    depend on the number of threads, nor on whether the run was interrupted.

    Args:
        pcfg: the grammar to start from.
        sentences: tokenised.
        iterations: most EM iterations.
        tolerance: stop after an iteration that gains less than this, nats per token; 0 never stops early.
        brackets: known constituents of each sentence, as for `expected_rule_counts`.
        prior: added to the expected count of every rule of the grammar: the fit is then the maximum a posteriori under
            a Dirichlet prior of parameter ``1 + prior`` on each symbol's rules. 0 is maximum likelihood.
        held_out: more sentences, scored (without brackets) at every iteration.
        checkpoint: folder to save in after every iteration, and to resume from.

    Raises:
        InputError: as `expected_rule_counts`; the grammar has classes of unknown words, or gives all
            sentences probability 0; a setting is out of range; or the checkpoint belongs to another run.
    """
    _check(pcfg, iterations, tolerance, prior)
    text = EncodedText(pcfg, sentences, brackets)
    unseen = EncodedText(pcfg, held_out) if held_out else None
    start = pcfg.digest
    folder = None if checkpoint is None else Path(checkpoint)
    settings = [iterations, tolerance, prior]
    key = digest_json([start, settings, text.content(), unseen.content() if unseen else None]) if folder else ""
    done, trace = 0, list[EmIteration]()
    if folder is not None and (result := _load(folder, key, pcfg)) is not None:
        done, pcfg, trace = result
    for iteration in range(done, iterations + 1):
        last = iteration == iterations
        counts = text.counts(pcfg, f"inside-outside {iteration}", rules=not last)
        record = _record(pcfg, iteration, text, counts, prior, unseen)
        gain = record["objective"] - trace[-1]["objective"] if trace else np.inf
        converged = bool(tolerance > 0.0 and gain < tolerance)
        following = pcfg if last or converged else reestimate(pcfg, counts, prior)
        trace.append(record)
        if last or converged:
            break
        pcfg = following
        if folder is not None:
            _save(folder, key, iteration + 1, pcfg, trace)
    meta = {"estimator": "inside_outside", "start_from": start, "iterations": trace[-1]["iteration"]}
    meta |= {"tolerance": tolerance, "prior": prior} | _fit(text, brackets is not None, unseen, trace[-1])
    retained = {name: value for name, value in pcfg.meta.items() if name in KEPT}
    return EmResult(replace(_without_idle_words(pcfg), meta=retained | meta), tuple(trace), converged)


def _check(pcfg: PCFG, iterations: int, tolerance: float, prior: float) -> None:
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 0:
        raise InputError(f"the number of EM iterations must be an integer >= 0, got {iterations!r}")
    for name, value in (("tolerance", tolerance), ("prior", prior)):
        if not (np.isfinite(value) and value >= 0.0):
            raise InputError(f"the {name} of EM must be a finite number >= 0, got {value!r}")
    if "unknown_words" in pcfg.meta:
        raise InputError(
            "the grammar has classes of unknown words, whose rules EM on sentences of known words would remove; start"
            " from a grammar induced with --lexicon generate"
        )


def _fit(text: EncodedText, bracketed: bool, unseen: EncodedText | None, record: EmIteration) -> dict[str, object]:
    """Return metadata of the text and its likelihood."""
    fit: dict[str, object] = {
        "sentences": text.size,
        "tokens": int(text.lengths.sum()),
        "bracketed": bracketed,
        "impossible_sentences": record["impossible"],
        "log_likelihood_per_token": record["log_likelihood"],
    }
    if unseen is not None:
        fit["held_out"] = {
            "sentences": unseen.size,
            "impossible_sentences": record["held_out_impossible"],
            "log_likelihood_per_token": record["held_out"],
        }
    return fit


def _without_idle_words(pcfg: PCFG) -> PCFG:
    """Return the grammar without the words that none of its rules produces."""
    used = np.unique(pcfg.lexical[:, 1])
    if len(used) == len(pcfg.vocabulary):
        return pcfg
    number = np.zeros(len(pcfg.vocabulary), dtype=np.int32)
    number[used] = np.arange(len(used))
    lexical = np.stack([pcfg.lexical[:, 0], number[pcfg.lexical[:, 1]]], axis=1)
    return replace(pcfg, vocabulary=tuple(pcfg.vocabulary[w] for w in used.tolist()), lexical=lexical)


def reestimate(pcfg: PCFG, counts: RuleCounts, prior: float = 0.0) -> PCFG:
    """Return the M-step: expected counts plus ``prior``, normalised over the rules of each symbol."""
    tables = pcfg.tables()
    expected = [c + prior for c in (counts.binary, counts.unary, counts.lexical)]
    totals = np.zeros(len(pcfg.symbols))
    for (rules, _), amount in zip(tables, expected, strict=True):
        np.add.at(totals, rules[:, 0], amount)
    arrays: list[NDArray[Any]] = []
    for (rules, logp), amount in zip(tables, expected, strict=True):
        total = totals[rules[:, 0]]
        used = total > SMALLEST_TOTAL
        prob = np.where(used, amount / np.where(used, total, 1.0), np.exp(logp))
        keep = prob > np.finfo(np.float64).tiny
        arrays += [rules[keep], np.where(used, np.log(np.where(keep, prob, 1.0)), logp)[keep]]
    return _with_rules(pcfg, arrays)


def random_start(pcfg: PCFG, rng: np.random.Generator) -> PCFG:
    """Return the same rules with random probabilities, uniform on the simplex of each symbol's rules."""
    arrays: list[NDArray[Any]] = []
    weights = [rng.exponential(size=len(logp)) for _, logp in pcfg.tables()]
    totals = np.zeros(len(pcfg.symbols))
    for (rules, _), weight in zip(pcfg.tables(), weights, strict=True):
        np.add.at(totals, rules[:, 0], weight)
    for (rules, _), weight in zip(pcfg.tables(), weights, strict=True):
        arrays += [rules, np.log(weight / totals[rules[:, 0]])]
    return _with_rules(pcfg, arrays)


def _with_rules(pcfg: PCFG, arrays: Sequence[NDArray[Any]]) -> PCFG:
    binary, binary_logp, unary, unary_logp, lexical, lexical_logp = arrays
    return replace(
        pcfg,
        binary=binary,
        binary_logp=binary_logp,
        unary=unary,
        unary_logp=unary_logp,
        lexical=lexical,
        lexical_logp=lexical_logp,
    )


def _record(
    pcfg: PCFG, iteration: int, text: EncodedText, counts: RuleCounts, prior: float, unseen: EncodedText | None
) -> EmIteration:
    """Return one record of the trace."""
    score, tokens = text.score(counts)
    if tokens == 0:
        raise InputError("every sentence has probability 0 (brackets respected); start from another grammar")
    penalty = prior * sum(float(logp.sum()) for _, logp in pcfg.tables())
    record: EmIteration = {
        "iteration": iteration,
        "log_likelihood": score / tokens,
        "objective": (score + penalty) / tokens,
        "impossible": len(counts.impossible),
        "held_out": None,
        "held_out_impossible": 0,
        "rules": pcfg.n_rules,
    }
    if unseen is not None:
        result = unseen.counts(pcfg, "held-out sentences", rules=False)
        score, tokens = unseen.score(result)
        record["held_out"] = score / tokens if tokens else None
        record["held_out_impossible"] = len(result.impossible)
    return record


def _save(folder: Path, key: str, iteration: int, pcfg: PCFG, trace: Sequence[EmIteration]) -> None:
    """Write the grammar that ``iteration`` starts from, atomically."""
    state = json.dumps({"key": key, "iteration": iteration, "trace": list(trace)}, allow_nan=False)
    arrays: dict[str, Any] = dict(zip(_TABLES, (array for table in pcfg.tables() for array in table), strict=True))
    with atomic_path(folder / CHECKPOINT) as temporary, temporary.open("wb") as stream:
        np.savez(stream, state=np.array(state), **arrays)


def _load(folder: Path, key: str, pcfg: PCFG) -> tuple[int, PCFG, list[EmIteration]] | None:
    """Read the checkpoint of an earlier run; return None without one.

    Raises:
        InputError: the file cannot be read, or belongs to another run.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    kinds = dict(zip(_TABLES, (integers(3), FLOATS, integers(2), FLOATS, integers(2), FLOATS), strict=True))
    arrays = read_arrays(path, {**kinds, "state": TEXT}, what=_WHAT, remedy=_REMEDY)
    state = decode_record(str(arrays["state"]), _State, what=_WHAT, remedy=_REMEDY, path=path, embedded=True)
    if state["key"] != key:
        raise InputError("the checkpoint is of another grammar, text or settings; choose another folder", path)
    try:
        result = _with_rules(pcfg, [arrays[name] for name in _TABLES])
    except InputError as error:
        raise InputError(f"{_WHAT} is damaged: {error.reason}; {_REMEDY}", path) from error
    return state["iteration"], result, state["trace"]
