"""`truesource parse`: the best trees of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Convention, Force, Grammar
from truesource.grammar.parsing.method import ParseMethod

if TYPE_CHECKING:
    from truesource.grammar.inference.batch import TooLongError
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.tree import Tree


def command(
    grammar: Grammar,
    text: Annotated[Path, typer.Argument(help="Text with one tokenised sentence per line.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File for the Penn bracketings.")],
    method: Annotated[
        ParseMethod,
        typer.Option(help="Criterion: most probable derivation, rules (best for split grammars), or spans."),
    ] = ParseMethod.VITERBI,
    gold: Annotated[
        Path | None, typer.Option(help="Treebank with trees of the same sentences, to report labelled F1.")
    ] = None,
    convention: Convention = "penn",
    longest: Annotated[
        int | None, typer.Option(min=1, help="Skip sentences with more words, also when computing F1.")
    ] = None,
    force: Force = False,
) -> None:
    """Write the best tree of every sentence, with treebank labels; () if there is none.

    A sentence also gets () if its chart does not fit into memory. Unknown words are handled by their form if the
    grammar was induced with --lexicon parse.

    Example: truesource parse grammar.npz text.txt -o trees.mrg --method max-rule
    """
    from itertools import compress

    from truesource.cli.claims import claim_files
    from truesource.evaluation.measures.brackets import compare_brackets
    from truesource.generator.text import read_sentences
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.support.files import write_text

    if gold is None and convention != "penn":
        raise InputError("--convention applies to the trees of --gold; add --gold or remove --convention")
    claim_files(output, force=force)
    pcfg = PCFG.load(grammar)
    sentences = read_sentences(text)
    wanted = None if gold is None else _read_gold(gold, convention, text, len(sentences))
    made = parse_all(pcfg, sentences, method, longest)
    write_text(output, "".join(f"{tree or '()'}\n" for tree in made.trees))
    made.report(longest)
    if wanted is not None:
        echo(str(compare_brackets(list(compress(wanted, made.short)), list(compress(made.trees, made.short)))))
    trees = sum(tree is not None for tree in made.trees)
    echo(f"Wrote {output}: {trees:,} trees. Next: truesource bound {grammar} {text}")


@dataclass(frozen=True)
class Parses:
    """The best trees of sentences, None where there is none, and why."""

    trees: list[Tree | None]
    short: list[bool]  #: whether a sentence is short enough to be parsed
    too_long: list[TooLongError]  #: of sentences whose chart does not fit into memory
    impossible: list[int]  #: numbers of sentences that the grammar cannot make, from 1

    def report(self, longest: int | None) -> None:
        """Print which sentences have no tree."""
        from truesource.grammar.support.printable import list_lines

        for error in self.too_long:
            echo(f"{error}; its tree is ()", err=True)
        if self.impossible:
            which = f"{len(self.impossible)} of {sum(self.short)} sentences cannot be made by the grammar"
            echo(f"{which}, their trees are (): {list_lines(self.impossible)}", err=True)
        if longest is not None:
            echo(f"{len(self.short) - sum(self.short)} sentences of more than {longest} words skipped, trees are ()")


def parse_all(pcfg: PCFG, sentences: Sequence[list[str]], method: ParseMethod, longest: int | None) -> Parses:
    """The best trees of sentences of up to ``longest`` words."""
    from truesource.grammar.inference.batch import TooLongError
    from truesource.grammar.parsing.parser import Parser
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.support.progress import track

    parser = Parser(pcfg, method)
    made = Parses([], [longest is None or len(sentence) <= longest for sentence in sentences], [], [])
    for number, sentence in enumerate(track(sentences, "parse", len(sentences)), start=1):
        tree = None
        try:
            tree = parser.parse(sentence).tree if made.short[number - 1] else None
        except TooLongError as error:
            made.too_long.append(TooLongError(error.tokens, error.needed, number))
        except InputError:
            made.impossible.append(number)
        made.trees.append(tree)
    return made


def _read_gold(gold: Path, convention: Convention, text: Path, sentences: int) -> list[Tree]:
    from truesource.cli.inputs import show_reading
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.treebank import Normalisation, Treebank

    bank = Treebank.read(gold, Normalisation(convention=convention))
    show_reading(bank)
    if len(bank) != sentences:
        raise InputError(
            f"the treebank has {len(bank):,} trees, but {text} has {sentences:,} sentences; both need the same number",
            gold,
        )
    return list(bank.trees)
