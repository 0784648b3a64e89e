"""`truesource tilt`: compute the optimum of a reward with a KL penalty, or condition on an event, as a grammar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer
from pydantic import Field, model_validator

from truesource.grammar.conditioning import length_condition
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import Settings
from truesource.terminal.console import echo
from truesource.terminal.options import Figure, Force, Grammar, Json, Lengths
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.evaluation.show.table import ReportTable
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.tilting.rewards import Reward
    from truesource.grammar.tilting.tilt import FrontierPoint, TiltedGrammar, Tilting

#: name of the expected reward for each kind of tilt
EARNED = {
    "reward": "expected reward",
    "probability": "probability of the event",
    "event": "expected reward",
    "power": "expected ln p of a derivation",
}


class TiltSettings(Settings):
    """Settings of a tilt."""

    power: float | None = Field(None, description="Raise derivation probabilities to this power.")
    beta: float | None = Field(None, description="Weight of KL in p(x) exp(r(x) / beta); an event has reward 1.")
    probability: float | None = Field(None, description="Give the event this probability, instead of --beta.")
    complement: bool = Field(False, description="Require that the event does not hold.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.beta is not None) + (self.probability is not None) + self.complement > 1:
            raise ValueError("--beta, --probability and --complement exclude each other; keep one")
        return self

    def require_reward(self, reward: Reward | None) -> None:
        """Refuse settings that do not fit the reward, before reading the grammar.

        Raises:
            InputError: they do not fit.
        """
        from truesource.grammar.tilting.rewards import Event

        if (reward is None) == (self.power is None):
            raise InputError("the tilt is not specified; add --regex, --count or --reward, or only --power")
        if reward is None and self != TiltSettings(power=self.power):
            raise InputError("--power has no reward; remove --beta, --probability and --complement")
        if reward is not None and not isinstance(reward, Event) and self.beta is None:
            raise InputError("a reward, or a sum of several, needs --beta; only one event can be required without it")

    def tilted(self, tilting: Tilting, lengths: LengthRange | None) -> TiltedGrammar:
        """Tilt the grammar; the probability of an event is conditional on ``lengths``, if given."""
        if self.beta is not None:
            return tilting.at(self.beta, lengths)
        if self.probability is not None:
            return tilting.with_probability(self.probability, lengths)
        return tilting.given(holds=not self.complement, lengths=lengths)


@with_options(TiltSettings)
def command(
    grammar: Grammar,
    regex: Annotated[
        list[str] | None, typer.Option("--regex", help="Sentences that match, such as '.* that .*'; repeatable.")
    ] = None,
    count: Annotated[
        list[str] | None, typer.Option("--count", help="Number of a word, such as the=3, the>=2; repeatable.")
    ] = None,
    reward: Annotated[
        list[Path] | None, typer.Option("--reward", help="File of word rewards, or of an automaton; repeatable.")
    ] = None,
    *,
    settings: TiltSettings,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the tilted grammar to this file (.npz).")
    ] = None,
    lengths: Lengths = None,
    figure: Figure = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Tilt a grammar by a reward: the exact optimum of reward tuning, and of constrained decoding, as a grammar.

    The result is p(x) exp(r(x) / beta) / Z, in which all other verbs work: sample it, bound it, train on it. Without
    --beta an event (--regex, --count) is required: p(x | event), and Z is its probability. Several rewards are added
    and need --beta. All numbers and --probability are conditional on --lengths, if given; the grammar itself has
    all lengths, or only these if the sum over all is infinite.

    Example: truesource tilt english --regex '.* that .*' --beta 0.5 -o tilted.npz --figure frontier.svg
    """
    from truesource.grammar.diagnostics import require_consistent
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.tilting.tilt import Tilting
    from truesource.grammar.tilting.tilt import power as raised
    from truesource.terminal.output import OutputFiles, figure_of, json_of
    from truesource.terminal.tables import show

    grammar_files = [] if output is None else [output]
    files = OutputFiles(more=grammar_files, json=json, figure=figure, force=force)
    condition = length_condition(lengths)
    target = rewards_of(regex or [], count or [], reward or [])
    settings.require_reward(target)
    if figure is not None and target is None:
        raise InputError("--figure draws the frontier of a reward, but --power has no reward; remove --figure")
    pcfg = PCFG.load(grammar)
    if condition is None:
        require_consistent(pcfg, grammar)
    if target is None:
        assert settings.power is not None, "a tilt has a reward or a power"
        tilted, frontier = raised(pcfg, settings.power, condition), []
    else:
        tilting = Tilting(pcfg, target)
        tilted, frontier = settings.tilted(tilting, condition), [] if figure is None else tilting.frontier(condition)
    numbers = _Numbers.of(tilted, condition)
    record = _record(grammar, output, numbers, frontier)
    show(_table(numbers))

    def save() -> None:
        for file in grammar_files:
            tilted.pcfg.save(file, force=True)

    contents = {"json": json_of(record), "figure": figure_of(lambda: frontier_figure(numbers, frontier))}
    written = files.write_with(save, grammar_files, contents)
    within = "" if condition is None else f" --lengths {condition}"
    names = [*map(str, grammar_files), *written]
    done = f"Wrote {', '.join(names)}" if names else "Nothing written; -o FILE saves it"
    echo(f"{done}. Next: truesource sample {output or 'TILTED.npz'} -n 100000{within} -o corpus/")


