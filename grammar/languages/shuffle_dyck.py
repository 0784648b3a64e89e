"""Brackets of k kinds, each well nested for itself: the shuffle of k counters (Suzgun et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

from pydantic import Field

from truesource.grammar.building import Move, State, walked
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules


class ShuffleDyckSettings(LanguageSettings):
    """Parameters of shuffled brackets."""

    k: int = Field(2, ge=1, le=10**4, description="Kinds of brackets.")
    depth: int = Field(6, ge=1, le=10**4, description="Maximum number of open brackets of all kinds.")
    p_open: float = Field(0.5, gt=0.0, lt=1.0, description="Probability that a bracket opens, where one may close.")

    def n_rules(self) -> int:
        """Two for each bracket in each configuration, and one for each bracket."""
        return 4 * self.k * comb(self.k + self.depth, min(self.k, self.depth)) + 2 * self.k


def build(settings: ShuffleDyckSettings) -> GrammarRules:
    """Strings in which the brackets of each kind are well nested when all others are left out, without the empty one.

    Where nothing is open, the string ends with probability 1 - ``p_open``; at the maximum depth a bracket closes; in
    between one opens with probability ``p_open``. A bracket that opens is of each kind alike, one that closes of each
    kind that is open. With one kind and ``p_open`` 1/2 it is `dyck` with k = 1.

    Symbols are configurations, ``open-2-0``: two of the first kind are open, none of the second.
    """
    k, depth, p = settings.k, settings.depth, settings.p_open

    def moves(state: State) -> Iterator[Move]:
        opened = state[1:]
        total, kinds = sum(opened), [i for i in range(k) if opened[i]]
        if total < depth:
            share = (1.0 if total == 0 else p) / k
            yield from ((f"({i + 1}", _changed(state, i, 1), share) for i in range(k))
        share = 0.0 if not kinds else (1.0 if total == depth else 1.0 - p) / len(kinds)
        yield from ((f"{i + 1})", _changed(state, i, -1), share) for i in kinds)

    start = ("open", *(0 for _ in range(k)))
    return walked(start, moves, lambda state: (1.0 - p) / p if not any(state[1:]) else 0.0).grammar()


def _changed(state: State, kind: int, by: int) -> State:
    return (*state[: kind + 1], state[kind + 1] + by, *state[kind + 2 :])


LANGUAGE = Language(
    title="brackets of k kinds, each nested for itself",
    tests="k counters at once, beyond context-free from two kinds on",
    citation=(
        "Suzgun, Gehrmann, Belinkov and Shieber (2019), LSTM networks can perform dynamic counting, Workshop on Deep"
        " Learning and Formal Languages, ACL"
    ),
    settings=ShuffleDyckSettings,
    build=build,
)
