"""`truesource vary`: make controlled variants of a grammar, and compute their divergence from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.grammar.conditioning import length_condition
from truesource.terminal.console import echo
from truesource.terminal.options import Force, Grammar, Heads, Json, Lengths

if TYPE_CHECKING:
    from truesource.evaluation.show.table import Cell
    from truesource.grammar.variants import Change, GrammarMeasures, Variant


def command(
    grammar: Grammar,
    variant: Annotated[
        list[str],
        typer.Option("--variant", help="Change to make, such as mirror=all or mirror=NP,zipf=1.2; repeatable."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for original.npz and the variants.")],
    heads: Heads = None,
    lengths: Lengths = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Make controlled variants of a grammar, and compute their exact KL divergence from it.

    Changes: mirror=NP+VP, head-initial=all, head-final=all (order of children); zipf=1.2, sharpen=1.5 (words of each
    class); temperature=0.8 (all rules); 'ablate=NP -> NP PP'; vocabulary=5000, collapse=5000 (other words become
    <unk>). KL is the divergence of derivations, an upper bound of the divergence of sentences.

    Example: truesource vary grammar.npz --variant mirror=all --variant zipf=1.2,temperature=0.8 -o variants/
    """
    from truesource.grammar.diagnostics import require_consistent
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.variants import file_names, measure
    from truesource.terminal.output import OutputFiles, json_of

    changes = read_changes(variant, heads)
    condition = length_condition(lengths)
    files = [
        output / name
        for name in ("original.npz", *(f"{name}.npz" for name in file_names([change.spec for change in changes])))
    ]
    outputs = OutputFiles(folder=output, json=json, force=force)
    pcfg = PCFG.load(grammar)
    require_consistent(pcfg, grammar)
    original = measure(pcfg, condition)
    variants = [change(pcfg, condition, original=original) for change in changes]
    print_table(original, variants)
    record = {
        "grammar": str(grammar),
        "digest": pcfg.digest,
        "lengths": None if condition is None else str(condition),
        "original": {"file": files[0].name, **original.as_dict()},
        "variants": [{"file": file.name, **v.as_dict()} for file, v in zip(files[1:], variants, strict=True)],
    }

    def save() -> None:
        for file, result in zip(files, (pcfg, *(variant.pcfg for variant in variants)), strict=True):
            result.save(file, force=True)

    written = outputs.write_with(save, files, {"json": json_of(record)})
    within = "" if condition is None else f" --lengths {condition}"
    echo(
        f"Wrote {', '.join([*map(str, files), *written])}."
        f" Next: truesource sample {files[1]} -n 100000{within} -o corpus/"
    )


def read_changes(texts: Sequence[str], heads: Path | None) -> list[Change]:
    """Read changes; changes of the order of children use the head rules of a file.

    Raises:
        InputError: a change or the file cannot be read, or none of the changes needs heads.
    """
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.treebank.head_rules import HeadRules
    from truesource.grammar.variants import parse_variant

    if heads is not None and not any("head-" in text for text in texts):
        raise InputError("--heads is used by the changes head-initial and head-final only; add one or remove --heads")
    head_rules = None if heads is None else HeadRules.read(heads)
    return [parse_variant(text, head_rules) for text in texts]


def print_table(original: GrammarMeasures, variants: Sequence[Variant]) -> None:
    """Print the table, and below it why a number is missing."""
    from truesource.evaluation.show.table import ReportTable, TableRow, number_cell
    from truesource.terminal.tables import show

    rows = [TableRow(["original", *_figures(original), number_cell(0.0, ".0f"), number_cell(0.0, ".0f")])]
    for v in variants:
        divergences = (v.divergence.forward_per_token, v.divergence.backward_per_token)
        rows.append(TableRow([v.name, *_figures(v.measures), *(number_cell(kl, ".4f") for kl in divergences)]))
    show(
        ReportTable(
            columns=("variant", "rules", "words", "mean length", "entropy", "KL(P||Q)", "KL(Q||P)"),
            keys=("variant", "rules", "words", "mean_length", "entropy", "forward_kl", "backward_kl"),
            rows=rows,
            note="P: original, Q: variant; entropy and KL of derivations in nats per token",
        )
    )
    for v in variants:
        reasons = [("KL(P||Q)", v.divergence.forward_reason), ("KL(Q||P)", v.divergence.backward_reason)]
        lines = [f"{what} is missing: {reason}" for what, reason in reasons if reason is not None]
        if lines and v.rule_map.bijective:
            lines.append("derivations of P and Q correspond one to one" + _aligned(v))
        elif lines and v.aligned is not v.divergence:
            lines.append("each derivation of P corresponds to one of Q" + _aligned(v))
        if lines:
            echo(f"{v.name}: {'; '.join(lines)}")
        for line in _orders(v):
            echo(f"{v.name}: {line}")


def _orders(v: Variant) -> list[str]:
    """Return which rules of the treebank have their children in another order, for each change of the order."""
    details = v.description["details"]
    texts = []
    for change in details.get("changes", [details]):
        if "nodes_swapped" in change:
            texts.append(f"reordered {_listed(change['nodes_swapped'], change['swapped'])}")
            if change["nodes_kept"]:
                texts.append(f"unchanged {_listed(change['nodes_kept'], change['kept'])}")
    return texts


def _listed(count: int, examples: Sequence[str]) -> str:
    more = f" and {count - len(examples):,} more" if count > len(examples) else ""
    return f"{count:,} {'rule' if count == 1 else 'rules'}{': ' if examples else ''}{', '.join(examples)}{more}"


def _aligned(v: Variant) -> str:
    """Describe the divergence of corresponding derivations."""
    parts = [
        f"{what} {value:.4f}"
        for what, value in (("KL(P||Q)", v.aligned.forward_per_token), ("KL(Q||P)", v.aligned.backward_per_token))
        if value is not None
    ]
    return f"; over corresponding derivations, {', '.join(parts)}" if parts else ""


def _figures(m: GrammarMeasures) -> tuple[Cell | None, ...]:
    from truesource.evaluation.show.table import number_cell

    return (
        number_cell(m.rules, ","),
        number_cell(m.words, ","),
        number_cell(m.mean_length, ".3f"),
        number_cell(m.entropy_per_token, ".4f"),
    )
