"""`truesource split`: split a treebank into training text and held-out text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Convention, Force, Json, Lengths, Normalise, Seed

if TYPE_CHECKING:
    from truesource.grammar.treebank import Normalisation, Treebank
    from truesource.run.treebank.text import TreebankText


def command(
    treebank: Annotated[str, typer.Argument(help="Penn bracketings: a file (.gz too), a folder, or a quoted glob.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write.")],
    held_out: Annotated[str, typer.Option(help="Share of the trees to hold out, or a held-out treebank.")] = "0.05",
    dev: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of the training trees for a split dev.")] = 0.0,
    lengths: Lengths = None,
    disjoint: Annotated[
        bool, typer.Option("--disjoint", help="Exclude held-out sentences that also occur in the training text.")
    ] = False,
    convention: Convention = "penn",
    normalise: Normalise = None,
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    force: Force = False,
) -> None:
    """Split a treebank by tree, and write its sentences as text: train.txt, held_out.txt.

    Models trained on these sentences show what a grammar of the same trees misses. The folder also has the trees, so
    that a grammar can be induced from the same split: treebank.mrg.gz, held_out.mrg.gz.

    Example: truesource split treebank.mrg -o text/ --held-out 0.1 --lengths 6..25
    """
    from truesource.grammar.conditioning import length_condition
    from truesource.grammar.treebank import Treebank
    from truesource.run.treebank.text import RECORD, write_text_folder
    from truesource.terminal.output import OutputFiles, claim_folder, json_of
    from truesource.terminal.treebanks import normalisation, show_reading

    share = _share(held_out)
    condition = length_condition(lengths)
    claim_folder(output, "folder of texts", RECORD, force=force)
    files = OutputFiles(json=json, force=force)
    settings = normalisation(convention, normalise)
    bank = Treebank.read(treebank, settings)
    show_reading(bank)
    train_trees, held_out_trees = _parts(bank, held_out, share, settings, seed)
    text = write_text_folder(
        output,
        train_trees,
        held_out_trees,
        lengths=condition,
        dev=dev,
        seed=seed,
        disjoint=disjoint,
        about={"held_out": held_out if share is None else share},
        trees=True,
    )
    show_text(text)
    echo(
        f"Wrote {output}{files.also(json=json_of(text.about))}. Next: truesource train {output / 'train.txt'} -o model/"
    )


def _share(held_out: str) -> float | None:
    """Read the share to hold out; None if the option names a treebank.

    Raises:
        InputError: the share is not between 0 and 1.
    """
    from truesource.grammar.support.errors import InputError

    try:
        share = float(held_out)
    except ValueError:
        return None
    if not 0.0 < share < 1.0:
        raise InputError(f"--held-out is a share between 0 and 1, such as 0.05, or a treebank; got {held_out}")
    return share


def _parts(
    bank: Treebank, held_out: str, share: float | None, normalise: Normalisation, seed: int
) -> tuple[Treebank, Treebank]:
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.treebank import Treebank, hold_out

    if share is None:
        return bank, Treebank.read(held_out, normalise)
    train_trees, held_out_trees = hold_out(bank, share, seed)
    if held_out_trees is None:
        raise InputError(f"{len(bank)} trees are too few to hold out a share of {share:g}; give more", bank.source)
    return train_trees, held_out_trees


def show_text(text: TreebankText) -> None:
    """Print the sizes of the splits, what was excluded, and what they share."""
    from truesource.evaluation.show.words import count

    for name, split in text.about["splits"].items():
        outside = f"; {split['outside']:,} of other lengths excluded" if split["outside"] else ""
        repeated = f"; {split['repeated']:,} that train also has excluded" if split["repeated"] else ""
        echo(f"{name:9s} {count(split['sentences'], 'sentence')}, {count(split['words'], 'word')}{outside}{repeated}")
    if shared := text.about["shared_trees"]:
        echo(f"Warning: {shared:,} held-out trees are also among the training trees", err=True)
    left = text.about["shared_sentences"] - text.about["splits"]["held_out"]["repeated"]
    if left > 0:
        echo(f"{left:,} held-out sentences also occur in the training text; --disjoint excludes them")
