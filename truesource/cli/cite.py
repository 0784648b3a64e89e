"""`truesource cite`: what to cite."""

from __future__ import annotations

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


def command() -> None:
    """List the publications that a paper which uses truesource should cite.

    Example: truesource cite
    """
    from importlib.metadata import version

    echo(f"truesource {version('truesource')}; see CITATION.cff. Please cite also, for")
    for work in WORKS:
        echo(f"  * {work}.")
