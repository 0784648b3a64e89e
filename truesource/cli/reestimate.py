"""The part of `truesource induce` that fits a grammar to sentences without trees, or with brackets only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from truesource.cli.console import echo
from truesource.grammar.outputs import Outputs

if TYPE_CHECKING:
    from truesource.grammar.conventions import Name


def reestimate(
    start_from: Path,
    output: Path,
    iterations: int,
    *,
    unbracketed: Path | None,
    brackets: str | None,
    convention: Name,
    held_out: str | None,
    trace: Path | None,
    outputs: Outputs,
) -> None:
    """Inside-outside EM over the sentences of one of ``unbracketed`` (none known) and ``brackets`` (a treebank).

    ``held_out`` is more of the same kind: text or a corpus folder (its split dev), or a treebank.
    """
    import shutil

    from truesource.cli.inputs import read_sentences, show_reading
    from truesource.grammar.diagnostics import require_consistent
    from truesource.grammar.estimate.inside_outside import inside_outside
    from truesource.grammar.estimate.rule_counts import tree_brackets
    from truesource.grammar.files import digest_json, write_json_lines
    from truesource.grammar.formats import save_grammar
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.treebank import Normalisation, Treebank

    start = PCFG.load(start_from)
    known = others = None
    if unbracketed is not None:
        sentences, _ = read_sentences(unbracketed, "train")
        if held_out is not None:
            others, _ = read_sentences(Path(held_out), "dev")
    else:
        normalise = Normalisation(convention=convention)
        bank = Treebank.read(str(brackets), normalise)
        show_reading(bank)
        sentences, known = bank.sentences(), [tree_brackets(tree) for tree in bank]
        if held_out is not None:
            others = Treebank.read(held_out, normalise).sentences()
    call = digest_json([start.digest, sentences, known, others, iterations])[:12]  # others never meet its checkpoint
    checkpoint = output.with_name(f".{output.name}.{call}.checkpoint")
    found = inside_outside(
        start,
        sentences,
        brackets=known,
        iterations=iterations,
        tolerance=1e-6,
        held_out=others,
        checkpoint=checkpoint,
    )
    for record in found.trace:
        echo(f"iteration {record['iteration']}: {record['log_likelihood']:.6f} nats per token")
    if found.trace[-1]["impossible"]:
        echo(f"{found.trace[-1]['impossible']:,} of {len(sentences):,} sentences are impossible: left out")
    if others is not None:
        last = found.trace[-1]
        value = "no" if last["held_out"] is None else f"{last['held_out']:.6f}"
        echo(
            f"held out: {value} nats per token; {last['held_out_impossible']:,} of {len(others):,} sentences are"
            " impossible and left out"
        )
    require_consistent(found.pcfg)
    with outputs.together():
        save_grammar(found.pcfg, output, force=True)
        if trace is not None:
            write_json_lines(trace, found.trace)
    shutil.rmtree(checkpoint, ignore_errors=True)
    following = f"truesource bound {output} {unbracketed}" if unbracketed else f"truesource inspect {output}"
    echo(f"Wrote {output}: {found.pcfg!r}. Next: {following}")
