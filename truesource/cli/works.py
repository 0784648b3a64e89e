"""The works behind what truesource computes, and which of them a run, corpus, model or grammar has used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Work:
    """A publication."""

    key: str
    authors: str  #: as BibTeX has them
    title: str
    venue: str
    year: int
    kind: str = "inproceedings"  #: of the BibTeX entry; an article's venue is its journal
    volume: str = ""  #: of the journal
    number: str = ""  #: of the issue in the volume

    def __str__(self) -> str:
        names = [name.partition(",")[0] for name in self.authors.split(" and ")]
        short = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
        issue = (f" {self.volume}" if self.volume else "") + (f"({self.number})" if self.number else "")
        return f"{short} ({self.year}), {self.title}, {self.venue}{issue}"

    @property
    def short(self) -> str:
        """Authors and year."""
        return f"{str(self).partition(chr(41))[0]})"

    def bibtex(self) -> str:
        """The BibTeX entry."""
        venue = "journal" if self.kind == "article" else "booktitle"
        fields = {"author": self.authors, "title": f"{{{self.title}}}", venue: self.venue, "year": str(self.year)}
        fields |= {"volume": self.volume, "number": self.number}
        lines = [f"  {name} = {{{value.replace('&', chr(92) + '&')}}}," for name, value in fields.items() if value]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


#: topic, what it is cited for, and the works
TOPICS: dict[str, tuple[str, tuple[Work, ...]]] = {
    "truth": (
        "the comparison of language models with an exact grammar",
        (
            Work(
                "jumelet-zuidema-2023",
                "Jumelet, Jaap and Zuidema, Willem",
                "Transparency at the Source: Evaluating and Interpreting Language Models With Access to the True "
                "Distribution",
                "Findings of EMNLP",
                2023,
            ),
        ),
    ),
    "split-merge": (
        "split-merge grammars",
        (
            Work(
                "petrov-etal-2006",
                "Petrov, Slav and Barrett, Leon and Thibaux, Romain and Klein, Dan",
                "Learning Accurate, Compact, and Interpretable Tree Annotation",
                "COLING-ACL",
                2006,
            ),
        ),
    ),
    "prefix": (
        "prefix probabilities",
        (
            Work(
                "jelinek-lafferty-1991",
                "Jelinek, Frederick and Lafferty, John D.",
                "Computation of the Probability of Initial Substring Generation by Stochastic Context-Free Grammars",
                "Computational Linguistics",
                1991,
                "article",
                "17",
                "3",
            ),
            Work(
                "stolcke-1995",
                "Stolcke, Andreas",
                "An Efficient Probabilistic Context-Free Parsing Algorithm that Computes Prefix Probabilities",
                "Computational Linguistics",
                1995,
                "article",
                "21",
                "2",
            ),
        ),
    ),
    "variants": (
        "variants of a grammar in the order of its children",
        (
            Work(
                "white-cotterell-2021",
                "White, Jennifer C. and Cotterell, Ryan",
                "Examining the Inductive Bias of Neural Language Models with Artificial Languages",
                "ACL-IJCNLP",
                2021,
            ),
        ),
    ),
    "transforms": (
        "text in impossible orders of words",
        (
            Work(
                "kallini-etal-2024",
                "Kallini, Julie and Papadimitriou, Isabel and Futrell, Richard and Mahowald, Kyle "
                "and Potts, Christopher",
                "Mission: Impossible Language Models",
                "ACL",
                2024,
            ),
        ),
    ),
    "naturalness": (
        "laws of word frequency on disjoint halves",
        (
            Work(
                "piantadosi-2014",
                "Piantadosi, Steven T.",
                "Zipf's word frequency law in natural language: A critical review and future directions",
                "Psychonomic Bulletin & Review",
                2014,
                "article",
                "21",
            ),
        ),
    ),
    "masked": (
        "pseudo-perplexity",
        (
            Work(
                "salazar-etal-2020",
                "Salazar, Julian and Liang, Davis and Nguyen, Toan Q. and Kirchhoff, Katrin",
                "Masked Language Model Scoring",
                "ACL",
                2020,
            ),
        ),
    ),
    "ngram": (
        "smoothed n-gram models",
        (
            Work(
                "chen-goodman-1999",
                "Chen, Stanley F. and Goodman, Joshua",
                "An empirical study of smoothing techniques for language modeling",
                "Computer Speech & Language",
                1999,
                "article",
                "13",
                "4",
            ),
        ),
    ),
    "pieces": (
        "words made of subword pieces",
        (
            Work(
                "pimentel-meister-2024",
                "Pimentel, Tiago and Meister, Clara",
                "How to Compute the Probability of a Word",
                "EMNLP",
                2024,
            ),
            Work(
                "oh-schuler-2024",
                "Oh, Byung-Doh and Schuler, William",
                "Leading Whitespaces of Language Models' Subword Vocabulary Pose a Confound for Calculating Word "
                "Probabilities",
                "EMNLP",
                2024,
            ),
        ),
    ),
    "tokenisation": (
        "sums over tokenisations, sampled without replacement, by block, dpf or guided",
        (
            Work(
                "cao-rimell-2021",
                "Cao, Kris and Rimell, Laura",
                "You should evaluate your language model on marginal likelihood over tokenisations",
                "EMNLP",
                2021,
            ),
            Work(
                "kool-etal-2019",
                "Kool, Wouter and van Hoof, Herke and Welling, Max",
                "Stochastic Beams and Where to Find Them",
                "ICML",
                2019,
            ),
            Work(
                "chirkova-etal-2023",
                "Chirkova, Nadezhda and Kruszewski, Germán and Rozen, Jos and Dymetman, Marc",
                "Should you marginalize over possible tokenizations?",
                "ACL",
                2023,
            ),
            Work(
                "fearnhead-clifford-2003",
                "Fearnhead, Paul and Clifford, Peter",
                "On-line inference for hidden Markov models via particle filters",
                "Journal of the Royal Statistical Society: Series B",
                2003,
                "article",
                "65",
            ),
            Work(
                "geh-etal-2024",
                "Geh, Renato and Zhang, Honghua and Ahmed, Kareem and Wang, Benjie and Van den Broeck, Guy",
                "Where is the signal in tokenization space?",
                "EMNLP",
                2024,
            ),
        ),
    ),
    "pplu": (
        "perplexity relative to word frequencies",
        (
            Work(
                "roh-etal-2020",
                "Roh, Jihyeon and Oh, Sang-Hoon and Lee, Soo-Young",
                "Unigram-Normalized Perplexity as a Language Model Performance Measure with Different Vocabulary Sizes",
                "arXiv",
                2020,
                "article",
            ),
        ),
    ),
    "tendencies": (
        "beam sampling and the laws of generated text",
        (
            Work(
                "meister-cotterell-2021",
                "Meister, Clara and Cotterell, Ryan",
                "Language Model Evaluation Beyond Perplexity",
                "ACL-IJCNLP",
                2021,
            ),
        ),
    ),
    "decoding": (
        "decoding: nucleus, typical, eta",
        (
            Work(
                "holtzman-etal-2020",
                "Holtzman, Ari and Buys, Jan and Du, Li and Forbes, Maxwell and Choi, Yejin",
                "The Curious Case of Neural Text Degeneration",
                "ICLR",
                2020,
            ),
            Work(
                "meister-etal-2023",
                "Meister, Clara and Pimentel, Tiago and Wiher, Gian and Cotterell, Ryan",
                "Locally Typical Sampling",
                "Transactions of the Association for Computational Linguistics",
                2023,
                "article",
                "11",
            ),
            Work(
                "hewitt-etal-2022",
                "Hewitt, John and Manning, Christopher D. and Liang, Percy",
                "Truncation Sampling as Language Model Desmoothing",
                "Findings of EMNLP",
                2022,
            ),
        ),
    ),
    "pairs": (
        "minimal pairs",
        (
            Work(
                "linzen-etal-2016",
                "Linzen, Tal and Dupoux, Emmanuel and Goldberg, Yoav",
                "Assessing the Ability of LSTMs to Learn Syntax-Sensitive Dependencies",
                "Transactions of the Association for Computational Linguistics",
                2016,
                "article",
                "4",
            ),
            Work(
                "marvin-linzen-2018",
                "Marvin, Rebecca and Linzen, Tal",
                "Targeted Syntactic Evaluation of Language Models",
                "EMNLP",
                2018,
            ),
            Work(
                "warstadt-etal-2020",
                "Warstadt, Alex and Parrish, Alicia and Liu, Haokun and Mohananey, Anhad and Peng, Wei and "
                "Wang, Sheng-Fu and Bowman, Samuel R.",
                "BLiMP: The Benchmark of Linguistic Minimal Pairs for English",
                "Transactions of the Association for Computational Linguistics",
                2020,
                "article",
                "8",
            ),
        ),
    ),
    "probing": (
        "probes",
        (
            Work(
                "hewitt-liang-2019",
                "Hewitt, John and Liang, Percy",
                "Designing and Interpreting Probes with Control Tasks",
                "EMNLP-IJCNLP",
                2019,
            ),
            Work(
                "voita-titov-2020",
                "Voita, Elena and Titov, Ivan",
                "Information-Theoretic Probing with Minimum Description Length",
                "EMNLP",
                2020,
            ),
        ),
    ),
}


def bibtex(topics: Sequence[str], sources: Mapping[str, str], version: str) -> str:
    """BibTeX entries of truesource, of the works of some topics, and of the sources of languages by name."""
    entries = [
        f"@software{{truesource,\n  author = {{{{The truesource developers}}}},\n  title = {{truesource}},\n"
        f"  version = {{{version}}},\n}}",
        *(work.bibtex() for topic in topics for work in TOPICS[topic][1]),
        *(f"@misc{{language-{name},\n  note = {{{text}}},\n}}" for name, text in sources.items()),
    ]
    return "\n\n".join(entries)


def topics_of(path: Path, grammar: Mapping[str, Any] | None) -> list[str]:
    """The topics that a run, corpus, model or grammar has used, in the order of `TOPICS`.

    Args:
        path: it.
        grammar: ``meta`` of its grammar, if it has one.
    """
    from truesource.grammar.support.records import read_record

    found = {"truth", "prefix"}
    if grammar is not None:
        found |= {"split-merge"} & {grammar.get("method")}
        found |= {"variants"} if "variant" in grammar else set()
    for name in ("config.json", "record.json", "training.json"):
        if (path / name).is_file():
            found |= set(_used(read_record(path / name, dict[str, Any], remedy="make it again")))
    return [topic for topic in TOPICS if topic in found]


def _used(record: Mapping[str, Any]) -> Iterator[str]:
    """The topics of a run's configuration, a corpus's record or a model's."""
    evaluation = record.get("evaluation")
    if isinstance(evaluation, Mapping):
        yield from (name for name, settings in evaluation.items() if name in TOPICS and settings is not None)
        yield from ("decoding",) if evaluation.get("tendencies") is not None else ()
    parts = [record, *(record.get(name) or {} for name in ("call", "corpus", "model"))]
    models = record.get("models")
    parts += [each.get("model") for each in (models if isinstance(models, list) else ()) if isinstance(each, Mapping)]
    for part in (part for part in parts if isinstance(part, Mapping)):
        if part.get("transform"):
            yield "transforms"
        if part.get("tokenizer") in ("bpe", "unigram"):
            yield "pieces"
        architecture = part.get("architecture", part.get("model_type"))
        if architecture == "ngram":
            yield "ngram"
        if architecture in ("bert", "deberta", "deberta-v2", "roberta"):
            yield "masked"
