"""The works behind what truesource computes, and which of them a run, corpus, model or grammar has used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from truesource.grammar.support.files import data_folder

#: by topic, what its works are cited for; the ``keywords`` of an entry of ``data/works.bib`` name its topic
TOPICS = {
    "truth": "the comparison of language models with an exact grammar",
    "split-merge": "split-merge grammars",
    "relaxation": "over-relaxed EM",
    "prefix": "prefix probabilities",
    "variants": "variants of a grammar in the order of its children",
    "control": "tilted grammars, and the frontier of reward and KL",
    "transforms": "text in impossible orders of words",
    "naturalness": "laws of word frequency on disjoint halves",
    "masked": "pseudo-perplexity",
    "diffusion": "masked diffusion and its samplers",
    "ngram": "smoothed n-gram models, compared with networks",
    "pieces": "words made of subword pieces",
    "tokenisation": "sums over tokenisations, sampled without replacement, by block, dpf or guided",
    "pplu": "perplexity relative to word frequencies",
    "tendencies": "beam sampling and the laws of generated text",
    "nucleus": "nucleus sampling",
    "typical": "typical sampling",
    "eta": "eta sampling",
    "tests": "adjusted p-values, intervals of shares, and degrees of freedom over training seeds",
    "pairs": "minimal pairs",
    "probing": "probes",
    "documents": "languages that are learned in context",
    "beliefs": "beliefs of perfect predictors in the layers of networks",
    "context": "the best predictors that see a few words",
    "memory": "what models memorise of their training sentences",
    "weights": "training that starts from a model of another language",
}
MANY = 8  #: number of authors from which only the first is named
_ENTRY = re.compile(r"^@.*?^\}$", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (\w+) = \{+(.*?)\}+,$", re.MULTILINE)
_TOPIC = "keywords"


@dataclass(frozen=True)
class Work:
    """A publication, and what it is cited for."""

    bibtex: str  #: the entry
    fields: Mapping[str, str]  #: of the entry, such as ``author`` and ``title``, as plain text
    topic: str

    @classmethod
    def read(cls, entry: str) -> Work:
        """Return the publication of an entry of BibTeX that has one field a line and its topic as ``keywords``."""
        fields = {name: value.replace("\\&", "&") for name, value in _FIELD.findall(entry)}
        topic = fields.pop(_TOPIC)
        return cls(entry.replace(f"  {_TOPIC} = {{{topic}}},\n", ""), fields, topic)

    @property
    def short(self) -> str:
        """Authors and year; of many authors the first."""
        *names, last = [name.partition(",")[0] for name in self.fields["author"].split(" and ")]
        if len(names) >= MANY:
            return f"{names[0]} and others ({self.fields['year']})"
        return f"{', '.join(names)} and {last} ({self.fields['year']})" if names else f"{last} ({self.fields['year']})"

    def __str__(self) -> str:
        fields = self.fields
        volume = f" {fields['volume']}" if "volume" in fields else ""
        issue = f"({fields['number']})" if "number" in fields else ""
        return f"{self.short}, {fields['title']}, {fields.get('booktitle') or fields['journal']}{volume}{issue}"


@cache
def works() -> tuple[Work, ...]:
    """Return all publications, in the order in which they are listed: by topic."""
    read_works = map(Work.read, _ENTRY.findall((data_folder() / "works.bib").read_text(encoding="utf-8")))
    return tuple(sorted(read_works, key=lambda work: list(TOPICS).index(work.topic)))


def bibtex(topics: Sequence[str], sources: Mapping[str, str], version: str) -> str:
    """Return BibTeX entries of truesource, of works of some topics, and of the sources of languages by name."""
    entries = [
        f"@software{{truesource,\n  author = {{{{The truesource developers}}}},\n  title = {{truesource}},\n"
        f"  version = {{{version}}},\n}}",
        *(work.bibtex for work in works() if work.topic in topics),
        *(f"@misc{{language-{name},\n  note = {{{text}}},\n}}" for name, text in sources.items()),
    ]
    return "\n\n".join(entries)


def topics_of(path: Path, grammar: Mapping[str, Any] | None) -> list[str]:
    """Return the topics that a run, corpus, model or grammar has used, in the order of `TOPICS`.

    Args:
        path: its folder.
        grammar: ``meta`` of its grammar, if it has one.
    """
    from truesource.grammar.support.records import read_record

    topics = {"truth", "prefix"}
    if grammar is not None:
        topics |= {"split-merge"} & {grammar.get("method")}
        training = grammar.get("config")
        if isinstance(training, Mapping) and training.get("relaxation") is not None:
            topics.add("relaxation")
        topics |= {"variants"} if "variant" in grammar else set()
        topics |= {"control"} if "tilt" in grammar else set()
    for name in ("config.json", "record.json", "training.json"):
        if (path / name).is_file():
            topics |= set(_used(read_record(path / name, dict[str, object], remedy="make it again")))
    return [topic for topic in TOPICS if topic in topics]


def _schemes(tendencies: Any) -> Iterator[str]:
    """Yield the decoding schemes of an evaluation that have works of their own."""
    if isinstance(tendencies, Mapping):
        for entry in tendencies.get("schemes") or ():
            scheme = entry if isinstance(entry, str) else entry.get("scheme")
            if scheme in ("nucleus", "typical", "eta"):
                yield scheme


def _used(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the topics of a run's configuration, a corpus's record or a model's."""
    evaluation = record.get("evaluation")
    if isinstance(evaluation, Mapping):
        yield from (name for name, settings in evaluation.items() if name in TOPICS and settings is not None)
        yield from _schemes(evaluation.get("tendencies"))
        yield "tests"
    parts = [record, *(record.get(name) or {} for name in ("call", "corpus", "model"))]
    models = record.get("models")
    entries = [each for each in (models if isinstance(models, list) else ()) if isinstance(each, Mapping)]
    parts += [each.get("model") for each in entries]
    if record.get("weights_digest") or any(each.get("weights") for each in entries):
        yield "weights"
    for part in (part for part in parts if isinstance(part, Mapping)):
        if part.get("transform"):
            yield "transforms"
        if part.get("tokenizer") in ("bpe", "unigram"):
            yield "pieces"
        architecture = part.get("architecture", part.get("model_type"))
        if architecture == "ngram":
            yield "ngram"
        if architecture == "diffusion" or part.get("objective") == "any-order":
            yield "diffusion"
        elif architecture in ("bert", "deberta", "deberta-v2", "roberta"):
            yield "masked"
