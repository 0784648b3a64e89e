"""Knowledge of models and readers about the language of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.means import Column, mean_scores
from truesource.evaluation.documents.informed_readers import expected_languages, told_divergence
from truesource.evaluation.documents.measure import documents_read
from truesource.generator.corpus import Corpus
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import load_truth
from truesource.lmtrain.truth import endless
from truesource.run.config import RunConfig
from truesource.studies.reproduce.run_records import RunRecord, models_of, record_of


def fresh_documents(folder: Path, config: RunConfig) -> list[RunRecord]:
    """Return the measures of `evaluate documents` on documents of languages that no training has seen, ``on: fresh``.

    Their truth is the family of the configuration, and the reader `pool` knows the languages of the training.
    """
    from truesource.evaluation.documents.evaluator import DocumentsSettings

    settings = config.evaluation.of(DocumentsSettings)
    assert settings.sentences is not None
    (family,) = (load_truth(reference) for reference in settings.family.values())
    pool, lengths = load_truth(folder / "grammar" / "grammar.npz"), config.corpus.lengths
    documents = next(endless(family, batch=settings.sentences, seed=config.seed, lengths=lengths))
    records = []
    for entry, model in models_of(folder, config):
        reading = documents_read(model, Setting(family, documents, lengths), families={"pool": pool})
        records += [record_of(entry, {**record, "on": "fresh"}) for record in reading.records()]
    return records


def sentences_until_known(folder: Path, config: RunConfig) -> list[RunRecord]:
    """Return what models and the perfect reader know of the language of documents, by the number of the sentence.

    Records with ``sentence``, from 1 on, and intervals over documents: ``kl_told``, KL(reader who is told || model),
    nats a token, and ``weight_own``, the weight of the right language in what is expected as the first word. The model
    `reader` is the perfect one; ``kl_above`` of a model is ``kl_told`` minus the perfect reader's.
    """
    truth = load_truth(folder / "grammar" / "grammar.npz")
    assert isinstance(truth, DocumentProcess)
    corpus, split = Corpus.load(folder / "corpus"), config.evaluation.split
    documents = corpus.sentences(split)[: config.evaluation.sentences]
    languages = corpus.languages(split)[: len(documents)]
    reader = Oracle(truth, "causal", vocabulary=truth.vocabulary)
    reader_divergence = told_divergence(reader, truth, documents, languages)
    results = [
        RunRecord({"model": "reader", **record})
        for record in _by_sentence(reader, truth, documents, languages, reader_divergence)
    ]
    for entry, model in models_of(folder, config):
        divergence = told_divergence(model, truth, documents, languages)
        records = _by_sentence(model, truth, documents, languages, divergence, above=divergence - reader_divergence)
        results += [record_of(entry, record) for record in records]
    return results


def _by_sentence(
    model: Any,
    truth: DocumentProcess,
    documents: list[list[str]],
    languages: IntArray,
    divergence: FloatArray,
    *,
    above: FloatArray | None = None,
) -> Iterator[Mapping[str, Any]]:
    """Yield the records of one reader: means of each sentence."""
    shared = {"objective": "causal", "grammar": truth.identity, "sentences": len(documents)}
    document = np.repeat(np.arange(len(documents)), [len(each) + 1 for each in documents])
    sentence = np.concatenate([np.cumsum([0, *(word == SEPARATOR for word in each)]) for each in documents])
    columns = {"kl_told": Column(divergence, {"unit": "nats/token"})}
    columns |= {} if above is None else {"kl_above": Column(above, {"unit": "nats/token"})}
    expected = expected_languages(model, truth, documents)
    weight = expected.weight[np.arange(len(expected.weight)), languages[expected.document]]
    for number in range(int(sentence.max()) + 1):
        at, begins = sentence == number, expected.string == number
        some = {name: Column(column.values[at], column.parts) for name, column in columns.items()}
        scores = mean_scores(some, document[at], shared, DEFAULT_SEED)
        weights = {"weight_own": Column(weight[begins], {"unit": "share"})}
        scores |= mean_scores(weights, expected.document[begins], shared, DEFAULT_SEED)
        yield from ({**score.as_record(), "sentence": number + 1} for score in scores.values())
