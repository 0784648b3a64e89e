"""`truesource parse`: the best trees of sentences."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Convention, Force


class ParseMethod(StrEnum):
    """What makes a tree the best one."""

    VITERBI = "viterbi"
    MAX_RULE = "max-rule"
    MAX_SPAN = "max-span"


def command(
    grammar: Annotated[Path, typer.Argument(help="A grammar: .npz or text.")],
    text: Annotated[Path, typer.Argument(help="Text, one tokenised sentence a line.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Penn bracketings to write.")],
    method: Annotated[
        ParseMethod,
        typer.Option(
            help="Most probable derivation, most probable rules (best for split grammars),"
            " or most correct spans expected."
        ),
    ] = ParseMethod.VITERBI,
    gold: Annotated[
        Path | None, typer.Option(help="Treebank with the trees of the same sentences: print labelled F1.")
    ] = None,
    convention: Convention = "penn",
    longest: Annotated[
        int | None, typer.Option(min=1, help="Leave sentences of more words unparsed, and out of the F1.")
    ] = None,
    force: Force = False,
) -> None:
    """Write the best tree of every sentence, with treebank labels; () where the grammar has none.

    A sentence whose chart does not fit the memory of the machine reads (), too.
    Words the grammar does not know are read by their form, if it was induced with --lexicon parse.
    """
    from itertools import compress

    from truesource.cli.claims import claim_files
    from truesource.cli.inputs import list_lines, show_reading
    from truesource.generator.text import read_sentences
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import write_text
    from truesource.grammar.inference.batch import TooLongError
    from truesource.grammar.inference.max_rule import max_rule_tree, max_span_tree
    from truesource.grammar.inference.posterior import posterior, tables
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.progress import track
    from truesource.grammar.surface import surface
    from truesource.grammar.tree import Tree
    from truesource.grammar.treebank import Normalisation, Treebank, splice
    from truesource.grammar.unknown import put_words, read_words

    def best(sentence: list[str]) -> Tree:
        return put_words(best_of_known(read_words(pcfg, sentence)), sentence)

    def best_of_known(sentence: list[str]) -> Tree:
        if method is ParseMethod.VITERBI:
            return surface(pcfg.viterbi(sentence)[0], pcfg)
        found = posterior(pcfg, sentence)
        return splice((max_rule_tree if method is ParseMethod.MAX_RULE else max_span_tree)(found)[0])

    if gold is None and convention != "penn":
        raise InputError("--convention: of the trees that --gold names; leave it out")
    claim_files(output, force=force)
    pcfg = PCFG.load(grammar)
    if method is not ParseMethod.VITERBI:
        tables(pcfg.exact)  # a grammar that has no unary closure fails here, not at every sentence
    sentences = read_sentences(text)
    wanted = None if gold is None else Treebank.read(gold, Normalisation(convention=convention))
    if wanted is not None:
        show_reading(wanted)
    if wanted is not None and len(wanted) != len(sentences):
        raise InputError(
            f"{len(wanted):,} gold trees for the {len(sentences):,} sentences of {text}; give as many", gold
        )
    trees: list[Tree | None] = []
    large: dict[int, TooLongError] = {}
    short = [longest is None or len(sentence) <= longest for sentence in sentences]
    for number, (sentence, taken) in enumerate(
        zip(track(sentences, "parse", len(sentences)), short, strict=True), start=1
    ):
        try:
            trees.append(best(sentence) if taken else None)
        except TooLongError as error:
            trees.append(None)
            large[number] = TooLongError(error.tokens, error.needed, number)
        except InputError:
            trees.append(None)
    write_text(output, "".join(f"{tree or '()'}\n" for tree in trees))
    for too_long in large.values():
        echo(f"{too_long}; it reads ()", err=True)
    failed = [
        i
        for i, (tree, taken) in enumerate(zip(trees, short, strict=True), start=1)
        if taken and tree is None and i not in large
    ]
    if failed:
        what = "cannot be made by the grammar and read ()"
        echo(f"{len(failed)} of {sum(short)} sentences {what}: {list_lines(failed)}", err=True)
    if longest is not None:
        echo(f"{len(short) - sum(short)} sentences of more than {longest} words read ()")
    if wanted is not None:
        from truesource.evaluation.measures.brackets import compare_brackets

        echo(str(compare_brackets(list(compress(wanted.trees, short)), list(compress(trees, short)))))
    echo(f"Wrote {output}: {sum(short) - len(failed) - len(large):,} trees. Next: truesource bound {grammar} {text}")
