"""`truesource cite`: what to cite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo

WORKS = (
    "the comparison of language models with an exact grammar: Jumelet and Zuidema (2023), Transparency at the Source: "
    "Evaluating and Interpreting Language Models With Access to the True Distribution, Findings of EMNLP",
    "split-merge grammars: Petrov, Barrett, Thibaux and Klein (2006), Learning Accurate, Compact, and Interpretable "
    "Tree Annotation, COLING-ACL",
    "prefix probabilities: Jelinek and Lafferty (1991), Computation of the Probability of Initial Substring "
    "Generation by Stochastic Context-Free Grammars, Computational Linguistics 17(3); Stolcke (1995), An Efficient "
    "Probabilistic Context-Free Parsing Algorithm that Computes Prefix Probabilities, Computational Linguistics 21(2)",
    "variants of a grammar in the order of its children: White and Cotterell (2021), Examining the Inductive Bias of "
    "Neural Language Models with Artificial Languages, ACL-IJCNLP",
    "text in impossible orders of words: Kallini, Papadimitriou, Futrell, Mahowald and Potts (2024), Mission: "
    "Impossible Language Models, ACL",
    "laws of word frequency on disjoint halves: Piantadosi (2014), Zipf's word frequency law in natural language: A "
    "critical review and future directions, Psychonomic Bulletin & Review 21",
    "pseudo-perplexity: Salazar, Liang, Nguyen and Kirchhoff (2020), Masked Language Model Scoring, ACL",
    "smoothed n-gram models: Chen and Goodman (1999), An empirical study of smoothing techniques for language "
    "modeling, Computer Speech & Language 13(4)",
    "words made of subword pieces: Pimentel and Meister (2024), How to Compute the Probability of a Word, EMNLP; Oh "
    "and Schuler (2024), Leading Whitespaces of Language Models' Subword Vocabulary Pose a Confound for Calculating "
    "Word Probabilities, EMNLP",
    "sums over tokenisations: Cao and Rimell (2021), You should evaluate your language model on marginal likelihood "
    "over tokenisations, EMNLP; Kool, van Hoof and Welling (2019), Stochastic Beams and Where to Find Them, ICML "
    "(draws without replacement); Chirkova, Kruszewski, Rozen and Dymetman (2023), Should you marginalize over "
    "possible tokenizations?, ACL (block); Fearnhead and Clifford (2003), On-line inference for hidden Markov models "
    "via particle filters, JRSS B 65 (dpf); Geh, Zhang, Ahmed, Wang and Van den Broeck (2024), Where is the signal in "
    "tokenization space?, EMNLP (guided)",
    "beam sampling and the laws of generated text: Meister and Cotterell (2021), Language Model Evaluation Beyond "
    "Perplexity, ACL-IJCNLP",
    "decoding: Holtzman, Buys, Du, Forbes and Choi (2020), The Curious Case of Neural Text Degeneration, ICLR "
    "(nucleus); Meister, Pimentel, Wiher and Cotterell (2023), Locally Typical Sampling, TACL 11; Hewitt, Manning and "
    "Liang (2022), Truncation Sampling as Language Model Desmoothing, Findings of EMNLP (eta)",
    "minimal pairs: Linzen, Dupoux and Goldberg (2016), Assessing the Ability of LSTMs to Learn Syntax-Sensitive "
    "Dependencies, TACL 4; Marvin and Linzen (2018), Targeted Syntactic Evaluation of Language Models, EMNLP; Warstadt "
    "et al. (2020), BLiMP: The Benchmark of Linguistic Minimal Pairs for English, TACL 8",
    "probes: Hewitt and Liang (2019), Designing and Interpreting Probes with Control Tasks, EMNLP-IJCNLP; Voita and "
    "Titov (2020), Information-Theoretic Probing with Minimum Description Length, EMNLP",
)


def command(
    subject: Annotated[
        str | None,
        typer.Argument(help="Grammar, language, corpus or run: also list what to cite for its language."),
    ] = None,
) -> None:
    """List the publications that a paper which uses truesource should cite.

    Example: truesource cite corpus/
    """
    from importlib.metadata import version

    from truesource.grammar.languages import languages

    if subject is not None:
        echo(_source(subject))
    echo(f"truesource {version('truesource')}; see CITATION.cff. Please cite also, for")
    for work in WORKS:
        echo(f"  * {work}.")
    of: dict[str, list[str]] = {}
    for name, language in languages().items():
        of.setdefault(language.citation, []).append(name)
    for citation, names in of.items():
        echo(f"  * the language{'s' if len(names) > 1 else ''} {', '.join(names)}: {citation}.")


def _source(subject: str) -> str:
    """What to cite for a grammar's language.

    Raises:
        InputError: it is no grammar, language, corpus or run.
    """
    from truesource.grammar.languages import is_reference, languages, parse, reference
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.errors import InputError

    if is_reference(subject):
        name, settings = parse(subject)
        return f"For the language {reference(name, settings)} cite {languages()[name].citation}."
    path = Path(subject)
    if path.is_dir():  # a corpus, or a run
        inside = (path / "grammar.npz", path / "grammar" / "grammar.npz")
        path = next((file for file in inside if file.is_file()), path)
        if path.is_dir():
            raise InputError("this folder is neither a corpus nor a run; name one, a grammar or a language", path)
    pcfg = PCFG.load(path)
    language = pcfg.meta.get("language")
    if language is None:
        return f"The grammar of {subject} is not a language of truesource languages; cite where it is from."
    return f"For the language {pcfg.identity} cite {language['citation']}."
