"""The grammar doctor: report problems of a grammar before it is used for sampling or comparison.

Also the coverage of a text by a grammar: words in its lexicon, and sentences of nonzero probability.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import TooLongError
from truesource.grammar.inference.components import shortest_cycle, strong_components
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.inference.nonnegative_matrices import CRITICAL
from truesource.grammar.pcfg import PCFG
from truesource.grammar.process import Process
from truesource.grammar.support.arrays import Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import counted
from truesource.grammar.truth import Truth

MASS_TOLERANCE = 1e-6  #: mass that may leak before a grammar counts as inconsistent


@dataclass(frozen=True)
class Cycles:
    """The cyclic strongly connected components of a graph of symbols."""

    groups: int  #: components with a cycle
    symbols: int  #: symbols in them
    example: tuple[str, ...]  #: a shortest cycle through one symbol, which is first and last; empty without any


def unary_cycles(pcfg: PCFG) -> Cycles:
    """Return the cycles of unary rules (``A -> B``, ``B -> A``), which give a string infinitely many derivations."""
    return _cycles(pcfg, pcfg.unary)


def left_recursion(pcfg: PCFG) -> Cycles:
    """Return the cycles of left corners: symbols that derive strings starting with themselves, also by unary rules."""
    return _cycles(pcfg, np.concatenate([pcfg.unary, pcfg.binary[:, :2]]))


def _cycles(pcfg: PCFG, edges: Int32Array) -> Cycles:
    above, below = edges.T
    n = len(pcfg.symbols)
    components = strong_components(n, above, below)
    symbols = np.flatnonzero(components.cyclic[components.number])
    if len(symbols) == 0:
        return Cycles(0, 0, ())
    cycle = shortest_cycle(n, above, below, int(symbols[0]))
    names = tuple(pcfg.symbols[state] for state in (*cycle, cycle[0]))
    return Cycles(int(components.cyclic.sum()), len(symbols), names)


ProblemCode = Literal["unquoted", "growing", "leaking", "unproductive", "unreachable"]


@dataclass(frozen=True)
class Diagnosis:
    """The report of `diagnose`; numbers that need a spectral radius of at most 1 - 1e-9 are None otherwise."""

    symbols: int
    words: int
    binary: int
    unary: int
    lexical: int
    total_mass: float  #: P(a derivation ends)
    spectral_radius: float  #: spectral radius of the mean matrix over reachable symbols
    mean_length: float | None  #: tokens
    derivational_entropy: float | None  #: nats per sentence (Grenander 1967)
    unreachable: tuple[str, ...]  #: symbols that no derivation from the start contains
    unproductive: tuple[str, ...]  #: symbols that derive no finite string
    growing: tuple[str, ...]  #: rules that feed the fastest-growing recursion, strongest first
    unary_cyclic: int  #: symbols that unary rules alone rewrite to themselves; harmless here, not to many parsers
    unary_cycle_groups: int  #: number of their strongly connected components
    unary_cycle: tuple[str, ...]  #: one such cycle, its first symbol again at the end
    left_recursive: int  #: symbols that derive a string of symbols starting with themselves; harmless here
    left_recursive_groups: int  #: number of their strongly connected components
    left_cycle: tuple[str, ...]  #: one cycle of left corners, its first symbol again at the end
    unquoted: tuple[str, ...]  #: names without rules or quotes in a text that quotes other words; read as words
    problems: tuple[str, ...]  #: one sentence each; empty for a healthy grammar
    problem_codes: tuple[ProblemCode, ...]  #: code of each problem, in their order

    @property
    def serious(self) -> tuple[str, ...]:
        """Problems other than unreachable symbols, which are harmless."""
        pairs = zip(self.problems, self.problem_codes, strict=True)
        return tuple(problem for problem, code in pairs if code != "unreachable")


def diagnose(pcfg: PCFG) -> Diagnosis:
    """Examine a grammar; problems are returned, never raised."""
    exact = pcfg.exact
    mass, reached = exact.mass, exact.reached
    radius = exact.spectral_radius
    unreachable = tuple(name for name, ok in zip(pcfg.symbols, reached, strict=True) if not ok)
    unproductive = tuple(name for name, t in zip(pcfg.symbols, mass, strict=True) if t <= 0.0)
    growing = _growing_rules(pcfg) if radius >= 1.0 - 1e-12 else ()
    unquoted: dict[str, int] = pcfg.meta.get("unquoted", {})
    problems: dict[ProblemCode, str] = {}
    if unquoted:
        names = [f"{name} (line {line})" for name, line in unquoted.items()]
        problems["unquoted"] = (
            f"names without rules lack the quotes that other words have: {_some(names)};"
            " quote those that are words, and give rules to the others"
        )
    if radius >= 1.0 - 1e-12:
        problems["growing"] = (
            f"the spectral radius is {radius:.6g}, not less than 1: derivations grow without end, "
            f"mostly through {'; '.join(growing)}; lower the probability of these rules"
        )
    if exact.total_mass < 1.0 - MASS_TOLERANCE:
        leaking = [pcfg.symbols[i] for i in np.argsort(mass) if reached[i] and mass[i] < 1.0 - MASS_TOLERANCE]
        problems["leaking"] = (
            f"only {exact.total_mass:.6g} of the probability mass is on sentences; it leaks through {_some(leaking)}"
        )
    if unproductive:
        problems["unproductive"] = (
            f"{len(unproductive)} symbols derive no sentence: {_some(unproductive)}; remove them or give them words"
        )
    if unreachable:
        problems["unreachable"] = (
            f"{counted(len(unreachable), 'symbol')} unreachable from {pcfg.symbols[pcfg.start]}: {_some(unreachable)}"
        )
    unary, left = unary_cycles(pcfg), left_recursion(pcfg)
    return Diagnosis(
        **{k: v for k, v in pcfg.sizes().items() if k != "labels"},
        total_mass=exact.total_mass,
        spectral_radius=radius,
        mean_length=exact.mean_length if radius < 1.0 - CRITICAL else None,
        derivational_entropy=derivational_entropy(pcfg) if radius < 1.0 - CRITICAL else None,
        unreachable=unreachable,
        unproductive=unproductive,
        growing=growing,
        unary_cyclic=unary.symbols,
        unary_cycle_groups=unary.groups,
        unary_cycle=unary.example,
        left_recursive=left.symbols,
        left_recursive_groups=left.groups,
        left_cycle=left.example,
        unquoted=tuple(unquoted),
        problems=tuple(problems.values()),
        problem_codes=tuple(problems),
    )


def require_consistent(truth: Truth, path: object = None, *, remedy: str | None = None) -> None:
    """Refuse a grammar whose derivations may not end.

    Args:
        truth: the grammar; a process always ends.
        path: file of the grammar, for the message.
        remedy: an alternative to changing the rules, for the message.

    Raises:
        InputError: the spectral radius is 1 or more, or mass leaks (also by symbols without a derivation); the code
            is ``inconsistent``. Unreachable symbols are accepted.
    """
    if isinstance(truth, Process):
        return
    assert isinstance(truth, PCFG)
    result = diagnose(truth)
    if is_serious(result):
        message = "; ".join([*result.serious, *([] if remedy is None else [remedy])])
        raise InputError(message, None if path is None else str(path), code="inconsistent")


def is_serious(diagnosis: Diagnosis) -> bool:
    """Return True if the grammar is unusable: derivations may not end, or symbols without rules pass for words."""
    leaks = diagnosis.total_mass < 1.0 - MASS_TOLERANCE
    return diagnosis.spectral_radius >= 1.0 - 1e-12 or leaks or bool(diagnosis.unquoted)


def has_endings(truth: Truth) -> bool:
    """Return True if all derivations end, so that the probabilities of sentences of any length sum to 1."""
    return truth.exact.total_mass >= 1.0 - MASS_TOLERANCE


def require_endings(truth: Truth) -> None:
    """Refuse as ground truth about sentences of any length a grammar whose derivations may not end.

    Its sentence probabilities, and its next-word probabilities, sum to less than 1, so another model could score
    better. Given a range of lengths, every quantity is a distribution.

    Raises:
        InputError: mass leaks; the message says how much remains.
    """
    if not has_endings(truth):
        mass = truth.exact.total_mass
        raise InputError(
            f"the sentences of this grammar have total probability {mass:.6g}, not 1, because derivations may not end;"
            " so it gives no bound; condition on a range of lengths (--lengths 1..50), or change the rules that"
            " truesource inspect names",
            code="inconsistent",
        )


def _growing_rules(pcfg: PCFG, most: int = 3) -> tuple[str, ...]:
    """Return rules by their share in the Perron root: ``left_A p (right_B + right_C)``."""
    _, left, right = pcfg.exact.perron
    ranked: list[tuple[float, str]] = []
    p = np.exp(pcfg.binary_logp)
    a, b, c = pcfg.binary.T
    share = left[a] * p * (right[b] + right[c])
    for r in np.argsort(-share)[:most]:
        names = (pcfg.symbols[i] for i in pcfg.binary[r])
        ranked.append((float(share[r]), "{} -> {} {}".format(*names) + f" ({p[r]:.4g})"))
    p = np.exp(pcfg.unary_logp)
    share = left[pcfg.unary[:, 0]] * p * right[pcfg.unary[:, 1]]
    for r in np.argsort(-share)[:most]:
        names = (pcfg.symbols[i] for i in pcfg.unary[r])
        ranked.append((float(share[r]), "{} -> {}".format(*names) + f" ({p[r]:.4g})"))
    return tuple(text for value, text in sorted(ranked, key=lambda x: -x[0])[:most] if value > 0.0)


def _some(names: list[str] | tuple[str, ...], most: int = 5) -> str:
    listed = ", ".join(names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


@dataclass(frozen=True)
class Coverage:
    """Report of `coverage`."""

    sentences: int
    tokens: int
    types: int
    unknown_tokens: int  #: tokens not in the lexicon
    unknown_types: int
    unknown: tuple[tuple[str, int], ...]  #: unknown words and how often they occur, most frequent first
    impossible: tuple[int, ...]  #: sentences of probability zero, counted from 1, in order
    mean_log_prob: float | None  #: mean over the other sentences, nats per sentence; None without any


def coverage(pcfg: PCFG, sentences: Sequence[Sequence[str]], *, lengths: LengthRange | None = None) -> Coverage:
    """Count unknown words, and compute the exact probability of every sentence.

    Args:
        pcfg: the grammar.
        sentences: tokenised.
        lengths: condition on these lengths; sentences of another length are impossible.

    Raises:
        InputError: a sentence has no tokens, or the grammar has no sentence of such a length.
    """
    count = Counter(token for sentence in sentences for token in sentence)
    unknown = Counter({word: n for word, n in count.items() if word not in pcfg.word_ids})
    in_lexicon = [i for i, s in enumerate(sentences) if not any(token in unknown for token in s)]
    scores = np.full(len(sentences), -np.inf)
    if in_lexicon:
        try:
            scores[in_lexicon] = pcfg.exact.string_log_probs([sentences[i] for i in in_lexicon], lengths)
        except TooLongError as error:
            raise TooLongError(error.tokens, error.needed, in_lexicon[(error.number or 1) - 1] + 1) from None
    possible = np.isfinite(scores)
    return Coverage(
        sentences=len(sentences),
        tokens=count.total(),
        types=len(count),
        unknown_tokens=unknown.total(),
        unknown_types=len(unknown),
        unknown=tuple(sorted(unknown.items(), key=lambda item: (-item[1], item[0]))),
        impossible=tuple((np.flatnonzero(~possible) + 1).tolist()),
        mean_log_prob=float(scores[possible].mean()) if possible.any() else None,
    )
