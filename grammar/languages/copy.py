"""A string and copies of it."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from truesource.grammar.building import Move, State, truncated_geometric, walked
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules


class CopySettings(LanguageSettings):
    """Parameters of copied strings."""

    vocabulary: int = Field(2, ge=1, le=10**6, description="Number of different words.")
    longest: int = Field(6, ge=1, le=1000, description="Most words of the string that is copied.")
    p: float = Field(0.9, gt=0.0, lt=1.0, description="Probability of one word more over that of one word less.")
    times: int = Field(2, ge=2, le=1000, description="How often the string stands there, the first time included.")
    marker: bool = Field(True, description="Whether # stands between the copies.")

    def n_rules(self) -> int:
        """Two for each word of each string and of its copies, two for each marker, and the words."""
        v, longest = self.vocabulary, self.longest
        if v > 1 and longest * (v.bit_length() - 1) > 64:
            return 2**63  # nobody has so much memory, and the exact number may have millions of digits
        strings: int = sum(v**n for n in range(1, longest + 1))
        return 2 * strings * ((longest + 1) * self.times + v) + v + 1


def build(settings: CopySettings) -> GrammarRules:
    """``w # w``, or ``w w``: a string w of independent words, all alike, and copies of it.

    Its number of words is 1 to ``longest``, in proportion to p^n. Without the marker, the first string may have ended
    anywhere: a prefix is the beginning of several strings, whose probabilities the grammar adds up.

    Symbols are configurations: ``w-1-2``, after the first two words of w, here w1 and w2; ``copy-1-1-2``, after the
    first word of the copies of that string, markers counted.
    """
    v, more = settings.vocabulary, truncated_geometric(settings.p, settings.longest)
    between = ("#",) if settings.marker else ()

    def rest(w: tuple[int, ...]) -> tuple[str, ...]:
        """All that follows the first string."""
        return (*between, *(f"w{i}" for i in w)) * (settings.times - 1)

    def moves(state: State) -> Iterator[Move]:
        if state[0] == "w":
            w = state[1:]
            yield from ((f"w{i}", (*state, i), more[len(w)] / v) for i in range(1, v + 1))
            if w:
                yield rest(w)[0], ("copy", 1, *w), 1.0 - more[len(w)]
        else:
            done, w = state[1], state[2:]
            left = rest(w)
            if done < len(left):
                yield left[done], ("copy", done + 1, *w), 1.0

    def end(state: State) -> float:
        return float(state[0] == "copy" and state[1] == len(rest(state[2:])))

    return walked(("w",), moves, end).grammar()


LANGUAGE = Language(
    title="a string and copies of it",
    tests="verbatim memory, beyond context-free",
    citation=(
        "Jelassi, Brandfonbrener, Kakade and Malach (2024), Repeat after me: Transformers are better than state space"
        " models at copying, ICML"
    ),
    settings=CopySettings,
    build=build,
    presets={"repeat": {"times": 4}},
)
