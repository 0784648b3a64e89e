"""Induction of a grammar from a treebank, for the verb and the stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.grammar.estimate.relative_frequency import relative_frequency
from truesource.grammar.estimate.split_merge.result import TraceRow
from truesource.grammar.estimate.split_merge.train import split_merge
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.treebank import Treebank
    from truesource.run.grammar.config import GrammarConfig

Trace = Sequence[TraceRow]
GAIN = 0.01  #: nats per token of held-out trees; minimum gain of later cycles that helps
ALIKE = 0.01  #: maximum share of held-out trees that are possible at only one of two steps, for comparable means


def induce(
    bank: Treebank,
    config: GrammarConfig,
    *,
    seed: int,
    held_out: Treebank | None = None,
    checkpoint: Path | None = None,
    on_phase: Callable[[Trace], None] | None = None,
) -> tuple[PCFG, Trace]:
    """Induce a grammar by the method of a configuration.

    Args:
        bank: training trees.
        config: the method and its settings.
        seed: seed of the noise of splits.
        held_out: held-out trees whose likelihood is reported.
        checkpoint: folder that stores finished phases of split-merge.
        on_phase: called with the trace after each phase.

    Returns:
        The grammar, whose metadata name the method, the binarisation and the source; and a record for each iteration.
    """
    settings = config.split_merge if config.method == "split_merge" else replace(config.split_merge, cycles=0)
    binarised = map(config.binarise.binarise, bank.trees)  # never all in memory
    trace: Trace = ()
    if settings.cycles or settings.lexicon == "parse" or held_out is not None:
        other = None if held_out is None else map(config.binarise.binarise, held_out.trees)
        folder = checkpoint if settings.cycles else None
        result = split_merge(binarised, settings, seed=seed, held_out=other, checkpoint=folder, on_phase=on_phase)
        pcfg, trace = result.pcfg, result.trace
    elif on_phase is not None:
        raise InputError("--trace records training, but relative frequencies need none; remove --trace")
    else:
        pcfg = relative_frequency(binarised)
    labels = tuple(config.binarise.coarse(label) for label in pcfg.labels)
    about = {"method": config.method.replace("_", "-"), "binarisation": asdict(config.binarise), "source": bank.source}
    return replace(pcfg, labels=labels).with_meta(**about), trace


def useless_cycles(trace: Sequence[Mapping[str, Any]], trees: int | None) -> str:
    """Describe the cycles that did not help held-out trees; empty if the last cycle did, or if unknown.

    Args:
        trace: a record for each step, with ``cycle``, ``held_out`` (nats per token) and ``held_out_impossible``.
        trees: number of held-out trees.
    """
    ends = {row["cycle"]: row for row in trace if row["cycle"] and row.get("held_out") is not None}
    if len(ends) < 2 or not trees:
        return ""
    last = max(ends)
    for cycle in sorted(ends)[:-1]:
        here, later = ends[cycle], [row for number, row in ends.items() if number > cycle]
        lost = [row.get("held_out_impossible") or 0 for row in (here, *later)]
        alike = max(lost) - min(lost) <= ALIKE * trees
        if alike and max(row["held_out"] for row in later) < here["held_out"] + GAIN:
            which = f"cycle {last} did" if last == cycle + 1 else f"cycles {cycle + 1} to {last} did"
            possible = " and ".join(f"{trees - lost[n]:,}" for n in ((0,) if lost[0] == lost[-1] else (0, -1)))
            return (
                f"Further cycles did not help: on held-out trees the grammar has {here['held_out']:.4f} nats per token"
                f" after cycle {cycle} and {ends[last]['held_out']:.4f} after the last one, so {which} not improve it"
                f" (means over the {possible} of {trees:,} trees that it can make)."
            )
    return ""
