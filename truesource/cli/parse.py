"""`truesource parse`: the best trees of sentences."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.options import Force

NAME = "parse"


class Method(StrEnum):
    """What makes a tree the best one."""

    VITERBI = "viterbi"
    MAX_RULE = "max-rule"
    MAX_SPAN = "max-span"


def command(
    grammar: Annotated[Path, typer.Argument(help="A grammar: .npz or text.")],
    text: Annotated[Path, typer.Argument(help="Text, one tokenised sentence a line.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Penn bracketings to write.")],
    method: Annotated[
        Method,
        typer.Option(
            help="Most probable derivation, most probable rules (best for split grammars),"
            " or most correct spans expected."
        ),
    ] = Method.VITERBI,
    gold: Annotated[
        Path | None, typer.Option(help="Treebank with the trees of the same sentences: print labelled F1.")
    ] = None,
    force: Force = False,
) -> None:
    """Write the best tree of every sentence, with treebank labels; () where the grammar has none.

    Words the grammar does not know are read by their form, if it was induced with --lexicon parse.
    """
    from generator.text import read_sentences
    from grammar.errors import InputError
    from grammar.files import write_text
    from grammar.inference.max_rule import max_rule_tree, max_span_tree
    from grammar.inference.posterior import posterior, tables
    from grammar.pcfg import PCFG
    from grammar.progress import track
    from grammar.surface import surface
    from grammar.tree import Tree
    from grammar.treebank import Treebank, splice
    from grammar.unknown import put_words, read_words
    from truesource.cli.inputs import claim_file, list_lines

    def best(sentence: list[str]) -> Tree:
        return put_words(best_of_known(read_words(pcfg, sentence)), sentence)

    def best_of_known(sentence: list[str]) -> Tree:
        if method is Method.VITERBI:
            return surface(pcfg.viterbi(sentence)[0], pcfg)
        found = posterior(pcfg, sentence)
        return splice((max_rule_tree if method is Method.MAX_RULE else max_span_tree)(found)[0])

    claim_file(output, force)
    pcfg = PCFG.load(grammar)
    if method is not Method.VITERBI:
        tables(pcfg.exact)  # a grammar that has no unary closure fails here, not at every sentence
    sentences = read_sentences(text)
    wanted = None if gold is None else Treebank.read(gold)
    if wanted is not None and len(wanted) != len(sentences):
        raise InputError(
            f"{len(wanted):,} gold trees for the {len(sentences):,} sentences of {text}; give as many", gold
        )
    trees: list[Tree | None] = []
    for sentence in track(sentences, "parse", len(sentences)):
        try:
            trees.append(best(sentence))
        except InputError:
            trees.append(None)
    write_text(output, "".join(f"{tree or '()'}\n" for tree in trees))
    failed = [number for number, tree in enumerate(trees, start=1) if tree is None]
    if failed:
        what = "cannot be made by the grammar and read ()"
        typer.echo(f"{len(failed)} of {len(sentences)} sentences {what}: {list_lines(failed)}", err=True)
    if wanted is not None:
        from evaluation.measures.brackets import compare_brackets

        typer.echo(str(compare_brackets(wanted.trees, trees)))
    typer.echo(f"Wrote {output}: {len(sentences) - len(failed):,} trees. Next: truesource bound {grammar} {text}")
