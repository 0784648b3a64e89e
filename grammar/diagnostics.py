"""The grammar doctor: what is wrong with a grammar, in words, before it is sampled or compared with.

Also how much of a text a grammar knows: words of its lexicon, and sentences it can make.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import TooLongError
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.inference.nonnegative_matrices import CRITICAL
from truesource.grammar.pcfg import PCFG
from truesource.grammar.process import Process
from truesource.grammar.support.arrays import Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import counted
from truesource.grammar.truth import Truth

if TYPE_CHECKING:
    import networkx as nx

MASS_TOLERANCE = 1e-6  #: mass that may leak before a grammar is called inconsistent


@dataclass(frozen=True)
class Cycles:
    """The strongly connected components of a graph of symbols that hold a cycle."""

    groups: int  #: components with a cycle
    symbols: int  #: symbols in them
    example: tuple[str, ...]  #: a shortest cycle through one symbol, which stands first and last; empty without any


def unary_cycles(pcfg: PCFG) -> Cycles:
    """Cycles of unary rules (``A -> B``, ``B -> A``); they make infinitely many derivations of one string."""
    return _cycles(pcfg, pcfg.unary)


def left_recursion(pcfg: PCFG) -> Cycles:
    """Cycles of left corners: symbols that derive symbols starting with themselves, unary cycles included."""
    return _cycles(pcfg, np.concatenate([pcfg.unary, pcfg.binary[:, :2]]))


def _cycles(pcfg: PCFG, edges: Int32Array) -> Cycles:
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from(np.unique(edges, axis=0).tolist())
    result = [c for c in nx.strongly_connected_components(graph) if len(c) > 1 or all(graph.has_edge(s, s) for s in c)]
    if not result:
        return Cycles(0, 0, ())
    first = min(min(component) for component in result)
    if graph.has_edge(first, first):
        path = [first]
    else:
        path = min(
            (nx.shortest_path(graph, child, first) for child in _inside(graph, result, first)),
            key=lambda states: (len(states), states),
        )
        path = [first, *path[:-1]]
    names = tuple(pcfg.symbols[state] for state in (*path, first))
    return Cycles(len(result), sum(map(len, result)), names)


def _inside(graph: nx.DiGraph[int], found: list[set[int]], state: int) -> list[int]:
    """Successors of a state within its component."""
    component = next(c for c in found if state in c)
    return sorted(child for child in graph.successors(state) if child in component)


ProblemCode = Literal["unquoted", "growing", "leaking", "unproductive", "unreachable"]


@dataclass(frozen=True)
class Diagnosis:
    """Report of `diagnose`. Numbers that need a spectral radius below 1 are None if it is not, or by less than 1e-9."""

    symbols: int
    words: int
    binary: int
    unary: int
    lexical: int
    total_mass: float  #: P(a derivation ends)
    spectral_radius: float  #: of the mean matrix over reachable symbols
    mean_length: float | None  #: tokens
    derivational_entropy: float | None  #: nats per sentence (Grenander 1967)
    unreachable: tuple[str, ...]  #: symbols that no derivation from the start contains
    unproductive: tuple[str, ...]  #: symbols that derive no finite string
    growing: tuple[str, ...]  #: rules that feed the fastest-growing recursion, strongest first
    unary_cyclic: int  #: symbols that unary rules alone rewrite to themselves; harmless here, not to many parsers
    unary_cycle_groups: int  #: strongly connected components they make up
    unary_cycle: tuple[str, ...]  #: one such cycle, its first symbol again at the end
    left_recursive: int  #: symbols that derive a string of symbols starting with themselves; harmless here
    left_recursive_groups: int  #: strongly connected components they make up
    left_cycle: tuple[str, ...]  #: one cycle of left corners, its first symbol again at the end
    unquoted: tuple[str, ...]  #: names without rules or quotes in a text that quotes other words; read as words
    problems: tuple[str, ...]  #: one sentence each; empty for a healthy grammar
    problem_codes: tuple[ProblemCode, ...]  #: of the problems, in their order

    @property
    def serious(self) -> tuple[str, ...]:
        """Problems but symbols out of reach, which are harmless."""
        pairs = zip(self.problems, self.problem_codes, strict=True)
        return tuple(problem for problem, code in pairs if code != "unreachable")

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def diagnose(pcfg: PCFG) -> Diagnosis:
    """Examine a grammar; never raises for what it finds."""
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
            f"names without rules that are not quoted as other words are: {_some(names)};"
            " quote those that are words, and give rules to the others"
        )
    if radius >= 1.0 - 1e-12:
        problems["growing"] = (
            f"the spectral radius is {radius:.6g}, expecting less than 1: derivations grow without end, "
            f"mostly through {'; '.join(growing)}; lower the probability of these rules"
        )
    if exact.total_mass < 1.0 - MASS_TOLERANCE:
        leaking = [pcfg.symbols[i] for i in np.argsort(mass) if reached[i] and mass[i] < 1.0 - MASS_TOLERANCE]
        problems["leaking"] = (
            f"only {exact.total_mass:.6g} of the probability mass ends in a sentence; it leaks through {_some(leaking)}"
        )
    if unproductive:
        problems["unproductive"] = (
            f"{len(unproductive)} symbols derive no sentence: {_some(unproductive)}; remove them or give them words"
        )
    if unreachable:
        problems["unreachable"] = (
            f"{counted(len(unreachable), 'symbol')} cannot be reached from {pcfg.symbols[pcfg.start]}:"
            f" {_some(unreachable)}"
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
        path: of its file, for the message.
        remedy: what can be done besides a change of the rules, for the message.

    Raises:
        InputError: the spectral radius is 1 or more, or mass leaks (symbols without a derivation included): its code
            is ``inconsistent``. Unreachable symbols are harmless and pass.
    """
    if isinstance(truth, Process):
        return
    assert isinstance(truth, PCFG)
    result = diagnose(truth)
    if is_serious(result):
        message = "; ".join([*result.serious, *([] if remedy is None else [remedy])])
        raise InputError(message, None if path is None else str(path), code="inconsistent")


