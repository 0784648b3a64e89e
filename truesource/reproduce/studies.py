"""What rows measure beside the evaluators, in the folder of a finished run: functions by the name of a row's ``study``.

Each takes the folder and its configuration, and gives records with a seed where a network is one of several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import Column, mean_scores
from truesource.evaluation.in_context import documents_read, strategy
from truesource.evaluation.told import expected_languages, told_divergence
from truesource.generator.corpus import Corpus
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth, load_truth, process
from truesource.lmtrain.models import load_model
from truesource.lmtrain.snapshots import checkpoints_of
from truesource.lmtrain.truth import endless
from truesource.reproduce.found import Found
from truesource.run.config import RunConfig

if TYPE_CHECKING:
    from truesource.chain.models import ModelEntry

FRESH = "fresh"  #: field ``on`` of records
#: of documents of the family, the family is the truth; its records in the names of those of a pool
_SWAPPED = {
    "kl": "kl_family",
    "kl_family": "kl",
    "weight_truth": "weight_family",
    "weight_family": "weight_truth",
    "family_above": "truth_above",
}
CHANCE = 1000  #: Dirichlet concentration of a reader who learns next to nothing: all words stay equally probable


def fresh_documents(folder: Path, config: RunConfig) -> list[Found]:
    """The measures of `evaluate documents`, on as many documents of languages that no training has seen (`FRESH`)."""
    from truesource.evaluators.documents import DocumentsSettings

    settings = config.evaluation.of(DocumentsSettings)
    assert settings.family is not None and settings.sentences is not None
    pool, family = load_truth(folder / "grammar" / "grammar.npz"), load_truth(settings.family)
    lengths = config.corpus.lengths
    documents = next(endless(family, batch=settings.sentences, seed=config.seed, lengths=lengths))
    found = []
    for entry, model in _models(folder, config):
        for record in documents_read(model, Setting(family, documents, lengths), family=pool).records():
            name = _SWAPPED.get(record["name"], record["name"])
            found.append(_found(entry, {**record, "name": name, "on": FRESH}))
    return found


def predictors_along_training(folder: Path, config: RunConfig) -> list[Found]:
    """KL of three readers from each snapshot: of no counts (uniform), of words (unigram), of pairs (bigram).

    Records ``kl_READER`` and ``weight_READER``, see `truesource.evaluation.in_context.strategy`, with the step.
    """
    truth = load_truth(folder / "grammar" / "grammar.npz")
    assert isinstance(truth, DocumentProcess)
    readers = readers_of_counts(truth.name)
    documents = Corpus.load(folder / "corpus").sentences(config.evaluation.split)[: config.evaluation.sentences]
    found = []
    for entry in config.entries:
        for checkpoint in checkpoints_of(folder / "models" / entry.name, "the study of predictors along training"):
            near = strategy(checkpoint.load(), readers, documents, config.corpus.lengths)  # type: ignore[arg-type]
            for kind, values in (("kl", near.kl), ("weight", near.weight)):
                for reader, value in values.items():
                    record = {"name": f"{kind}_{reader}", "value": value, "step": checkpoint.step}
                    found.append(_found(entry, record))
    return found


def readers_of_counts(reference: str) -> dict[str, Truth]:
    """Three readers of ``dirichlet-markov`` documents, by what they count: nothing, words, and pairs (the truth)."""
    name, _, settings = reference.partition(":")
    given = {key: value for key, _, value in (part.partition("=") for part in settings.split(","))}
    made = {"uniform": {"order": "0", "concentration": str(CHANCE)}, "unigram": {"order": "0"}, "bigram": {}}
    return {
        reader: process(f"{name}:" + ",".join(f"{k}={v}" for k, v in {**given, **changed}.items()))
        for reader, changed in made.items()
    }


def sentences_until_known(folder: Path, config: RunConfig) -> list[Found]:
    """What models and the perfect reader know of the language of documents, by the number of the sentence.

    Records with ``sentence``, from 1 on, and intervals over documents: ``kl_told``, KL(reader who is told || model),
    nats a token, and ``weight_own``, the weight of the right language in what is expected as the first word. The model
    `reader` is the perfect one; ``kl_above`` of a model is ``kl_told`` less that of the perfect reader.
    """
    truth = load_truth(folder / "grammar" / "grammar.npz")
    assert isinstance(truth, DocumentProcess)
    corpus, split = Corpus.load(folder / "corpus"), config.evaluation.split
    documents = corpus.sentences(split)[: config.evaluation.sentences]
    languages = corpus.languages(split)[: len(documents)]
    reader = Oracle(truth, "causal", vocabulary=truth.terminals)
    told = told_divergence(reader, truth, documents, languages)
    found = [Found({"model": "reader", **record}) for record in _by_sentence(reader, truth, documents, languages, told)]
    for entry, model in _models(folder, config):
        own = told_divergence(model, truth, documents, languages)
        records = _by_sentence(model, truth, documents, languages, own, above=own - told)
        found += [_found(entry, record) for record in records]
    return found


def _by_sentence(
    model: Any,
    truth: DocumentProcess,
    documents: list[list[str]],
    languages: IntArray,
    told: FloatArray,
    *,
    above: FloatArray | None = None,
) -> Iterator[Mapping[str, Any]]:
    """Records of one reader: means of each sentence."""
    shared = {"objective": "causal", "grammar": truth.identity, "sentences": len(documents)}
    document = np.repeat(np.arange(len(documents)), [len(each) + 1 for each in documents])
    sentence = np.concatenate([np.cumsum([0, *(word == SEPARATOR for word in each)]) for each in documents])
    columns = {"kl_told": Column(told, {"unit": "nats/token"})}
    columns |= {} if above is None else {"kl_above": Column(above, {"unit": "nats/token"})}
    expected = expected_languages(model, truth, documents)
    weight = expected.weight[np.arange(len(expected.weight)), languages[expected.document]]
    for number in range(int(sentence.max()) + 1):
        at, begins = sentence == number, expected.string == number
        some = {name: Column(column.values[at], column.parts) for name, column in columns.items()}
        scores = mean_scores(some, document[at], shared, DEFAULT_SEED)
        own = {"weight_own": Column(weight[begins], {"unit": "share"})}
        scores |= mean_scores(own, expected.document[begins], shared, DEFAULT_SEED)
        yield from ({**score.as_record(), "sentence": number + 1} for score in scores.values())


def _models(folder: Path, config: RunConfig) -> Iterator[tuple[ModelEntry, Any]]:
    for entry in config.entries:
        yield entry, load_model(folder / "models" / entry.name)


def _found(entry: ModelEntry, record: Mapping[str, Any]) -> Found:
    asked = getattr(entry, "replicate_of", entry.name)
    return Found({**record, "of": asked, "model": asked}, getattr(entry, "seed", None))


STUDIES: Mapping[str, Callable[[Path, RunConfig], list[Found]]] = {
    "fresh-documents": fresh_documents,
    "predictors-along-training": predictors_along_training,
    "sentences-until-known": sentences_until_known,
}
