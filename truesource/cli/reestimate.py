"""The part of `truesource induce` that fits a grammar to sentences without trees, or with brackets only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.cli.console import echo
from truesource.cli.output import OutputFiles, json_of

if TYPE_CHECKING:
    from truesource.grammar.conventions import Name
    from truesource.grammar.estimate.inside_outside import Brackets

Text = list[list[str]]


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
    outputs: OutputFiles,
) -> None:
    """Inside-outside EM over sentences without trees (``unbracketed``) or with the brackets of a treebank.

    ``held_out`` is more of the same kind: text or a corpus folder (its split dev), or a treebank.
    """
    import shutil

    from truesource.grammar.diagnostics import require_consistent
    from truesource.grammar.estimate.inside_outside import inside_outside
    from truesource.grammar.formats import save_grammar
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.files import digest_json, write_json_lines

    start = PCFG.load(start_from)
    known: Brackets | None = None
    if unbracketed is not None:
        sentences, others = _read_text(unbracketed, held_out)
    else:
        sentences, known, others = _read_brackets(str(brackets), convention, held_out)
    call = digest_json([start.digest, sentences, known, others, iterations])[:12]  # each call has its own
    checkpoint = output.with_name(f".{output.name}.{call}.checkpoint")
    fitted = inside_outside(
        start,
        sentences,
        brackets=known,
        iterations=iterations,
        tolerance=1e-6,
        held_out=others,
        checkpoint=checkpoint,
    )
    _report(fitted.trace, len(sentences), None if others is None else len(others))
    require_consistent(fitted.pcfg)
    about = {"grammar": str(output), "digest": fitted.pcfg.digest, "sizes": fitted.pcfg.sizes()}
    wrote = outputs.write(
        grammar=lambda file: save_grammar(fitted.pcfg, file, force=True),
        trace=lambda file: write_json_lines(file, fitted.trace),
        json=json_of({**about, "sentences": len(sentences), "iterations": list(fitted.trace)}),
    )
    shutil.rmtree(checkpoint, ignore_errors=True)
    following = f"truesource bound {output} {unbracketed}" if unbracketed else f"truesource inspect {output}"
    echo(f"Wrote {' and '.join(wrote)}: {fitted.pcfg!r}. Next: {following}")


def _read_text(path: Path, held_out: str | None) -> tuple[Text, Text | None]:
    from truesource.cli.inputs import read_sentences

    return read_sentences(path, "train")[0], None if held_out is None else read_sentences(Path(held_out), "dev")[0]


def _read_brackets(path: str, convention: Name, held_out: str | None) -> tuple[Text, Brackets, Text | None]:
    from truesource.cli.inputs import show_reading
    from truesource.grammar.estimate.inside_outside import tree_brackets
    from truesource.grammar.treebank import Normalisation, Treebank

    normalise = Normalisation(convention=convention)
    bank = Treebank.read(path, normalise)
    show_reading(bank)
    others = None if held_out is None else Treebank.read(held_out, normalise).sentences()
    return bank.sentences(), [tree_brackets(tree) for tree in bank], others


def _report(trace: tuple[dict[str, Any], ...], sentences: int, held_out: int | None) -> None:
    for record in trace:
        echo(f"iteration {record['iteration']}: {record['log_likelihood']:.6f} nats per token")
    last = trace[-1]
    if last["impossible"]:
        echo(f"{last['impossible']:,} of {sentences:,} sentences are impossible: left out")
    if held_out is not None:
        value = "no" if last["held_out"] is None else f"{last['held_out']:.6f}"
        echo(
            f"held out: {value} nats per token; {last['held_out_impossible']:,} of {held_out:,} sentences are"
            " impossible and left out"
        )