def is_serious(diagnosis: Diagnosis) -> bool:
    """Return True if the grammar cannot be used: derivations may not end, or symbols without rules stand as words."""
    leaks = diagnosis.total_mass < 1.0 - MASS_TOLERANCE
    return diagnosis.spectral_radius >= 1.0 - 1e-12 or leaks or bool(diagnosis.unquoted)


def has_endings(truth: Truth) -> bool:
    """Return True if all derivations end, so that the probabilities of sentences of any length sum to 1."""
    return truth.exact.total_mass >= 1.0 - MASS_TOLERANCE


def require_endings(truth: Truth) -> None:
    """Refuse a grammar as the truth about sentences of any length where its derivations may not end.

    The probabilities of its sentences sum to less than 1, and so do those of the next word: another model could score
    better. Given a range of lengths, every quantity is a distribution.

    Raises:
        InputError: mass leaks; the message says how much is left.
    """
    if not has_endings(truth):
        mass = truth.exact.total_mass
        raise InputError(
            f"the sentences of this grammar have probability {mass:.6g} together, not 1: its derivations may not end,"
            " so it gives no bound; condition on a range of lengths (--lengths 1..50), or change the rules that"
            " truesource inspect names",
            code="inconsistent",
        )


def _growing_rules(pcfg: PCFG, most: int = 3) -> tuple[str, ...]:
    """Rules by their share in the Perron root: ``left_A p (right_B + right_C)``."""
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
    unknown_tokens: int  #: tokens that the lexicon does not have
    unknown_types: int
    unknown: tuple[tuple[str, int], ...]  #: unknown words and how often they occur, most frequent first
    impossible: tuple[int, ...]  #: sentences of probability zero, counted from 1, in order
    mean_log_prob: float | None  #: of the others, nats per sentence; None without any

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def coverage(pcfg: PCFG, sentences: Sequence[Sequence[str]], *, lengths: LengthRange | None = None) -> Coverage:
    """Look for unknown words, and compute the exact probability of every sentence.

    Args:
        pcfg: the grammar.
        sentences: tokenised.
        lengths: condition on these lengths; sentences of another length are impossible.

    Raises:
        InputError: a sentence has no tokens, or the grammar makes no sentence of such a length.
    """
    count = Counter(token for sentence in sentences for token in sentence)
    unknown = Counter({word: n for word, n in count.items() if word not in pcfg.word_ids})
    known = [i for i, s in enumerate(sentences) if not any(token in unknown for token in s)]
    scores = np.full(len(sentences), -np.inf)
    if known:
        try:
            scores[known] = pcfg.exact.string_log_probs([sentences[i] for i in known], lengths)
        except TooLongError as error:
            raise TooLongError(error.tokens, error.needed, known[(error.number or 1) - 1] + 1) from None
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
