"""`truesource inspect`: the grammar doctor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Force, Json, SplitName

if TYPE_CHECKING:
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.coverage import Coverage

MOST = 10  #: unknown words listed


def command(
    grammar: Annotated[Path, typer.Argument(help="A grammar: .npz or text of any format.")],
    text: Annotated[
        Path | None, typer.Argument(help="Also look at this corpus folder, or text with one tokenised sentence a line.")
    ] = None,
    lengths: Annotated[
        str | None, typer.Option(help="Lengths to condition TEXT on, such as 6..25, or none; default: as it was drawn.")
    ] = None,
    split: SplitName = "eval",
    json: Json = None,
    force: Force = False,
) -> None:
    """Examine a grammar: sizes, consistency, expected length, entropy, cycles, symbols of no use.

    With TEXT also how much of it the grammar knows: unknown words, impossible sentences, mean log probability.
    A line that starts with ! is a problem.
    """
    from truesource.cli.claims import claim_files
    from truesource.cli.inputs import read_sentences
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.coverage import coverage
    from truesource.grammar.diagnostics import diagnose, is_serious
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import write_json
    from truesource.grammar.pcfg import PCFG

    claim_files(json, force=force)
    if text is None and lengths is not None:
        raise InputError("--lengths needs a TEXT to look at")
    condition = None if lengths is None else LengthRange.parse(lengths)
    sentences, drawn = ([], None) if text is None else read_sentences(text, split)
    pcfg = PCFG.load(grammar, lenient=True)
    found = diagnose(pcfg)
    echo(f"symbols {found.symbols:,}, words {found.words:,}")
    echo(f"rules: {found.binary:,} binary, {found.unary:,} unary, {found.lexical:,} lexical")
    echo(f"total mass {found.total_mass:.9f}, spectral radius {found.spectral_radius:.6f}")
    if found.mean_length is not None and found.derivational_entropy is not None:
        echo(
            f"mean length {found.mean_length:.3f} tokens,"
            f" derivational entropy {found.derivational_entropy:.3f} nats a sentence"
        )
    echo(_cycles("unary cycles", found.unary_cyclic, found.unary_cycle_groups, found.unary_cycle))
    echo(_cycles("left recursion", found.left_recursive, found.left_recursive_groups, found.left_cycle))
    record = found.as_dict()
    if text is not None:
        seen = coverage(pcfg, sentences, lengths=drawn if lengths is None else condition)
        _show(seen, drawn if lengths is None else condition)
        record["coverage"] = seen.as_dict()
    for problem in found.problems:
        echo(f"! {problem}")
    wrote = "" if found.problems else "No problem found. "
    if json is not None:
        write_json(json, record)
        wrote += f"Wrote {json}. "
    step = (
        f"mend {grammar}, then inspect it again"
        if is_serious(found)
        else f"truesource sample {grammar} -n 100000 -o corpus/"
    )
    echo(f"{wrote}Next: {step}")


def _cycles(what: str, symbols: int, groups: int, example: tuple[str, ...]) -> str:
    """One line on cycles; they do no harm here."""
    if not symbols:
        return f"{what}: none"
    some = f"{symbols:,} symbol{'s' if symbols > 1 else ''} in {groups:,} group{'s' if groups > 1 else ''}"
    return f"{what}: {some}, such as {' -> '.join(example)}"


def _show(seen: Coverage, lengths: LengthRange | None) -> None:
    """Lines on the coverage of a text."""
    from truesource.cli.inputs import list_lines

    words = ", ".join(f"{word} ({n:,})" for word, n in seen.unknown[:MOST])
    more = "" if seen.unknown_types <= MOST else ", ..."
    echo(f"text: {seen.sentences:,} sentences, {seen.tokens:,} tokens, {seen.types:,} types")
    echo(
        f"unknown words: {seen.unknown_tokens:,} tokens ({seen.unknown_tokens / seen.tokens:.2%}),"
        f" {seen.unknown_types:,} types ({seen.unknown_types / seen.types:.2%})" + (f": {words}{more}" if words else "")
    )
    within = "" if lengths is None else f" with {lengths} tokens"
    where = f": {list_lines(seen.impossible)}" if seen.impossible else ""
    echo(f"sentences the grammar cannot make{within}: {len(seen.impossible):,}{where}")
    if seen.mean_log_prob is not None:
        echo(f"mean log probability of the others: {seen.mean_log_prob:.4f} nats a sentence")