def rewards_of(regex: Sequence[str], count: Sequence[str], files: Sequence[Path]) -> Reward | None:
    """Read the rewards of a call and return their sum; None if there are no rewards.

    Raises:
        InputError: a reward cannot be read.
    """
    from truesource.grammar.tilting.rewards import Count, File, Pattern, Sum

    events: list[Reward] = [*map(Pattern, regex), *map(Count.parse, count)]
    rewards = events + [File.read(path) for path in files]
    return reduce(lambda one, other: Sum((one, other)), rewards) if rewards else None


@dataclass(frozen=True)
class _Numbers:
    """Numbers of a tilted grammar, conditional on ``lengths``, if given."""

    tilted: TiltedGrammar
    lengths: LengthRange | None
    log_z: float  #: nats
    expected_reward: float
    kl: float  #: from the grammar, nats a sentence
    before: float  #: mean length, tokens
    after: float  #: mean length after the tilt, tokens

    @classmethod
    def of(cls, tilted: TiltedGrammar, lengths: LengthRange | None) -> _Numbers:
        """Compute them."""
        from truesource.grammar.inference.expected import expected_counts

        numbers = tilted.log_partition(lengths), tilted.expected_reward(lengths), tilted.kl(lengths)
        before = expected_counts(tilted.original, lengths).length
        return cls(tilted, lengths, *numbers, before, expected_counts(tilted.pcfg, tilted.condition(lengths)).length)


def _record(
    grammar: Path, output: Path | None, numbers: _Numbers, frontier: Sequence[FrontierPoint]
) -> dict[str, object]:
    """Return all numbers for JSON."""
    tilted, lengths = numbers.tilted, numbers.lengths
    return {
        "grammar": str(grammar),
        "file": None if output is None else str(output),
        "lengths": None if lengths is None else str(lengths),
        **tilted.description,
        "log_z": numbers.log_z,
        "expected_reward": numbers.expected_reward,
        "kl": numbers.kl,
        "before": {**tilted.original.sizes(), "digest": tilted.original.digest, "mean_length": numbers.before},
        "after": {**tilted.pcfg.sizes(), "digest": tilted.pcfg.digest, "mean_length": numbers.after},
        "frontier": [point._asdict() for point in frontier],
    }


def _table(numbers: _Numbers) -> ReportTable:
    from truesource.evaluation.show.table import ReportTable, TableRow, number_cell

    def row(name: str, before: float | None, after: float, digits: str) -> TableRow:
        return TableRow((name, None if before is None else number_cell(before, digits), number_cell(after, digits)))

    tilted = numbers.tilted
    before, after, kind = tilted.original.sizes(), tilted.pcfg.sizes(), str(tilted.description["kind"])
    rules = ("binary", "unary", "lexical")
    rows = [
        row("ln Z", None, numbers.log_z, ".4f"),
        row("KL from the grammar", 0.0, numbers.kl, ".4f"),
        row(EARNED[kind], None, numbers.expected_reward, ".4f"),
        row("mean length", numbers.before, numbers.after, ".3f"),
        row("symbols", before["symbols"], after["symbols"], ","),
        row("rules", sum(before[k] for k in rules), sum(after[k] for k in rules), ","),
        row("words", before["words"], after["words"], ","),
    ]
    if kind == "event":
        rows.insert(0, row("probability", math.exp(numbers.log_z), 1.0, ".4g"))
    beta = "" if kind == "power" or tilted.beta is None else f"beta {tilted.beta:.4g}; "
    lengths = tilted.description.get("lengths", numbers.lengths)
    within = "" if lengths is None else f", given lengths {lengths}"
    note = f"{beta}ln Z and KL in nats a sentence{within}"
    return ReportTable(columns=("", "grammar", "tilted"), rows=rows, note=note)


def frontier_figure(numbers: _Numbers, frontier: Sequence[FrontierPoint]) -> str:
    """Draw the frontier of reward and KL, and the tilted grammar on it."""
    from truesource.evaluation.show.figures import MODEL, TRUTH, figure, to_svg

    salt = numbers.tilted.pcfg.digest
    with figure(5.4, 3.6, salt) as canvas:
        axes = canvas.subplots()
        axes.plot([p.kl for p in frontier], [p.reward for p in frontier], color=TRUTH, label="exact frontier")
        axes.plot([numbers.kl], [numbers.expected_reward], "o", color=MODEL, label="the tilted grammar")
        axes.set_xlabel("KL from the grammar, nats a sentence")
        axes.set_ylabel("expected reward")
        axes.legend(loc="lower right")
        axes.grid(visible=True)
        return to_svg(canvas, salt, "Maximum reward at each distance from the grammar")
