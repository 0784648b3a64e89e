"""`truesource cite`: what to cite."""

from __future__ import annotations

import typer

NAME = "cite"

WORKS = (
    "the comparison of language models with an exact grammar: Jumelet and Zuidema (2023), Transparency at the "
    "Source: Evaluating and Interpreting Language Models With Access to the True Distribution, Findings of EMNLP",
    "split-merge grammars: Petrov, Barrett, Thibaux and Klein (2006), Learning Accurate, Compact, and Interpretable "
    "Tree Annotation, COLING-ACL",
    "prefix probabilities: Jelinek and Lafferty (1991), Computation of the Probability of Initial Substring Generation "
    "by Stochastic Context-Free Grammars, Computational Linguistics 17(3); Stolcke (1995), An Efficient Probabilistic "
    "Context-Free Parsing Algorithm that Computes Prefix Probabilities, Computational Linguistics 21(2)",
    "pseudo-perplexity: Salazar, Liang, Nguyen and Kirchhoff (2020), Masked Language Model Scoring, ACL",
)


def command() -> None:
    """Print what a paper that uses truesource should cite."""
    from importlib.metadata import version

    typer.echo(f"truesource {version('truesource')}; see CITATION.cff. Please cite also, for")
    for work in WORKS:
        typer.echo(f"  * {work}.")
