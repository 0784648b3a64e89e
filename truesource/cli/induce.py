"""`truesource induce`: a grammar from a treebank."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.options import Force, Seed

NAME = "induce"


def command(
    treebank: Annotated[str, typer.Argument(help="Penn bracketings: a file (.gz too), a folder, or a quoted glob.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The grammar to write (.npz, or text).")],
    cycles: Annotated[int, typer.Option(min=0, help="Split-merge cycles; 0 is the relative-frequency grammar.")] = 5,
    lexicon: Annotated[str, typer.Option(help="Lexicon mode: generate (no unknown-word mass).")] = "generate",
    seed: Seed = 1,
    force: Force = False,
) -> None:
    """Induce a probabilistic grammar from a treebank (split-merge, Petrov et al. 2006).

    After Ctrl-C the same command goes on from the last finished phase.
    """
    from collections import Counter
    from dataclasses import asdict

    from grammar.doctor import require_consistent
    from grammar.estimate import SplitMerge, relative_frequency, split_merge
    from grammar.files import digest_json
    from grammar.formats import save_grammar
    from grammar.treebank import Treebank
    from truesource.cli.inputs import claim_file

    claim_file(output, force)
    config = SplitMerge(cycles=cycles, lexicon=lexicon)
    bank = Treebank.read(treebank)
    typer.echo(str(bank.statistics()))
    for reason, count in Counter(refusal.reason for refusal in bank.refused).most_common():
        typer.echo(f"{count:,} trees refused: {reason}")
    binarised = bank.binarise()
    if cycles == 0:
        pcfg = relative_frequency(binarised)
    else:
        call = digest_json([asdict(config), seed, binarised.digest])[:12]  # other settings never meet its checkpoint
        checkpoint = output.with_name(f".{output.name}.{call}.checkpoint")
        pcfg = split_merge(binarised, config, seed=seed, checkpoint=checkpoint).pcfg
    require_consistent(pcfg)
    save_grammar(pcfg, output, force=force)
    if cycles:
        import shutil

        shutil.rmtree(checkpoint, ignore_errors=True)
    typer.echo(f"Wrote {output}: {pcfg!r}. Next: truesource sample {output} -n 100000 -o corpus/")
