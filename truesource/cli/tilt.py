"""`truesource tilt`: the exact optimum of a reward with a KL penalty, or a language given an event, as a grammar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

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
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.tilting.rewards import Reward
    from truesource.grammar.tilting.tilt import FrontierPoint, TiltedGrammar, Tilting

#: what the expected reward of each kind of tilt is
EARNED = {
    "reward": "expected reward",
    "probability": "probability of the event",
    "event": "expected reward",
    "power": "expected ln p of a derivation",
}


class TiltSettings(Settings):
    """Settings of a tilt."""

    power: float | None = Field(None, description="Raise derivations to this power.")
    beta: float | None = Field(None, description="Price of KL: p(x) exp(r(x) / beta), in which an event has reward 1.")
    probability: float | None = Field(None, description="Give the event this probability, instead of --beta.")
    complement: bool = Field(False, description="Require that the event does not hold.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.beta is not None) + (self.probability is not None) + self.complement > 1:
            raise ValueError("--beta, --probability and --complement exclude each other; keep one")
        return self

    def require_reward(self, wanted: Reward | None) -> None:
        """Refuse settings that do not go with the reward, before anything is read.

        Raises:
            InputError: they do not.
        """
        from truesource.grammar.tilting.rewards import Event

        if (wanted is None) == (self.power is None):
            raise InputError("say how to tilt: by --regex, --count or --reward, or by --power alone")
        if wanted is None and self != TiltSettings(power=self.power):
            raise InputError("--power has no reward; remove --beta, --probability and --complement")
        if wanted is not None and not isinstance(wanted, Event) and self.beta is None:
            raise InputError("a reward, or a sum of several, needs --beta; only one event can be required without it")

    def tilted(self, tilting: Tilting, lengths: LengthRange | None) -> TiltedGrammar:
        """The grammar, tilted so; the probability of an event is that given ``lengths``, if there are any."""
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
    --beta an event (--regex, --count) is required: p(x | event), of which Z is the probability. Several rewards add
    up, and need --beta. The numbers, --probability too, hold given --lengths, if there are any; the grammar itself has
    all lengths, or these alone if the sum over all is infinite.

    Example: truesource tilt english --regex '.* that .*' --beta 0.5 -o tilted.npz --figure frontier.svg
    """
    from truesource.grammar.diagnostics import require_consistent
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.tilting.tilt import Tilting
    from truesource.grammar.tilting.tilt import power as raised
    from truesource.terminal.output import OutputFiles, figure_of, json_of
    from truesource.terminal.tables import show

    made = [] if output is None else [output]
    files = OutputFiles(more=made, json=json, figure=figure, force=force)
    condition = length_condition(lengths)
    wanted = rewards_of(regex or [], count or [], reward or [])
    settings.require_reward(wanted)
    if figure is not None and wanted is None:
        raise InputError("--figure draws the frontier of a reward, which --power has not; remove it")
    pcfg = PCFG.load(grammar)
    if condition is None:
        require_consistent(pcfg, grammar)
    if wanted is None:
        assert settings.power is not None, "one of them is given"
        tilted, frontier = raised(pcfg, settings.power, condition), []
    else:
        tilting = Tilting(pcfg, wanted)
        tilted, frontier = settings.tilted(tilting, condition), [] if figure is None else tilting.frontier(condition)
    record = _record(grammar, output, tilted, condition, frontier)
    show(_table(record))

    def save() -> None:
        for file in made:
            tilted.pcfg.save(file, force=True)

    written = files.write_with(
        save,
        made,
        {"json": json_of(record), "figure": figure_of(lambda: frontier_figure(record))},
    )
    within = "" if condition is None else f" --lengths {condition}"
    done = f"Wrote {', '.join([*map(str, made), *written])}" if made or written else "Nothing written; -o FILE keeps it"
    echo(f"{done}. Next: truesource sample {output or 'TILTED.npz'} -n 100000{within} -o corpus/")


def rewards_of(regex: Sequence[str], count: Sequence[str], files: Sequence[Path]) -> Reward | None:
    """The sum of all rewards that are asked for; None where there is none.

    Raises:
        InputError: one cannot be read.
    """
    from truesource.grammar.tilting.rewards import Count, File, Pattern, Sum

    events: list[Reward] = [*map(Pattern, regex), *map(Count.parse, count)]
    rewards = events + [File.read(path) for path in files]
    return reduce(lambda one, other: Sum((one, other)), rewards) if rewards else None


def _record(
    grammar: Path,
    output: Path | None,
    tilted: TiltedGrammar,
    lengths: LengthRange | None,
    frontier: list[FrontierPoint],
) -> dict[str, Any]:
    """All numbers, for JSON."""
    from truesource.grammar.inference.expected import expected_counts

    def sizes(pcfg: PCFG, condition: LengthRange | None) -> dict[str, Any]:
        return {**pcfg.sizes(), "digest": pcfg.digest, "mean_length": expected_counts(pcfg, condition).length}

    return {
        "grammar": str(grammar),
        "file": None if output is None else str(output),
        "lengths": None if lengths is None else str(lengths),
        **tilted.description,
        "log_z": tilted.log_partition(lengths),
        "expected_reward": tilted.expected_reward(lengths),
        "kl": tilted.kl(lengths),
        "before": sizes(tilted.original, lengths),
        "after": sizes(tilted.pcfg, tilted.condition(lengths)),
        "frontier": [point._asdict() for point in frontier],
    }


def _table(record: dict[str, Any]) -> ReportTable:
    from truesource.evaluation.show.table import ReportTable, TableRow, number_cell

    def row(name: str, before: float | None, after: float, digits: str) -> TableRow:
        return TableRow((name, None if before is None else number_cell(before, digits), number_cell(after, digits)))

    before, after = record["before"], record["after"]
    rules = ("binary", "unary", "lexical")
    rows = [
        row("ln Z", None, record["log_z"], ".4f"),
        row("KL from the grammar", 0.0, record["kl"], ".4f"),
        row(EARNED[record["kind"]], None, record["expected_reward"], ".4f"),
        row("mean length", before["mean_length"], after["mean_length"], ".3f"),
        row("symbols", before["symbols"], after["symbols"], ","),
        row("rules", sum(before[k] for k in rules), sum(after[k] for k in rules), ","),
        row("words", before["words"], after["words"], ","),
    ]
    if record["kind"] == "event":
        rows.insert(0, row("probability", math.exp(record["log_z"]), 1.0, ".4g"))
    beta = f"beta {record['beta']:.4g}; " if record.get("beta") is not None else ""
    note = f"{beta}ln Z and KL in nats a sentence" + (
        f", given lengths {record['lengths']}" if record["lengths"] else ""
    )
    return ReportTable(columns=("", "grammar", "tilted"), rows=rows, note=note)


def frontier_figure(record: dict[str, Any]) -> str:
    """The frontier of reward and KL, and the tilted grammar on it."""
    from truesource.evaluation.show.figures import MODEL, TRUTH, figure, to_svg

    salt = record["after"]["digest"]
    with figure(5.4, 3.6, salt) as drawn:
        axes = drawn.subplots()
        points = record["frontier"]
        axes.plot([p["kl"] for p in points], [p["reward"] for p in points], color=TRUTH, label="exact frontier")
        axes.plot([record["kl"]], [record["expected_reward"]], "o", color=MODEL, label="the tilted grammar")
        axes.set_xlabel("KL from the grammar, nats a sentence")
        axes.set_ylabel("expected reward")
        axes.legend(loc="lower right")
        axes.grid(visible=True)
        return to_svg(drawn, salt, "Most reward at each distance from the grammar")
